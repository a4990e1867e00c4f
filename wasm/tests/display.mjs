// A virtual display, for browsers that are not headless.

import { spawn } from "node:child_process";

const START_MS = 90_000;

/** Starts Xvfb, which chooses the name of the display and writes it to a pipe. */
export async function openDisplay() {
  const child = spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "1024x768x24", "-nolisten", "tcp"], { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const name = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("Xvfb does not start")), START_MS);
    child.stdio[3].once("data", (chunk) => {
      clearTimeout(timer);
      resolve(`:${String(chunk).trim()}`);
    });
    child.once("error", reject);
  });
  return { name, close: () => child.kill() };
}

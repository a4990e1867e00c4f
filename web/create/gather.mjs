// Copies the plain canvas example into the template, so that its source exists only once.

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

const EXAMPLES = new URL("../examples/", import.meta.url);
const TEMPLATE = new URL("template/", import.meta.url);

const copy = (from, to, change = (text) => text) =>
  writeFileSync(new URL(to, TEMPLATE), change(readFileSync(new URL(from, EXAMPLES), "utf8")));

// npm does not pack symbolic links.
["LICENSE-APACHE", "LICENSE-MIT"].forEach((file) => copyFileSync(new URL(`../../${file}`, import.meta.url), new URL(file, import.meta.url)));
mkdirSync(new URL("src/", TEMPLATE), { recursive: true });
["net.ts", "steering.ts", "style.css"].forEach((file) => copy(file, `src/${file}`));
copy("canvas/main.ts", "src/main.ts", (text) => text.replaceAll('"../', '"./'));
copy("canvas/index.html", "index.html", (text) => text.replace("/style.css", "/src/style.css").replace("./main.ts", "/src/main.ts"));
copy("tsconfig.json", "tsconfig.json", (text) => `${JSON.stringify({ ...JSON.parse(text), include: ["src"] }, null, 2)}\n`);

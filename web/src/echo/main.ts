/** The page: what people press, and what it does. */

import "./style.css";
import { RakwireError } from "rakwire";
import type { Reliability } from "rakwire";

import { element } from "../dom.js";
import { Echoes } from "./echoes.js";
import { Log } from "./log.js";
import { Pings } from "./pings.js";
import { Plot } from "./plot.js";
import { Line } from "./line.js";
import { StatsTable } from "./stats.js";
import { Status } from "./status.js";

const STATS_MS = 250;
const LONG_MESSAGE = 128 * 1024;

const relay = element("relay", HTMLInputElement);
const target = element("target", HTMLInputElement);
const protocol = element("protocol", HTMLSelectElement);
const text = element("text", HTMLInputElement);
const reliability = element("reliability", HTMLSelectElement);
const channel = element("channel", HTMLInputElement);
const sendButtons = [element("send", HTMLButtonElement), element("send-long", HTMLButtonElement)];

const status = new Status();
const log = new Log();
const plot = new Plot(element("plot", HTMLElement));
const stats = new StatsTable(element("stats", HTMLTableSectionElement));
const echoes = new Echoes();
const line = new Line(status, (arrived) => echoes.arrived(arrived));
const pings = new Pings(line, echoes, plot);

relay.value = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
status.addEventListener("change", () => {
  sendButtons.forEach((button) => (button.disabled = status.state !== "connected"));
});
status.set("empty", "Not connected. Choose a target and connect.");

element("connect-form", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  if (status.state === "connected" || status.state === "connecting") {
    return;
  }
  echoes.forget();
  log.giveUp();
  plot.clear();
  void line.open(relay.value, target.value, Number(protocol.value));
});
element("disconnect", HTMLButtonElement).addEventListener("click", () => line.close());
element("send-form", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  send(text.value);
});
element("send-long", HTMLButtonElement).addEventListener("click", () => send(longText()));
element("pings", HTMLInputElement).addEventListener("change", (event) => {
  pings.isOn = (event.target as HTMLInputElement).checked;
});

function send(words: string): void {
  const how = { reliability: reliability.value as Reliability, channel: channel.valueAsNumber };
  const entry = log.sent(words, how);
  try {
    line.send(words, how);
  } catch (error) {
    log.failed(entry, error instanceof RakwireError ? error.message : String(error));
    return;
  }
  echoes.expect(words, (roundTripMs) => {
    log.echoed(entry, roundTripMs);
    plot.add(roundTripMs);
  });
}

/** A text that no other is equal to, so that its echo proves every byte. */
function longText(): string {
  const random = crypto.getRandomValues(new Uint8Array(LONG_MESSAGE / 2));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

setInterval(() => {
  const now = line.stats();
  if (now !== undefined) {
    stats.show({ ...now, messageMedianMs: plot.median() });
    plot.smoothed(status.state === "connected" ? now.roundTripMs : undefined);
  }
}, STATS_MS);

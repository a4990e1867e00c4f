/** The page: its controls and their actions. */

import "./style.css";
import { RakwireError } from "rakwire";
import type { Reliability } from "rakwire";

import { element } from "../dom.js";
import { EchoConnection } from "./echo-connection.js";
import { Echoes } from "./echoes.js";
import { Log } from "./log.js";
import { Pings } from "./pings.js";
import { Plot } from "./plot.js";
import { StatsTable } from "./stats.js";
import { Status } from "./status.js";

const STATS_MS = 250;
const LONG_MESSAGE = 128 * 1024;

const relay = element("relay", HTMLInputElement);
const target = element("target", HTMLInputElement);
const protocol = element("protocol", HTMLSelectElement);
const textInput = element("text", HTMLInputElement);
const reliability = element("reliability", HTMLSelectElement);
const channel = element("channel", HTMLInputElement);
const sendButtons = [element("send", HTMLButtonElement), element("send-long", HTMLButtonElement)];

const status = new Status();
const log = new Log();
const plot = new Plot(element("plot", HTMLElement));
const stats = new StatsTable(element("stats", HTMLTableSectionElement));
const echoes = new Echoes();
const connection = new EchoConnection(status, (arrived) => echoes.arrived(arrived));
const pings = new Pings(connection, echoes, plot);

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
  echoes.clear();
  log.markLost();
  plot.clear();
  void connection.open(relay.value, target.value, Number(protocol.value));
});
element("disconnect", HTMLButtonElement).addEventListener("click", () => connection.close());
element("send-form", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault();
  send(textInput.value);
});
element("send-long", HTMLButtonElement).addEventListener("click", () => send(longText()));
element("pings", HTMLInputElement).addEventListener("change", (event) => {
  pings.isOn = (event.target as HTMLInputElement).checked;
});

function send(text: string): void {
  const options = { reliability: reliability.value as Reliability, channel: channel.valueAsNumber };
  const entry = log.sent(text, options);
  try {
    connection.send(text, options);
  } catch (error) {
    log.failed(entry, error instanceof RakwireError ? error.message : String(error));
    return;
  }
  echoes.expect(text, (roundTripMs) => {
    log.echoed(entry, roundTripMs);
    plot.add(roundTripMs);
  });
}

/** Returns a random text, so that its echo verifies every byte. */
function longText(): string {
  const random = crypto.getRandomValues(new Uint8Array(LONG_MESSAGE / 2));
  return Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

setInterval(() => {
  const now = connection.stats();
  if (now !== undefined) {
    stats.show({ ...now, messageMedianMs: plot.median() });
    plot.smoothed(status.state === "connected" ? now.roundTripMs : undefined);
  }
}, STATS_MS);

/** The page of servers, which polls the relay for its list. */

import "../echo/style.css";
import "./style.css";

import { element, labelled, make } from "../dom.js";
import { readServers } from "./list.js";
import type { Server } from "./list.js";

const INTERVAL_MS = 2_000;
const TIMEOUT_MS = 5_000;

const status = element("status", HTMLParagraphElement);
const table = element("table", HTMLTableElement);
const body = element("servers", HTMLTableSectionElement);

const PROTOCOLS = { raknet: "RakNet", "game-protocol": "Game Protocol", raw: "other" };

function state(server: Server): HTMLElement {
  const found = labelled("State", "", "");
  if (server.online === null) {
    found.append(make("span", "state", "not known"));
  } else {
    found.append(server.online ? make("span", "state online", "online") : make("span", "state unresponsive", "no answer"));
  }
  return found;
}

function row(server: Server): HTMLTableRowElement {
  const created = document.createElement("tr");
  created.dataset["name"] = server.name;
  const head = make("th", "server", "");
  head.setAttribute("scope", "row");
  head.append(make("span", "title", server.title ?? server.name));
  if (server.title !== null) {
    head.append(make("span", "name", server.name));
  }
  const players = server.players === null ? "–" : `${server.players} / ${server.maxPlayers ?? "?"}`;
  const ping = server.latencyMs === null ? "–" : `${server.latencyMs.toFixed(1)} ms`;
  created.append(
    head,
    state(server),
    labelled("Players", "number", players),
    labelled("Ping", "number", ping),
    labelled("Protocol", "", PROTOCOLS[server.kind]),
    labelled("Version", "", server.version ?? "–"),
  );
  return created;
}

function show(servers: Server[]): void {
  table.hidden = servers.length === 0;
  body.replaceChildren(...servers.map(row));
  if (servers.length === 0) {
    showState("partly", "This relay offers no servers now.");
    return;
  }
  const online = servers.filter((server) => server.online === true).length;
  const unresponsive = servers.filter((server) => server.online === false).length;
  const count = servers.length === 1 ? "One server" : `${servers.length} servers`;
  const gone = unresponsive === 0 ? "" : unresponsive === 1 ? ", one does not answer" : `, ${unresponsive} do not answer`;
  showState(unresponsive === 0 ? "connected" : online === 0 ? "failed" : "partly", `${count}, ${online} online${gone}.`);
}

/** Shows a state; `partly` is neither good nor bad. */
function showState(state: "connected" | "partly" | "failed", text: string): void {
  document.body.dataset["state"] = state;
  if (status.textContent !== text) {
    status.textContent = text;
  }
}

async function update(): Promise<void> {
  try {
    const answer = await fetch("./servers.json", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) {
      throw new Error(`HTTP status ${answer.status}`);
    }
    show(readServers(await answer.json()));
  } catch (error) {
    showState("failed", `The relay returned no list of servers: ${error instanceof Error ? error.message : String(error)}. Trying again …`);
  }
}

async function run(): Promise<void> {
  for (;;) {
    if (!document.hidden) {
      await update();
    }
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
  }
}

void run();

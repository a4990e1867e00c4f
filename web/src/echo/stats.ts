/** The table of counters. */

import type { ConnectionStats as RakNetStats } from "rakwire";

import { make } from "../dom.js";

/** The counters of RakNet and the measurements of this page. */
export interface Stats extends RakNetStats {
  /** The median round-trip time of messages and pings in the plot; 0 if there are none. */
  readonly messageMedianMs: number;
}

type Row = readonly [id: string, name: string, show: (stats: Stats) => string];

const ROWS: readonly Row[] = [
  ["median", "Messages and pings, median", (stats) => ms(stats.messageMedianMs)],
  ["rtt", "Round trip, smoothed", (stats) => ms(stats.roundTripMs)],
  ["ping", "Last RakNet ping", (stats) => ms(stats.pingMs)],
  ["lost", "Datagrams lost", (stats) => count(stats.datagramsLost)],
  ["window", "Congestion window", (stats) => bytes(stats.congestionWindow)],
  ["in-flight", "In flight", (stats) => bytes(stats.inFlight)],
  ["datagrams", "Datagrams sent / received", (stats) => pair(stats.datagramsSent, stats.datagramsReceived)],
  ["messages", "Messages sent / received", (stats) => pair(stats.messagesSent, stats.messagesReceived)],
  ["bytes", "Bytes sent / received", (stats) => `${bytes(stats.bytesSent)} / ${bytes(stats.bytesReceived)}`],
  ["mtu", "MTU", (stats) => bytes(stats.mtu)],
  ["drops", "Dropped on arrival", (stats) => drops(stats.drops)],
];

const NOTHING = "–";

export class StatsTable {
  readonly #cells: readonly HTMLElement[];

  constructor(body: HTMLTableSectionElement) {
    this.#cells = ROWS.map(([id, name]) => {
      const row = document.createElement("tr");
      const head = make("th", "", name);
      head.setAttribute("scope", "row");
      const cell = make("td", "", NOTHING);
      cell.dataset["testid"] = `stat-${id}`;
      row.append(head, cell);
      body.append(row);
      return cell;
    });
  }

  show(stats: Stats): void {
    ROWS.forEach(([, , show], index) => {
      const cell = this.#cells[index];
      if (cell !== undefined) {
        cell.textContent = show(stats);
      }
    });
  }
}

function ms(value: number): string {
  return value === 0 ? NOTHING : `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}

function count(value: number): string {
  return value.toLocaleString("en");
}

function pair(one: number, other: number): string {
  return `${count(one)} / ${count(other)}`;
}

function bytes(value: number): string {
  return value < 10_000 ? `${count(value)} B` : `${(value / 1000).toFixed(value < 1_000_000 ? 1 : 0)} kB`;
}

/** Formats reasons: `tooShort` becomes “too short”. */
function drops(all: Readonly<Record<string, number>>): string {
  const named = Object.entries(all).map(
    ([reason, times]) => `${count(times)} ${reason.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`,
  );
  return named.length === 0 ? "0" : named.join(", ");
}

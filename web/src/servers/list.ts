/** The list of servers in the form that the relay sends. */

export interface Server {
  name: string;
  kind: "raknet" | "game-protocol" | "raw";
  /** `null` for a protocol without pings. */
  online: boolean | null;
  latencyMs: number | null;
  title: string | null;
  players: number | null;
  maxPlayers: number | null;
  version: string | null;
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? plain(value) : null;
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Removes the colour codes of Minecraft Bedrock titles, which are `§` and a character. */
function plain(title: string): string {
  return title.replace(/§./gu, "");
}

function readServer(value: unknown): Server {
  const entry = value as Record<string, unknown>;
  const kind = entry["kind"];
  return {
    name: text(entry["name"]) ?? "",
    kind: kind === "raknet" || kind === "game-protocol" ? kind : "raw",
    online: typeof entry["online"] === "boolean" ? entry["online"] : null,
    latencyMs: number(entry["latency_ms"]),
    title: text(entry["title"]),
    players: number(entry["players"]),
    maxPlayers: number(entry["max_players"]),
    version: text(entry["version"]),
  };
}

/** Reads the body of `servers.json`. */
export function readServers(body: unknown): Server[] {
  const servers = (body as { servers?: unknown } | null)?.servers;
  if (!Array.isArray(servers)) {
    throw new Error("the answer is malformed");
  }
  return servers.map(readServer);
}

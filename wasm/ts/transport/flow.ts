/** What a relay says of the flow of a connection. */

/** A flow of the relay, which another carrier can go on with. */
export interface Flow {
  secret: string;
  /** For so long after its carrier was lost. */
  withinMs: number;
}

/** The flow that a control message names, and whether it is the one whose secret was brought. */
export function readFlow(text: string): (Flow & { resumed: boolean }) | undefined {
  let said: { type?: unknown; resume?: unknown; resume_within_ms?: unknown; resumed?: unknown } | null;
  try {
    said = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { type, resume, resume_within_ms: withinMs, resumed } = said ?? {};
  return type === "flow" && typeof resume === "string" && typeof withinMs === "number"
    ? { secret: resume, withinMs, resumed: resumed === true }
    : undefined;
}

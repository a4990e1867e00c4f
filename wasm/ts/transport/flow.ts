/** What a relay says of the flow of a connection. */

/** The longest text that is read, and the longest time for which a relay is sought again, whatever the relay says. */
const MAX_TEXT = 4_096;
const MAX_WITHIN_MS = 600_000;

/** A flow of the relay, which another carrier can go on with. */
export interface Flow {
  secret: string;
  /** For so long after its carrier was lost. */
  withinMs: number;
}

/** The object in a control message; an empty one if there is none. */
export function readText(text: string): object {
  try {
    const said: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text);
    return typeof said === "object" && said !== null ? said : {};
  } catch {
    return {};
  }
}

/** The flow that the relay names, and whether it is the one whose secret was brought. */
export function readFlow(said: object): (Flow & { resumed: boolean }) | undefined {
  const { type, resume, resume_within_ms: withinMs, resumed } = said as Record<string, unknown>;
  return type === "flow" && typeof resume === "string" && typeof withinMs === "number"
    ? { secret: resume, withinMs: Math.min(withinMs, MAX_WITHIN_MS), resumed: resumed === true }
    : undefined;
}

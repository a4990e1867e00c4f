/** What the numbers of reasons and errors mean, as Rust says it: paragraphs of lines, each a code and its text. */

/** The paragraphs, as in `src/npm/texts/`. */
export const FAILURES = 0;
export const ENDS = 1;
export const ERRORS = 2;
export const DROPS = 3;

/** By paragraph and number. */
export type Texts = readonly (readonly (readonly [code: string, text: string])[])[];

/** Reads texts; of no bytes, as there was no memory for them, there are none. */
export function readTexts(bytes: Uint8Array | undefined): Texts {
  if (!bytes?.length) {
    return [];
  }
  const paragraphs = new TextDecoder().decode(bytes).split("\n\n");
  return paragraphs.map((paragraph) =>
    paragraph.split("\n").map((line) => {
      const [code = ""] = line.split(" ", 1);
      return [code, line.slice(code.length + 1)];
    }),
  );
}

/** The names of what is dropped. */
export function dropNames(texts: Texts): string[] {
  return (texts[DROPS] ?? []).map(([name]) => name);
}

/** Which paths a file may have. */

/** The longest path in bytes. */
const MAX_PATH = 255;

/**
 * The path, if a file may have it: relative, in UTF-8, 1 to 255 bytes, with `/` between parts of which none is empty, `.` or
 * `..`, and without backslashes, colons and control characters, which mean something to some system.
 */
export function checkPath(bytes: Uint8Array): string | undefined {
  if (bytes.length > MAX_PATH) {
    return undefined;
  }
  try {
    const path = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const isName = (part: string): boolean => part !== "" && part !== "." && part !== "..";
    return !/[\p{Cc}\\:]/u.test(path) && path.split("/").every(isName) ? path : undefined;
  } catch {
    return undefined;
  }
}

/** Which of two paths is first as bytes: negative if `a` is. */
export function comparePaths(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let index = 0; index < shared; index++) {
    if (a[index] !== b[index]) {
      return (a[index] as number) - (b[index] as number);
    }
  }
  return a.length - b.length;
}

/** How much may be on the way between a page and its worker. */

/** Messages that the page has not room for yet, and their bytes. */
export const WINDOW = 256;
export const WINDOW_BYTES = 1024 * 1024;
/** Bytes of messages that the connection has not taken yet. */
export const MAX_UNTAKEN_BYTES = 1024 * 1024;

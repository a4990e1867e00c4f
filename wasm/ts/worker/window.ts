/** How much may be on the way between a page and its worker. */

/** Messages that the page has not room for yet. */
export const WINDOW = 256;
/** Bytes of messages that the connection has not taken yet. */
export const MAX_UNTAKEN_BYTES = 1024 * 1024;

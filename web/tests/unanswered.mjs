/** Matches the page's messages for a server that did not answer in time, which may happen on a busy machine. */
export const UNANSWERED = /does not answer|has not answered|no connection within|cannot be reached/;

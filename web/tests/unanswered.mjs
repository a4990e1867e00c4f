/** What a page says when a server did not answer in time, as happens on a machine that does much else. */
export const UNANSWERED = /does not answer|has not answered|no connection within|cannot be reached/;

/** Message ids: the first byte of every message. */

/** The first id that an application may send; those below are reserved by RakNet (`reserved-id`). */
export const FIRST_ALLOWED_ID = 0x1b;

/** The first id that is free for applications; those from {@link FIRST_ALLOWED_ID} on are used by plugins of RakNet. */
export const FIRST_FREE_ID = 0x86;

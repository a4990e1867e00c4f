/** The first byte of a message is its id. */

/** The first id that an application may send; those below belong to RakNet itself (`reserved-id`). */
export const FIRST_ALLOWED_ID = 0x1b;

/** The first id that is free for applications; those from {@link FIRST_ALLOWED_ID} on belong to plugins of RakNet. */
export const FIRST_FREE_ID = 0x86;

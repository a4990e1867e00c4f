// Helpers for tests: messages, checks, and real servers that are stopped at the end of their test.

import assert from "node:assert/strict";

import { RakwireError } from "rakwire";

import { LIMIT_MS } from "./processes.mjs";

export * from "./processes.mjs";

/** The time in milliseconds after which a test repeats an unreliable message. */
const REPEAT_MS = 1_000;

/** Returns a message of this length with a byte pattern. */
export function pattern(length) {
  return Uint8Array.from({ length }, (_, index) => (index === 0 ? 0xfe : (index * 31 + (index >> 8)) & 0xff));
}

/** Returns a short message that contains a number. */
export function numbered(number) {
  return Uint8Array.of(0xfe, number >> 8, number & 0xff);
}

/** Returns the next message, which must exist. */
export async function next(connection) {
  const { value, done } = await connection.messages({ signal: AbortSignal.timeout(LIMIT_MS) }).next();
  assert.ok(!done, "the connection closed before the next message");
  return value;
}

/**
 * Sends a message until it is echoed, because an unreliable message may be lost. Returns the echo, and the number of
 * times that the message was sent.
 */
export async function echoOf(connection, bytes, options = {}) {
  let sent = 0;
  const send = () => {
    connection.send(bytes, options);
    sent += 1;
  };
  send();
  const repeat = options.reliability?.startsWith("unreliable") ? setInterval(send, REPEAT_MS) : undefined;
  try {
    for (;;) {
      const echo = await next(connection);
      // An echo of another length belongs to an earlier message that was repeated.
      if (echo.bytes.length === bytes.length) {
        return { ...echo, sent };
      }
    }
  } finally {
    clearInterval(repeat);
  }
}

/** Returns the numbers of the next messages. */
export async function nextNumbers(connection, count) {
  const numbers = [];
  while (numbers.length < count) {
    const { bytes } = await next(connection);
    numbers.push((bytes[1] << 8) | bytes[2]);
  }
  return numbers;
}

/**
 * Returns true if the server has acknowledged all messages of a burst, and their echoes fill the receive queue of the
 * connection.
 */
export function hasFullQueue(connection) {
  const { inFlight, bytesWaiting, messagesReceived } = connection.stats();
  return inFlight === 0 && bytesWaiting === 0 && messagesReceived >= 256;
}

/** Returns the code of the thrown error, if any. */
export function codeOf(work) {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.notEqual(error.message, "");
    return error.code;
  }
  return undefined;
}

/** Checks the code and the message of an error of the package. */
export const fails = (code, expected) => (error) => {
  assert.ok(error instanceof RakwireError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, expected);
  return true;
};

/**
 * The names and texts of reasons and errors. Rust says their numbers, which are places in these lists; a test of the crate
 * compares the texts and the order with those of the core.
 */

import type { ErrorCode } from "./errors.js";
import type { CloseCode, Protocol } from "./types.js";

/** Why a connection could not be opened. `{}` stands for a number that belongs to the reason. */
export const FAILURES: readonly (readonly [ErrorCode, string])[] = [
  ["failed", "the connection could not be opened"],
  ["no-answer", "the server does not answer"],
  ["failed", "the attempt was cancelled"],
  ["failed", "the server gave the attempt up"],
  ["already-connected", "the server has a connection of this address or GUID already"],
  ["server-full", "the server is full"],
  ["banned", "the server has banned this address"],
  ["recently-connected", "this address connected a moment ago; try again later"],
  ["incompatible-protocol", "the server speaks protocol version {}"],
  ["incompatible-protocol", "the server speaks protocol version {} and has been silent since it said so; it may hear nothing from this address for 20 s after a request with another version"],
  ["security-required", "the server wants an encrypted connection"],
  ["identity-required", "the server wants to know the client's identity"],
  ["invalid-identity", "the server does not believe the client's identity"],
  ["public-key-mismatch", "the server has another public key"],
  ["invalid-password", "the server wants another password"],
  ["closed-by-server", "the server ended the connection before it was open"],
  ["server-without-security", "the server has no security"],
];

/** Why a connection ended. */
export const ENDS: readonly (readonly [CloseCode, string])[] = [
  ["internal", "the connection has ended"],
  ["local", "this side disconnected"],
  ["remote", "the other peer disconnected"],
  ["lost", "the other peer fell silent"],
  ["message-too-large", "a message of the other peer is larger than a connection may hold"],
  ["receive-memory", "the other peer left gaps that hold too much memory"],
  ["message-unfinished", "the other peer began a message and never finished it"],
];

/** Why a call failed. */
export const ERRORS: readonly (readonly [ErrorCode, string])[] = [
  ["not-sent", "the message was not accepted"],
  ["not-connected", "the connection is not open"],
  ["empty-message", "a message must have at least one byte"],
  ["reserved-id", "the first byte is below 0x1B and belongs to RakNet itself"],
  ["too-long", "a message has at most 129,024 bytes; send it in several"],
  ["too-long", "the message is larger than one connection may hold; send it in pieces"],
  ["queue-full", "the connection holds as much as it may; try again later"],
  ["queue-full", "the peer holds as much as it can; try again later"],
  ["bad-option", "there is no such reliability, channel or priority"],
  ["bad-option", "a password has at most 255 bytes"],
  ["no-memory", "there is no memory for the password"],
  ["already-connected", "a connection with this address exists already"],
];

/** Why something was dropped. */
export const DROPS: Readonly<Record<Protocol, string>> = {
  raknet:
    "tooShort badOffline badDatagram unknownSource unexpected badCookie wouldAmplify answersFull duplicateDatagram outsideWindow duplicateMessage outOfSequence noMemory badSplit badControl reservedId expired tooManyRecords pongLimit banned halfOpenLimit unauthentic handshakeLimit",
  game: "tooShort unknownSource unexpected challengeLimit answersFull full badChunk duplicate outsideWindow incomplete expired noMemory acknowledgementsFull unknownAcknowledgement ended",
};

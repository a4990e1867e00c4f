/** Why a call has no answer. */

import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import { REASONS } from "./wire.js";

const MAX_FAILURE = 255;

/** Thrown by a function that fails, with a code of its own; and at who has called it. */
export class FunctionError extends RakwireError {
  /** The code, 0 to 255. */
  readonly failure: number;

  constructor(failure: number) {
    super("function-failed", `the function failed with code ${failure}`);
    if (!Number.isInteger(failure) || failure < 0 || failure > MAX_FAILURE) {
      throw new RakwireError("bad-option", `the code of a failure must be 0 to ${MAX_FAILURE}, not ${String(failure)}`);
    }
    this.failure = failure;
  }
}

const REFUSALS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [REASONS.unknown]: ["unknown-function", "the other peer has no function of this name"],
  [REASONS.forbidden]: ["forbidden", "the other peer does not let this one call the function"],
  [REASONS.badArguments]: ["bad-arguments", "the arguments are not those of the function"],
  [REASONS.answerTooLong]: ["answer-too-long", "the answer does not fit into a message"],
  [REASONS.busy]: ["busy", "the other peer has too many calls to answer; try again a little later"],
  [REASONS.answerDropped]: ["refused", "the function has run, and its answer was dropped for want of room"],
  [REASONS.otherSchema]: ["other-schema", "the other peer has this function with other arguments or another answer; run the same version there"],
};

/** What a refusal of the other peer is for who has called. */
export function refusalError(reason: number, code: number): RakwireError {
  if (reason === REASONS.failed) {
    return new FunctionError(code);
  }
  const [errorCode, text] = REFUSALS[reason] ?? ["refused", `the call was refused for a reason unknown here, ${reason}`];
  return new RakwireError(errorCode, text);
}

/** Remote calls: functions of the other peer by name, with an answer, and signals to any number of handlers. */

export { FunctionError } from "./calls/failures.js";
export type { Caller, Handler } from "./calls/registered.js";
export { RemoteCalls } from "./calls/remote-calls.js";
export type { CallLimits, CallOptions, CallStats } from "./calls/remote-calls.js";
export { bitStream } from "./calls/schema.js";
export type {
  Answer,
  Arguments,
  CallSchema,
  Encoding,
  FunctionName,
  FunctionSchema,
  FunctionsOf,
  SignalName,
  SignalsOf,
  SignalValue,
  ValueOf,
  ValueSchema,
} from "./calls/schema.js";
export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

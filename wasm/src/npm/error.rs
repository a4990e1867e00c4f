//! Errors with a stable `code`, as JavaScript throws them.

use core::fmt::Display;

use rakwire::endpoint::{ConnectError, SendError};
use wasm_bindgen::prelude::*;

use crate::client::OutOfMemory;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = Error)]
    type CodedError;

    #[wasm_bindgen(constructor, js_class = "Error")]
    fn new(message: &str) -> CodedError;

    #[wasm_bindgen(method, setter, structural)]
    fn set_code(this: &CodedError, code: &str);
}

/// A JavaScript `Error` with this code and message.
pub(super) fn error(code: &str, message: &dyn Display) -> JsValue {
    let error = CodedError::new(&message.to_string());
    error.set_code(code);
    error.into()
}

pub(super) fn connect_error(cause: ConnectError) -> JsValue {
    let code = match cause {
        ConnectError::PasswordTooLong => "bad-option",
        ConnectError::NoMemory => "no-memory",
        ConnectError::AlreadyConnected | ConnectError::Full | _ => "already-connected",
    };
    error(code, &cause)
}

/// The error of a peer that would need more memory than there is.
pub(super) fn out_of_memory(_: OutOfMemory) -> JsValue {
    error("no-memory", &"there is not so much memory; give the connection fewer or smaller blocks")
}

/// Whether a message would be accepted now; only what waiting does not change is an error.
pub(super) fn is_accepted(result: Result<(), SendError>) -> Result<bool, JsValue> {
    match result {
        Ok(()) => Ok(true),
        Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Ok(false),
        Err(cause) => Err(send_error(cause)),
    }
}

pub(super) fn send_error(cause: SendError) -> JsValue {
    let code = match cause {
        SendError::NotConnected => "not-connected",
        SendError::Empty => "empty-message",
        SendError::ReservedId => "reserved-id",
        SendError::TooLong | SendError::NeverFits => "too-long",
        SendError::QuotaExceeded | SendError::PoolExhausted => "queue-full",
        SendError::Filtered | _ => "not-sent",
    };
    error(code, &cause)
}

/// The random bytes that a peer needs.
pub(super) fn read_entropy(entropy: &[u8]) -> Result<[u8; 32], JsValue> {
    entropy.try_into().map_err(|_| error("bad-entropy", &"32 random bytes are needed"))
}

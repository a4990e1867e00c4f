//! Result codes, their descriptions, and the text of the last error.
//!
//! Setting an error allocates nothing after the first error of a thread, because a signal handler may cause one while the
//! program allocates.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::fmt::{self, Display, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The call succeeded.
pub const RAKWIRE_OK: i32 = 0;
/// A required pointer is null.
pub const RAKWIRE_ERROR_NULL: i32 = -1;
/// A struct pointer is not aligned.
pub const RAKWIRE_ERROR_MISALIGNED: i32 = -2;
/// The `size` field of a struct does not match any version of that struct.
pub const RAKWIRE_ERROR_SIZE: i32 = -3;
/// The endpoint, message or request handle is 0, was closed, released or decided, belongs to another endpoint, or never existed.
pub const RAKWIRE_ERROR_HANDLE: i32 = -4;
/// The endpoint belongs to another thread.
pub const RAKWIRE_ERROR_THREAD: i32 = -5;
/// An argument is outside its range.
pub const RAKWIRE_ERROR_ARGUMENT: i32 = -6;
/// A string is not valid UTF-8, or is not NUL-terminated within 1,024 bytes.
pub const RAKWIRE_ERROR_STRING: i32 = -7;
/// The endpoint has no such connection.
pub const RAKWIRE_ERROR_NO_CONNECTION: i32 = -8;
/// The connection is not open.
pub const RAKWIRE_ERROR_NOT_CONNECTED: i32 = -9;
/// The address cannot be parsed or resolved, or is not a valid destination.
pub const RAKWIRE_ERROR_ADDRESS: i32 = -10;
/// An IPv4 socket cannot send to an IPv6 address.
pub const RAKWIRE_ERROR_ADDRESS_FAMILY: i32 = -11;
/// The system could not bind the socket, for example because the port is in use.
pub const RAKWIRE_ERROR_BIND: i32 = -12;
/// The endpoint already has a connection to this address.
pub const RAKWIRE_ERROR_ALREADY_CONNECTED: i32 = -13;
/// The endpoint has reached its limit of connections, pings or bans.
pub const RAKWIRE_ERROR_FULL: i32 = -14;
/// The message is empty; it needs at least one byte.
pub const RAKWIRE_ERROR_EMPTY: i32 = -15;
/// The first byte of a message is below 0x1B, which RakNet reserves.
pub const RAKWIRE_ERROR_RESERVED_ID: i32 = -16;
/// The message, password or other data is longer than allowed.
pub const RAKWIRE_ERROR_TOO_LONG: i32 = -17;
/// The send memory of the connection or endpoint is full. Retry after rakwire_update().
pub const RAKWIRE_ERROR_NO_ROOM: i32 = -18;
/// This build of the library was compiled without the feature.
pub const RAKWIRE_ERROR_UNSUPPORTED: i32 = -19;
/// The operating system returned an error, for example for random bytes or a file.
pub const RAKWIRE_ERROR_SYSTEM: i32 = -20;
/// The caller's buffer is too small. The required length is stored in the length argument, if the function has one.
pub const RAKWIRE_ERROR_BUFFER: i32 = -21;
/// The combination of keys, trust, identity and token is invalid.
pub const RAKWIRE_ERROR_SECURITY: i32 = -22;
/// A bug in the library. Memory stays valid, but close the endpoint.
pub const RAKWIRE_ERROR_BUG: i32 = -23;

/// Returns the general description of a result code.
const fn describe(code: i32) -> &'static CStr {
    match code {
        RAKWIRE_OK => c"success",
        RAKWIRE_ERROR_NULL => c"a required pointer is null",
        RAKWIRE_ERROR_MISALIGNED => c"a pointer to a struct is not aligned",
        RAKWIRE_ERROR_SIZE => {
            c"the size of a struct is wrong: initialise the struct, or set `size` to its sizeof"
        }
        RAKWIRE_ERROR_HANDLE => {
            c"the handle is 0, was closed or released, belongs to another endpoint, or never existed"
        }
        RAKWIRE_ERROR_THREAD => {
            c"the endpoint belongs to another thread: only the thread that opened it may use it"
        }
        RAKWIRE_ERROR_ARGUMENT => c"an argument is outside its range",
        RAKWIRE_ERROR_STRING => c"a string is not UTF-8, or is not NUL-terminated within 1024 bytes",
        RAKWIRE_ERROR_NO_CONNECTION => c"the endpoint has no such connection",
        RAKWIRE_ERROR_NOT_CONNECTED => c"the connection is not open",
        RAKWIRE_ERROR_ADDRESS => c"the address cannot be parsed or resolved",
        RAKWIRE_ERROR_ADDRESS_FAMILY => c"an IPv4 socket cannot reach an IPv6 address",
        RAKWIRE_ERROR_BIND => c"the system could not bind the socket; the port may be in use",
        RAKWIRE_ERROR_ALREADY_CONNECTED => {
            c"the endpoint already has a connection to this address: close it first"
        }
        RAKWIRE_ERROR_FULL => c"the endpoint has reached its limit of connections, pings or bans",
        RAKWIRE_ERROR_EMPTY => c"a message needs at least one byte",
        RAKWIRE_ERROR_RESERVED_ID => c"the first byte of a message is below 0x1B, which RakNet reserves",
        RAKWIRE_ERROR_TOO_LONG => c"the message, password or other data is longer than allowed",
        RAKWIRE_ERROR_NO_ROOM => c"the send memory is full: try again after an update",
        RAKWIRE_ERROR_UNSUPPORTED => c"this build of the library lacks the feature",
        RAKWIRE_ERROR_SYSTEM => c"the operating system returned an error",
        RAKWIRE_ERROR_BUFFER => c"the buffer is too small",
        RAKWIRE_ERROR_SECURITY => c"the combination of keys, trust, identity and token is invalid",
        RAKWIRE_ERROR_BUG => c"the library has a bug",
        _ => c"unknown result",
    }
}

/// The failure of a call. It fits in a register, which keeps successful calls fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    text: Text,
}

/// The source of the description of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    /// The general description of the code.
    General,
    /// The text in [`DESCRIPTION`].
    Own,
    /// [`REENTRANT`].
    Reentrant,
}

/// The description of a call that interrupts another call. It is not stored in [`DESCRIPTION`], which the interrupted call may use.
const REENTRANT: &str = "the library was called while it was running, for example by a signal handler";

impl Failure {
    /// Creates a failure with the general description of its code.
    pub(crate) const fn new(code: i32) -> Self {
        Self { code, text: Text::General }
    }

    /// Creates the failure of a call that interrupts another call, as in a signal handler.
    pub(crate) const fn reentrant() -> Self {
        Self { code: RAKWIRE_ERROR_BUG, text: Text::Reentrant }
    }

    /// Creates a failure with its own description. If a call creates several, the last description is reported.
    #[cold]
    pub(crate) fn with(code: i32, text: impl Display) -> Self {
        // While the thread is shutting down, the description is not available. An interrupted call may be writing it.
        let written = DESCRIPTION.try_with(|description| {
            let Ok(mut description) = description.try_borrow_mut() else { return false };
            description.clear();
            // A description that is too long is truncated.
            let _ = write!(description, "{text}");
            true
        });
        Self { code, text: if written == Ok(true) { Text::Own } else { Text::General } }
    }

    /// Sets the last error and returns the code.
    #[cold]
    fn report(self) -> i32 {
        let own = |description: &RefCell<FixedText>| {
            description.try_borrow().map(|description| set_last_error(description.as_str())).is_ok()
        };
        match self.text {
            Text::Own if DESCRIPTION.try_with(own) == Ok(true) => {}
            Text::General | Text::Own => set_last_error(describe(self.code).to_str().unwrap_or_default()),
            Text::Reentrant => set_last_error(REENTRANT),
        }
        self.code
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

thread_local! {
    /// The description of the last [`Failure`] that was created by [`Failure::with`]. It must not overwrite the last
    /// error: the program may pass that string to a call, and the call reads it until it has failed.
    static DESCRIPTION: RefCell<FixedText> = const { RefCell::new(FixedText::new()) };
    /// The text of the last error.
    static LAST_ERROR: RefCell<FixedText> = const { RefCell::new(FixedText::new()) };
}

fn set_last_error(text: impl Display) {
    // While the thread is shutting down, the text is not available. An interrupted call may be writing it.
    let _ = LAST_ERROR.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last.clear();
            // A text that is too long is truncated.
            let _ = write!(last, "{text}");
        }
    });
}

/// The memory of a text in bytes, enough for the longest string of a caller and a description of its fault.
const TEXT_MEMORY: usize = 1_024 + 256;

/// A NUL-terminated text in a buffer of fixed size.
struct FixedText {
    length: usize,
    /// The text. The bytes after it are not cleared, except for the first, which is 0.
    bytes: [u8; TEXT_MEMORY],
}

impl FixedText {
    const fn new() -> Self {
        Self { length: 0, bytes: [0; TEXT_MEMORY] }
    }

    fn clear(&mut self) {
        self.length = 0;
        self.bytes[0] = 0;
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

/// Omits zero bytes. If the text does not fit, writes the characters that do, and fails.
impl Write for FixedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars().filter(|character| *character != '\0') {
            let end = self.length + character.len_utf8();
            if end >= TEXT_MEMORY {
                return Err(fmt::Error);
            }
            character.encode_utf8(&mut self.bytes[self.length..end]);
            self.bytes[end] = 0;
            self.length = end;
        }
        Ok(())
    }
}

/// Runs the body of an exported function. Catches panics, and converts a failure to its code and the last error.
pub(crate) fn guard(body: impl FnOnce() -> Outcome<i32>) -> i32 {
    let result = || body().unwrap_or_else(Failure::report);
    catch_unwind(AssertUnwindSafe(result)).unwrap_or_else(report_panic)
}

/// Makes the message of a panic the last error.
#[cold]
fn report_panic(payload: Box<dyn Any + Send>) -> i32 {
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    set_last_error(format_args!("the library has a bug: {}", message.unwrap_or("no message")));
    // Dropping a foreign payload may panic again.
    std::mem::forget(payload);
    RAKWIRE_ERROR_BUG
}

/// Returns the description of the last failed call on this thread, or an empty string. Valid until the next failed call on this
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_last_error() -> *const c_char {
    let text = LAST_ERROR.try_with(|last| {
        let last = last.try_borrow().ok()?;
        Some(last.bytes.as_ptr().cast::<c_char>())
    });
    text.ok().flatten().unwrap_or_else(|| c"".as_ptr())
}

/// Returns the general description of a result code. The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn rakwire_result_text(result: i32) -> *const c_char {
    describe(result.min(0)).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        // SAFETY: the library returns a NUL-terminated string.
        unsafe { CStr::from_ptr(rakwire_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_returns_the_bug_code_and_its_message() {
        let code = guard(|| panic!("number {}", 7));
        assert_eq!((code, last_error().as_str()), (RAKWIRE_ERROR_BUG, "the library has a bug: number 7"));
    }

    #[test]
    fn a_long_panic_message_is_truncated() {
        guard(|| panic!("{}", "x".repeat(10_000)));
        assert_eq!(last_error().len(), TEXT_MEMORY - 1);
    }

    #[test]
    fn a_long_description_is_truncated_at_the_end_of_a_character() {
        for before in 0..4 {
            let text = format!("{}{}", "x".repeat(before), "\u{1F600}".repeat(TEXT_MEMORY));
            guard(|| Err(Failure::with(RAKWIRE_ERROR_ADDRESS, &text)));
            let last = last_error();
            assert!(text.starts_with(&last), "{last}");
            assert!((TEXT_MEMORY - 4..TEXT_MEMORY).contains(&last.len()), "{}", last.len());
        }
    }

    #[test]
    fn a_failure_reports_its_own_text_without_zero_bytes() {
        assert_eq!(guard(|| Err(Failure::with(RAKWIRE_ERROR_ADDRESS, "a\0b"))), RAKWIRE_ERROR_ADDRESS);
        assert_eq!(last_error(), "ab");
        assert_eq!(guard(|| Err(Failure::new(RAKWIRE_ERROR_EMPTY))), RAKWIRE_ERROR_EMPTY);
        assert_eq!(last_error(), "a message needs at least one byte");
    }

    #[test]
    fn the_last_error_is_readable_during_the_next_failed_call() {
        guard(|| Err(Failure::with(RAKWIRE_ERROR_ADDRESS, "first")));
        // SAFETY: the library returns a NUL-terminated string, which stays valid until the next failed call returns.
        let first = unsafe { CStr::from_ptr(rakwire_last_error()) };
        guard(|| {
            let failure = Failure::with(RAKWIRE_ERROR_ADDRESS, format_args!("{first:?}, second"));
            assert_eq!(last_error(), "first");
            Err(failure)
        });
        assert_eq!(last_error(), "\"first\", second");
    }
}

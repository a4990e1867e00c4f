//! The wire format of remote calls (docs/plugins/calls.md).

use heapless::Vec;

/// The first byte of every message of this plugin.
pub const MESSAGE_ID: u8 = 127;
/// The maximum length of the name of a function or signal, in bytes.
pub const MAX_NAME: usize = 64;
/// The maximum length of a message without its arguments or answer, in bytes.
pub const MAX_HEADER: usize = 7 + MAX_NAME + MAX_SCHEMA;
/// The length of a refusal, in bytes.
pub(super) const REFUSAL_BYTES: usize = 8;
/// The length of a fingerprint after arguments, in bytes.
pub(super) const MAX_SCHEMA: usize = 8;

const CALL: u8 = 0;
const ANSWER: u8 = 1;
const REFUSAL: u8 = 2;
const SIGNAL: u8 = 3;

/// The reason why the remote peer refused a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// No function of this name is registered.
    Unknown,
    /// The caller is not allowed to call it.
    Forbidden,
    /// The arguments could not be decoded.
    BadArguments,
    /// The answer exceeds the maximum length.
    AnswerTooLong,
    /// The function failed with this code.
    Failed(u8),
    /// Too many answers to the caller are queued or pending at the remote peer. The function did not run:
    /// retry later, or have fewer calls in progress.
    Busy,
    /// The function ran, but its answer was dropped to free a slot for another caller's answer.
    AnswerDropped,
    /// The function is registered with other argument or answer types, and did not run.
    SchemaMismatch,
    /// A reason that this version does not define.
    Other(u8),
}

impl Refusal {
    const fn codes(self) -> (u8, u8) {
        match self {
            Self::Unknown => (0, 0),
            Self::Forbidden => (1, 0),
            Self::BadArguments => (2, 0),
            Self::AnswerTooLong => (3, 0),
            Self::Failed(code) => (4, code),
            Self::Busy => (5, 0),
            Self::AnswerDropped => (6, 0),
            Self::SchemaMismatch => (7, 0),
            Self::Other(kind) => (kind, 0),
        }
    }

    const fn of(kind: u8, code: u8) -> Self {
        match kind {
            0 => Self::Unknown,
            1 => Self::Forbidden,
            2 => Self::BadArguments,
            3 => Self::AnswerTooLong,
            4 => Self::Failed(code),
            5 => Self::Busy,
            6 => Self::AnswerDropped,
            7 => Self::SchemaMismatch,
            _ => Self::Other(kind),
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown => f.write_str("the remote peer has no function of this name"),
            Self::Forbidden => f.write_str("this peer is not allowed to call the function"),
            Self::BadArguments => f.write_str("the arguments are not those of the function"),
            Self::AnswerTooLong => f.write_str("the answer does not fit into a message"),
            Self::Failed(code) => write!(f, "the function failed with code {code}"),
            Self::Busy => {
                f.write_str("the remote peer has too many calls to answer; retry later")
            }
            Self::AnswerDropped => {
                f.write_str("the function ran, but its answer was dropped because too many answers were queued; call again if that is safe")
            }
            Self::SchemaMismatch => f.write_str(
                "the remote peer registered this function with other argument or answer types; run the same version on both",
            ),
            Self::Other(kind) => write!(f, "the call was refused with the unknown code {kind}"),
        }
    }
}

impl core::error::Error for Refusal {}

/// A message. Numbers are big-endian; the data after the header are in Rabbit or a bit stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'m> {
    /// Calls a function and requests an answer.
    Call {
        /// The call number, chosen by the caller and repeated in the answer.
        number: u32,
        /// The name of the function, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
        /// The arguments.
        arguments: &'m [u8],
    },
    /// Answers a call.
    Answer {
        /// The number of the call.
        number: u32,
        /// The answer.
        answer: &'m [u8],
    },
    /// Refuses a call.
    Refusal {
        /// The number of the call.
        number: u32,
        /// The reason.
        refusal: Refusal,
    },
    /// Sends a signal, which has no answer.
    Signal {
        /// The name of the signal, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
        /// The arguments.
        arguments: &'m [u8],
    },
}

impl<'m> Message<'m> {
    /// Encodes the message at the start of a buffer. Returns its length, or `None` if it does not fit.
    #[must_use]
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            let end = at + bytes.len();
            buffer.get_mut(at..end)?.copy_from_slice(bytes);
            at = end;
            Some(())
        };
        match *self {
            Self::Call { number, name, arguments } => {
                put(&[MESSAGE_ID, CALL])?;
                put(&number.to_be_bytes())?;
                put(&[length(name)?])?;
                put(name)?;
                put(arguments)?;
            }
            Self::Answer { number, answer } => {
                put(&[MESSAGE_ID, ANSWER])?;
                put(&number.to_be_bytes())?;
                put(answer)?;
            }
            Self::Refusal { number, refusal } => {
                let (kind, code) = refusal.codes();
                put(&[MESSAGE_ID, REFUSAL])?;
                put(&number.to_be_bytes())?;
                put(&[kind, code])?;
            }
            Self::Signal { name, arguments } => {
                put(&[MESSAGE_ID, SIGNAL, length(name)?])?;
                put(name)?;
                put(arguments)?;
            }
        }
        Some(at)
    }

    /// Decodes a message. Returns `None` if it is malformed.
    #[must_use]
    pub fn decode(bytes: &'m [u8]) -> Option<Self> {
        let (&[id, kind], rest) = bytes.split_first_chunk()?;
        if id != MESSAGE_ID {
            return None;
        }
        if kind == SIGNAL {
            let (name, arguments) = split_name(rest)?;
            return Some(Self::Signal { name, arguments });
        }
        let (number, rest) = rest.split_first_chunk()?;
        let number = u32::from_be_bytes(*number);
        match kind {
            CALL => {
                let (name, arguments) = split_name(rest)?;
                Some(Self::Call { number, name, arguments })
            }
            ANSWER => Some(Self::Answer { number, answer: rest }),
            REFUSAL => {
                let (&[kind, code], _) = rest.split_first_chunk()?;
                Some(Self::Refusal { number, refusal: Refusal::of(kind, code) })
            }
            _ => None,
        }
    }
}

/// Encodes a message. Returns `None` if it is too long.
pub(super) fn encoded<const BYTES: usize>(message: &Message<'_>) -> Option<Vec<u8, BYTES>> {
    let mut bytes = Vec::new();
    bytes.resize(BYTES, 0).ok()?;
    let length = message.encode(&mut bytes)?;
    bytes.truncate(length);
    Some(bytes)
}

fn length(name: &[u8]) -> Option<u8> {
    u8::try_from(name.len()).ok().filter(|_| name.len() <= MAX_NAME)
}

fn split_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let length = usize::from(*length);
    if length > MAX_NAME { None } else { rest.split_at_checked(length) }
}

//! The bytes of remote calls (docs/plugins/calls.md).

/// The first byte of every message of this plugin.
pub const MESSAGE_ID: u8 = 127;
/// The longest name of a function or signal in bytes.
pub const MAX_NAME: usize = 64;
/// The most bytes of a message beside arguments or an answer.
pub const MAX_HEADER: usize = 7 + MAX_NAME + MAX_SCHEMA;
/// The bytes of a refusal.
pub(super) const REFUSAL_BYTES: usize = 8;
/// The bytes of a fingerprint behind arguments.
pub(super) const MAX_SCHEMA: usize = 8;

const CALL: u8 = 0;
const ANSWER: u8 = 1;
const REFUSAL: u8 = 2;
const SIGNAL: u8 = 3;

/// Why a call was refused at the other peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// No function of this name is registered.
    Unknown,
    /// The caller may not call it.
    Forbidden,
    /// The arguments are not those of the function.
    BadArguments,
    /// The answer is longer than an answer may be.
    AnswerTooLong,
    /// The function failed, with a code of its own.
    Failed(u8),
    /// Too many answers for the caller, or answers to give later, wait at the other peer. The function has not run: try again a
    /// little later, or have fewer calls under way.
    Busy,
    /// The function has run, and its answer had to make room for that of another caller.
    AnswerDropped,
    /// The function is registered with other types of arguments or answers, and has not run.
    OtherSchema,
    /// Another reason, which this version does not know.
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
            Self::OtherSchema => (7, 0),
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
            7 => Self::OtherSchema,
            _ => Self::Other(kind),
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown => f.write_str("the other peer has no function of this name"),
            Self::Forbidden => f.write_str("the other peer does not let this one call the function"),
            Self::BadArguments => f.write_str("the arguments are not those of the function"),
            Self::AnswerTooLong => f.write_str("the answer does not fit into a message"),
            Self::Failed(code) => write!(f, "the function failed with code {code}"),
            Self::Busy => {
                f.write_str("the other peer has too many calls to answer; try again a little later")
            }
            Self::AnswerDropped => {
                f.write_str("the function has run, and its answer was dropped for want of room")
            }
            Self::OtherSchema => f.write_str(
                "the other peer has this function with other arguments or another answer; run the same version there",
            ),
            Self::Other(kind) => write!(f, "the call was refused for a reason unknown here, {kind}"),
        }
    }
}

impl core::error::Error for Refusal {}

/// A message. Numbers are big-endian; what follows a header is in Rabbit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'m> {
    /// A function is called, and its answer is wanted under a number.
    Call {
        /// The number, of the caller's choice.
        number: u32,
        /// Whose function, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
        /// The arguments.
        arguments: &'m [u8],
    },
    /// What a call has come to.
    Answer {
        /// The number of the call.
        number: u32,
        /// The answer.
        answer: &'m [u8],
    },
    /// Why a call has come to nothing.
    Refusal {
        /// The number of the call.
        number: u32,
        /// Why.
        refusal: Refusal,
    },
    /// A signal is given, to which nobody answers.
    Signal {
        /// Which signal, up to [`MAX_NAME`] bytes.
        name: &'m [u8],
        /// The arguments.
        arguments: &'m [u8],
    },
}

impl<'m> Message<'m> {
    /// Writes the message to the front of a buffer, and returns its length; nothing if it does not fit.
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

    /// What the bytes say; nothing if they say nothing.
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

fn length(name: &[u8]) -> Option<u8> {
    u8::try_from(name.len()).ok().filter(|_| name.len() <= MAX_NAME)
}

fn split_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let length = usize::from(*length);
    if length > MAX_NAME { None } else { rest.split_at_checked(length) }
}

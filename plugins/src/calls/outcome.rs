//! Names of calls, and how calls end.

use heapless::Vec;
use rakwire::codec::rabbit::unpack;
use rakwire::endpoint::{ConnectionId, SendError};

use super::{Function, Refusal};

const BAD_NAME: &str = "a name has 1 to 64 bytes";

/// Names a call. A name comes again after four billion others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(super) number: u32,
    pub(super) to: ConnectionId,
}

/// Why something was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is no room for another one: give the plugin more.
    Full,
    /// A function of this name is registered.
    NameTaken,
    /// A name has 1 to [`MAX_NAME`](super::MAX_NAME) bytes.
    BadName,
}

impl core::fmt::Display for RegisterError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "there is no room for another function; give the plugin more",
            Self::NameTaken => "a function of this name is registered",
            Self::BadName => BAD_NAME,
        })
    }
}

impl core::error::Error for RegisterError {}

/// Why a call or a signal was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// As many calls are under way, or have ended without the application knowing, as there may be.
    TooManyCalls,
    /// The message would be longer than messages may be.
    TooLong,
    /// A name has 1 to [`MAX_NAME`](super::MAX_NAME) bytes.
    BadName,
    /// The endpoint of the plugin is closed, so that nothing is sent any more.
    EndpointClosed,
}

impl core::fmt::Display for CallError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooManyCalls => "too many calls are under way; wait until some have ended",
            Self::TooLong => {
                "the message is longer than messages may be; pass less, or give the plugin more bytes"
            }
            Self::BadName => BAD_NAME,
            Self::EndpointClosed => "the endpoint is closed",
        })
    }
}

impl core::error::Error for CallError {}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailure {
    /// The other peer has refused it.
    Refused(Refusal),
    /// No answer came in time. The function may have run.
    TimedOut,
    /// The connection has ended. The function may have run.
    Disconnected,
    /// What came is no answer of this function.
    BadAnswer,
    /// It could not be sent.
    NotSent(SendError),
}

impl core::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::TimedOut => f.write_str("no answer came in time"),
            Self::Disconnected => f.write_str("the connection has ended"),
            Self::BadAnswer => f.write_str("what came is no answer of this function"),
            Self::NotSent(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CallFailure {}

/// A call that has ended.
#[derive(Clone, Debug)]
pub struct Finished<const BYTES: usize> {
    /// The call.
    pub id: CallId,
    pub(super) outcome: Result<Vec<u8, BYTES>, CallFailure>,
}

impl<const BYTES: usize> Finished<BYTES> {
    /// The end of a call of which nothing else is known.
    #[cfg(feature = "native")]
    pub(crate) const fn lost(id: CallId) -> Self {
        Self { id, outcome: Err(CallFailure::Disconnected) }
    }

    /// What the function has answered. `F` must be what was called.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn answer<F: Function>(&self) -> Result<F::Answer<'_>, CallFailure> {
        let bytes = self.outcome.as_ref().map_err(|failure| *failure)?;
        unpack(bytes).map_err(|_| CallFailure::BadAnswer)
    }
}

/// Counters of [`RemoteCalls`](super::RemoteCalls) and of [`Rpc4`](super::rpc4::Rpc4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Functions that were run for others.
    pub calls: u64,
    /// Signals that came.
    pub signals: u64,
    /// Calls that were refused, for whatever reason, and signals that nobody was allowed to give.
    pub refused: u64,
    /// Calls that were refused ([`Refusal::Busy`]), since too many answers for the caller wait to be sent or to be given, and answers
    /// that were dropped ([`Refusal::AnswerDropped`]), since others need their places.
    pub busy: u64,
    /// Answers, refusals and signals that the connection does not take, now or later: it has ended, a hook drops them, or they are
    /// longer than it can ever take. Whoever called is told of the last by [`Refusal::AnswerTooLong`], and in RPC4, which has no word
    /// for it, by an empty answer. There calls without an answer count here, too.
    pub unsent: u64,
    /// Messages that say nothing, or are longer than messages may be.
    pub malformed: u64,
    /// Answers to calls that nobody waits for: they are late, or nobody has called.
    pub unexpected: u64,
    /// Calls and signals whose types are not the same at both peers ([`RemoteCalls::poll_mismatch`](super::RemoteCalls::poll_mismatch)).
    /// They have not run. RPC4 knows no types.
    pub mismatched: u64,
}

/// Another peer passes other values to a function or a signal, or takes others, than this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The other peer.
    pub peer: ConnectionId,
    /// What it has called or given, if that is registered here; `None` if it has refused a call.
    pub name: Option<&'static str>,
}

//! Identifiers of calls, and the ways in which calls end.

use heapless::Vec;
use rakwire::codec::rabbit::unpack;
use rakwire::endpoint::{ConnectionId, SendError};

use super::{Function, Refusal};

const BAD_NAME: &str = "a name has 1 to 64 bytes";

/// The identifier of a call. It is reused after four billion other calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(super) number: u32,
    pub(super) to: ConnectionId,
}

/// The reason why a function or a handler was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// There is no room for another one: give the plugin more room.
    Full,
    /// A function of this name is registered.
    NameTaken,
    /// A name has 1 to [`MAX_NAME`](super::MAX_NAME) bytes.
    BadName,
}

impl core::fmt::Display for RegisterError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "there is no room for another function; give the plugin more room",
            Self::NameTaken => "a function of this name is already registered",
            Self::BadName => BAD_NAME,
        })
    }
}

impl core::error::Error for RegisterError {}

/// The reason why a call or a signal was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The maximum number of calls is under way or has ended without being polled.
    TooManyCalls,
    /// The message exceeds the maximum length.
    TooLong,
    /// A name has 1 to [`MAX_NAME`](super::MAX_NAME) bytes.
    BadName,
    /// The endpoint of the plugin is closed, so nothing is sent any more.
    EndpointClosed,
}

impl core::fmt::Display for CallError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooManyCalls => "too many calls are under way; wait until some have ended",
            Self::TooLong => {
                "the message exceeds the maximum length; pass less data, or give the plugin more bytes"
            }
            Self::BadName => BAD_NAME,
            Self::EndpointClosed => "the endpoint is closed",
        })
    }
}

impl core::error::Error for CallError {}

/// The reason why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailure {
    /// The remote peer has refused it.
    Refused(Refusal),
    /// No answer came in time. The function may have run.
    TimedOut,
    /// The connection has ended. The function may have run.
    Disconnected,
    /// The reply is not an answer of this function.
    BadAnswer,
    /// It could not be sent.
    NotSent(SendError),
}

impl core::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::TimedOut => f.write_str("no answer arrived in time"),
            Self::Disconnected => f.write_str("the connection has ended"),
            Self::BadAnswer => f.write_str("the reply is not an answer of this function"),
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
    /// The result of a call after its plugin was dropped.
    #[cfg(feature = "native")]
    pub(crate) const fn lost(id: CallId) -> Self {
        Self { id, outcome: Err(CallFailure::Disconnected) }
    }

    /// Returns the answer of the function. `F` must be the function that was called.
    ///
    /// # Errors
    /// The reason why there is no answer.
    pub fn answer<F: Function>(&self) -> Result<F::Answer<'_>, CallFailure> {
        let bytes = self.outcome.as_ref().map_err(|failure| *failure)?;
        unpack(bytes).map_err(|_| CallFailure::BadAnswer)
    }
}

/// Counters of [`RemoteCalls`](super::RemoteCalls) and of [`Rpc4`](super::rpc4::Rpc4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Functions that ran for remote peers.
    pub calls: u64,
    /// Signals that arrived.
    pub signals: u64,
    /// Calls that were refused for any reason, and signals that their sender was not allowed to send.
    pub refused: u64,
    /// Calls and answers that were dropped because too many answers were queued.
    ///
    /// Calls are refused ([`Refusal::Busy`]) if too many answers for the caller are queued or pending. Answers are
    /// dropped ([`Refusal::AnswerDropped`]) to make room for those of others.
    pub busy: u64,
    /// Answers, refusals and signals that the connection does not accept.
    ///
    /// It has ended, a hook drops them, or they exceed its maximum length. In the last case the caller gets
    /// [`Refusal::AnswerTooLong`], or an empty answer in RPC4, which has no such error. In RPC4, calls without an
    /// answer count here too.
    pub unsent: u64,
    /// Messages that are malformed or too long.
    pub malformed: u64,
    /// Answers to calls that are not under way: late or never requested.
    pub unexpected: u64,
    /// Calls and signals with types that differ between the peers, which have not run.
    ///
    /// [`RemoteCalls::poll_mismatch`](super::RemoteCalls::poll_mismatch) returns the latest. RPC4 does not compare
    /// types.
    pub mismatched: u64,
}

/// A difference between the peers in the types of a function or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The remote peer.
    pub peer: ConnectionId,
    /// The function or signal that it called, if it is registered here; `None` if it has refused a call.
    pub name: Option<&'static str>,
}

//! Call ids, and the results of calls.

use heapless::Vec;
use rakwire::codec::rabbit::unpack;
use rakwire::endpoint::{ConnectionId, SendError};

use super::{Function, Refusal};

const BAD_NAME: &str = "a name has 1 to 64 bytes";

/// The id of a call. An id is reused after four billion further calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    pub(super) number: u32,
    pub(super) to: ConnectionId,
}

/// The reason why a function or a handler was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The plugin's capacity for functions is reached: choose a larger `FUNCTIONS`.
    Full,
    /// A function with this name is already registered.
    NameTaken,
    /// The name is empty or longer than [`MAX_NAME`](super::MAX_NAME) bytes.
    BadName,
}

impl core::fmt::Display for RegisterError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "the plugin has reached its maximum number of functions; increase FUNCTIONS",
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
    /// The maximum number of calls is in progress or has results that were not polled.
    TooManyCalls,
    /// The message exceeds the maximum length.
    TooLong,
    /// The name is empty or longer than [`MAX_NAME`](super::MAX_NAME) bytes.
    BadName,
    /// The endpoint of the plugin is closed.
    EndpointClosed,
}

impl core::fmt::Display for CallError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooManyCalls => "too many calls are in progress; wait until some have finished",
            Self::TooLong => "the message exceeds the maximum length; pass less data, or increase BYTES",
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
    /// The remote peer refused the call.
    Refused(Refusal),
    /// No answer arrived within the timeout. The function may have run.
    TimedOut,
    /// The connection closed. The function may have run.
    Disconnected,
    /// The reply is not a valid answer of this function.
    BadAnswer,
    /// The call could not be sent.
    NotSent(SendError),
}

impl core::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::TimedOut => f.write_str("no answer arrived in time"),
            Self::Disconnected => f.write_str("the connection was closed"),
            Self::BadAnswer => f.write_str("the reply is not an answer of this function"),
            Self::NotSent(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for CallFailure {}

/// The id and the result of a call that has ended.
#[derive(Clone, Debug)]
pub struct Finished<const BYTES: usize> {
    /// The call.
    pub id: CallId,
    pub(super) outcome: Result<Vec<u8, BYTES>, CallFailure>,
}

impl<const BYTES: usize> Finished<BYTES> {
    /// Creates the result of a call after its plugin was dropped.
    #[cfg(feature = "native")]
    pub(crate) const fn lost(id: CallId) -> Self {
        Self { id, outcome: Err(CallFailure::Disconnected) }
    }

    /// Decodes the answer of the function. `F` must be the function that was called.
    ///
    /// # Errors
    /// Returns the reason if there is no answer.
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
    /// Signals that were received.
    pub signals: u64,
    /// Calls that were refused for any reason, and signals that their sender is not allowed to send.
    pub refused: u64,
    /// Calls and answers that were dropped because too many answers were queued.
    ///
    /// A call is refused with [`Refusal::Busy`] if too many answers to its caller are queued or pending. An
    /// answer is dropped ([`Refusal::AnswerDropped`]) to make space for answers to other callers.
    pub busy: u64,
    /// Answers, refusals and signals that could not be sent.
    ///
    /// The connection closed, a hook dropped them, or they exceeded its maximum message length. In the last
    /// case the caller gets [`Refusal::AnswerTooLong`], or an empty answer in RPC4, which has no such error.
    /// Calls without an answer count here too in RPC4.
    pub unsent: u64,
    /// Messages that are malformed or too long.
    pub malformed: u64,
    /// Answers to calls that are not in progress, because they were late or never requested.
    pub unexpected: u64,
    /// Calls and signals that did not run because their types differ between the peers.
    ///
    /// [`RemoteCalls::poll_mismatch`](super::RemoteCalls::poll_mismatch) returns the latest one. RPC4 does
    /// not compare types.
    pub mismatched: u64,
}

/// A function or signal with types that differ between the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The remote peer.
    pub peer: ConnectionId,
    /// The function or signal that the remote peer used, if registered here; `None` if it refused a call.
    pub name: Option<&'static str>,
}

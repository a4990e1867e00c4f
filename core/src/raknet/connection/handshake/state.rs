//! The states of a connection.

use crate::endpoint::ConnectionState;
use crate::raknet::connection::context::Ending;
use crate::raknet::reason::ConnectFailure;

/// The state of a connection; the module of the connection draws how they follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum State {
    #[default]
    Free,
    Opening,
    /// The client waits to be accepted.
    Requested,
    Unverified,
    AwaitingNewIncoming,
    /// This end does not want the connection, which is not open yet, and tells the other peer.
    Rejecting,
    Connected,
    Closing,
    Draining,
    /// This end gave up, and notifies the other peer as long as that seems not to know.
    Aborting,
    Closed,
}

/// The state that a connection ends in, and why it ends.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct End {
    pub(super) state: State,
    pub(super) ending: Ending,
}

impl End {
    /// The connection could not be opened.
    pub(in super::super) const fn failed(failure: ConnectFailure) -> Self {
        Self { state: State::Closed, ending: Ending::Failed(failure) }
    }

    /// The other peer, which may send again what it sent, does not want the connection.
    pub(super) const fn told(failure: ConnectFailure) -> Self {
        Self { state: State::Draining, ending: Ending::Failed(failure) }
    }
}

impl State {
    pub(super) const fn public(self) -> ConnectionState {
        match self {
            Self::Opening | Self::Requested | Self::Unverified | Self::AwaitingNewIncoming => {
                ConnectionState::Connecting
            }
            Self::Connected => ConnectionState::Connected,
            Self::Closing | Self::Rejecting => ConnectionState::Disconnecting,
            Self::Free | Self::Draining | Self::Aborting | Self::Closed => ConnectionState::Disconnected,
        }
    }

    /// Whether the connection was open and has not ended.
    pub(in super::super) const fn is_open(self) -> bool {
        matches!(self, Self::Connected | Self::Closing)
    }

    /// Whether the connection has ended.
    pub(in super::super) const fn is_over(self) -> bool {
        matches!(self, Self::Draining | Self::Aborting | Self::Closed)
    }
}

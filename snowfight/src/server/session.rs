//! The state of one connection.

use heapless::Deque;

use super::changes::SNAPSHOT_TICKS;
use super::pacer::{Pacing, SnapshotPacer};
use crate::message::{Channel, GameOver, PlayerId, Scope};
use crate::world::TICKS_PER_SECOND;

/// The maximum number of queued messages; further requests get no response.
pub(super) const MAX_PENDING: usize = 8;
/// The number of ticks within which a connection must join, so that idle connections do not occupy sessions.
pub(super) const TIME_TO_JOIN: u32 = 10 * TICKS_PER_SECOND;

/// The state of a connection.
///
/// ```text
///           Init                   game over                  acknowledged, or a second later
///  Waiting ------> Playing ------------------------> Leaving ---------------------------------> closed
///     |               |                                                                            ^
///     +---------------+---- first message not Init, timeout, or malformed message -----------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Accepted. Init must arrive before tick `until`, and every other message closes the connection.
    Waiting { until: u32 },
    /// In the game.
    Playing { player: PlayerId },
    /// The game is over for the client. The connection is closed when the result is acknowledged, or at tick `until`.
    Leaving { until: u32 },
    /// The connection is about to be closed.
    Closing,
}

/// A queued message in compact form; it is packed when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingMessage {
    Pong(Channel),
    AlreadyPlaying(Channel),
    NoRoom(Channel),
    Connect(Channel, PlayerId),
    GameOver(u32, GameOver),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session<K> {
    pub(super) connection: K,
    pub(super) state: State,
    /// The scope of the snapshots for this connection.
    pub(super) scope: Scope,
    pub(super) pending: Deque<PendingMessage, MAX_PENDING>,
    pub(super) snapshot: Snapshot,
    pub(super) pacer: SnapshotPacer,
    /// True if the transport of this connection has a backlog.
    pub(super) is_congested: bool,
    /// True if the connection may use replication.
    pub(super) has_replication: bool,
}

/// The state of the last tick's snapshot for this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshot {
    None,
    Pending,
}

/// The decision on this tick's snapshot for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SnapshotDecision {
    Send,
    /// Skipped because the client is behind.
    Thinned,
    /// Skipped because the transport has a backlog.
    Backlogged,
}

/// The next output for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextOutput {
    Message(PendingMessage),
    Snapshot,
    Close,
}

impl<K> Session<K> {
    /// Creates the session of a connection that was accepted in tick `now`.
    pub(super) const fn new(connection: K, now: u32) -> Self {
        let state = State::Waiting { until: now.wrapping_add(TIME_TO_JOIN) };
        Self {
            connection,
            state,
            scope: Scope::Whole,
            pending: Deque::new(),
            snapshot: Snapshot::None,
            pacer: SnapshotPacer::new(),
            is_congested: false,
            has_replication: false,
        }
    }

    pub(super) const fn player(&self) -> Option<PlayerId> {
        match self.state {
            State::Playing { player } => Some(player),
            State::Waiting { .. } | State::Leaving { .. } | State::Closing => None,
        }
    }

    /// Returns true if the scope of this client has a snapshot in this tick. Delta snapshots go to half of the
    /// clients in even ticks, and to the other half in odd ticks.
    pub(super) const fn has_snapshot(&self, now: u32) -> bool {
        match (self.state, self.scope) {
            (State::Playing { .. }, Scope::Whole) => true,
            (State::Playing { player }, Scope::Changes) => player.0 % SNAPSHOT_TICKS == now % SNAPSHOT_TICKS,
            (State::Playing { .. }, Scope::Replicated)
            | (State::Waiting { .. } | State::Leaving { .. } | State::Closing, _) => false,
        }
    }

    /// Decides whether the client gets this tick's snapshot.
    pub(super) fn decide_snapshot(&mut self, now: u32, pacing: Pacing) -> SnapshotDecision {
        if self.is_congested {
            // Polling the pacer would count the snapshot as sent.
            return SnapshotDecision::Backlogged;
        }
        let period = match self.scope {
            Scope::Whole | Scope::Replicated => 1,
            Scope::Changes => SNAPSHOT_TICKS,
        };
        let is_due = match pacing {
            Pacing::Acknowledged => self.pacer.poll(now, period),
            Pacing::Unpaced => true,
        };
        if is_due { SnapshotDecision::Send } else { SnapshotDecision::Thinned }
    }

    /// Closes the connection if its deadline has passed; queued messages are still sent.
    pub(super) const fn expire(&mut self, now: u32) {
        if let State::Waiting { until } | State::Leaving { until } = self.state
            && now.wrapping_sub(until) < u32::MAX / 2
        {
            self.state = State::Closing;
        }
    }

    /// Closes the connection without sending queued messages.
    pub(super) fn close(&mut self) {
        self.pending.clear();
        self.snapshot = Snapshot::None;
        self.state = State::Closing;
    }

    pub(super) fn next_output(&mut self) -> Option<NextOutput> {
        if let Some(message) = self.pending.pop_front() {
            return Some(NextOutput::Message(message));
        }
        if core::mem::replace(&mut self.snapshot, Snapshot::None) == Snapshot::Pending {
            return Some(NextOutput::Snapshot);
        }
        (self.state == State::Closing).then_some(NextOutput::Close)
    }
}

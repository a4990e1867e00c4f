//! What the server keeps of one connection.

use heapless::Deque;

use crate::message::{Channel, GameOver, PlayerId, Scope};
use crate::world::TICKS_PER_SECOND;

/// Answers that wait to be sent; a client that asks for more before they are gets none.
pub(super) const MAX_ANSWERS: usize = 8;
/// How many ticks a connection has to join, so that those who never do keep nobody out.
pub(super) const TIME_TO_JOIN: u32 = 10 * TICKS_PER_SECOND;

/// How far a connection is in the state diagram.
///
/// ```text
///           Init                   game over                  acknowledged, or a second later
///  Waiting ------> Playing ------------------------> Leaving ---------------------------------> closed
///     |               |                                                                            ^
///     +---------------+---- anything but Init first, or not in time, or no message at all --------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Accepted; nothing else than Init is taken, and that until this tick.
    Waiting { until: u32 },
    /// In the game.
    Playing { player: PlayerId },
    /// Its game is over: the end of the connection waits until that has arrived, or until this tick.
    Leaving { until: u32 },
    /// Nothing more is sent but the end.
    Closing,
}

/// What is to be sent, small enough to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
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
    /// What its snapshots tell.
    pub(super) scope: Scope,
    pub(super) answers: Deque<Answer, MAX_ANSWERS>,
    pub(super) snapshot: Snapshot,
}

/// Whether a snapshot of the last tick waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshot {
    None,
    Waits,
}

/// What is next for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Answer(Answer),
    Snapshot,
    Close,
}

impl<K> Session<K> {
    /// A connection that was accepted in this tick.
    pub(super) const fn new(connection: K, now: u32) -> Self {
        let state = State::Waiting { until: now.wrapping_add(TIME_TO_JOIN) };
        let scope = Scope::Whole;
        Self { connection, state, scope, answers: Deque::new(), snapshot: Snapshot::None }
    }

    pub(super) const fn player(&self) -> Option<PlayerId> {
        match self.state {
            State::Playing { player } => Some(player),
            State::Waiting { .. } | State::Leaving { .. } | State::Closing => None,
        }
    }

    /// Ends what may last only until a tick that has come; what waits is still said.
    pub(super) const fn expire(&mut self, now: u32) {
        if let State::Waiting { until } | State::Leaving { until } = self.state
            && now.wrapping_sub(until) < u32::MAX / 2
        {
            self.state = State::Closing;
        }
    }

    /// Nothing more is said, not even what waited.
    pub(super) fn close(&mut self) {
        self.answers.clear();
        self.snapshot = Snapshot::None;
        self.state = State::Closing;
    }

    pub(super) fn take_work(&mut self) -> Option<Work> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(Work::Answer(answer));
        }
        if core::mem::replace(&mut self.snapshot, Snapshot::None) == Snapshot::Waits {
            return Some(Work::Snapshot);
        }
        (self.state == State::Closing).then_some(Work::Close)
    }
}

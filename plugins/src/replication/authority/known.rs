//! The replication state of one entity at one client.

use crate::replication::received::Received;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// The client does not have the entity.
    #[default]
    Absent,
    /// The full state is being sent.
    Creating,
    /// The client has the full state of some tick, and receives the changes since then.
    Present,
    /// The removal is being sent.
    Removing,
}

/// The state of one entity at one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) knowledge: Knowledge,
    pub(super) generation: u16,
    pub(super) term: u16,
    pub(super) is_owner: bool,
    /// The latest tick that the client has acknowledged.
    pub(super) acked: u32,
    /// The ticks in which the entity was sent in the current state.
    sent: Received,
    /// The accumulated priority: grows by the entity's priority in each tick in which the entity has something to
    /// send.
    pub(super) priority: u32,
}

/// The state of an entity that a client should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) generation: u16,
    pub(super) term: u16,
    pub(super) is_owner: bool,
    pub(super) changed_at: u32,
}

impl Known {
    pub(super) const NOTHING: Self = Self {
        knowledge: Knowledge::Absent,
        generation: 0,
        term: 0,
        is_owner: false,
        acked: 0,
        sent: Received::NONE,
        priority: 0,
    };

    fn become_anew(&mut self, knowledge: Knowledge) {
        (self.knowledge, self.sent, self.priority) = (knowledge, Received::default(), 0);
    }

    /// Compares the known state with the wanted state, which is `None` if the entity is out of scope. Returns true if
    /// something must be sent in this tick.
    pub(super) fn refresh(&mut self, wanted: Option<Wanted>, tick: u32, resend: u32) -> bool {
        let Some(wanted) = wanted else {
            if matches!(self.knowledge, Knowledge::Creating | Knowledge::Present) {
                self.become_anew(Knowledge::Removing);
            }
            return self.knowledge == Knowledge::Removing && self.is_resent(tick, resend);
        };
        let is_same = self.generation == wanted.generation
            && self.is_owner == wanted.is_owner
            && (self.term == wanted.term || !wanted.is_owner);
        if !is_same || matches!(self.knowledge, Knowledge::Absent | Knowledge::Removing) {
            (self.generation, self.is_owner) = (wanted.generation, wanted.is_owner);
            self.become_anew(Knowledge::Creating);
        }
        self.term = wanted.term;
        match self.knowledge {
            Knowledge::Present if wanted.changed_at <= self.acked => {
                // Nothing has changed since the acknowledged tick.
                self.acked = tick;
                false
            }
            Knowledge::Present => {
                !self.is_owner && (wanted.changed_at > self.sent.latest() || self.is_resent(tick, resend))
            }
            Knowledge::Absent | Knowledge::Creating | Knowledge::Removing => self.is_resent(tick, resend),
        }
    }

    /// Returns true if the entity was never sent, or so long ago that an acknowledgement should have arrived.
    fn is_resent(&self, tick: u32, resend: u32) -> bool {
        self.sent.latest() == 0 || tick.saturating_sub(self.sent.latest()) >= resend
    }

    pub(super) fn on_sent(&mut self, tick: u32) {
        self.sent.merge(Received::of(tick, 0));
        self.priority = 0;
    }

    pub(super) fn on_received(&mut self, received: Received) {
        let Some(tick) = self.sent.latest_of_both(received) else { return };
        match self.knowledge {
            Knowledge::Creating => (self.knowledge, self.acked) = (Knowledge::Present, tick),
            Knowledge::Present => self.acked = self.acked.max(tick),
            Knowledge::Removing => *self = Self::NOTHING,
            Knowledge::Absent => {}
        }
    }
}

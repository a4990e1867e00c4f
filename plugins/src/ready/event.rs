//! The state of one event at this peer.

use rakwire::endpoint::{BySlot, ConnectionId};

use super::wire::{EventId, Message, Status};

/// The known state of an awaited peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remote {
    pub(super) received: Status,
    sent: Status,
    /// True if the peer's status must still be requested.
    asks: bool,
    /// True if the peer has requested this peer's status.
    is_requested: bool,
}

#[derive(Debug)]
pub(super) struct Event<const PEERS: usize> {
    pub(super) id: EventId,
    pub(super) status: Status,
    /// True if connections that open later are awaited too.
    pub(super) waits_for_all: bool,
    pub(super) remotes: BySlot<Remote, PEERS>,
    was_completed: bool,
    /// True if the event is complete and `poll_completed` has not returned it yet.
    pub(super) is_unreported: bool,
}

impl<const PEERS: usize> Event<PEERS> {
    pub(super) const fn new(id: EventId) -> Self {
        Self {
            id,
            status: Status::Unset,
            waits_for_all: false,
            remotes: BySlot::new(),
            was_completed: false,
            is_unreported: false,
        }
    }

    pub(super) fn set(&mut self, is_ready: bool) {
        match (self.status, is_ready) {
            (Status::Unset, true) => self.status = Status::Set,
            (Status::Set | Status::AllSet, false) => self.status = Status::Unset,
            (Status::Unset, false) | (Status::Set | Status::AllSet, true) | (Status::ForceAllSet, _) => {}
        }
        self.on_change();
    }

    pub(super) fn force(&mut self) {
        self.status = Status::ForceAllSet;
        self.on_change();
    }

    /// Waits for a peer; returns false if the peer's slot is beyond the table.
    pub(super) fn wait_for(&mut self, id: ConnectionId) -> bool {
        if self.remotes.get(id).is_some() {
            return true;
        }
        let is_kept = self.remotes.insert(id, Remote { asks: true, ..Remote::default() });
        self.on_change();
        is_kept
    }

    pub(super) fn stop_waiting_for(&mut self, id: ConnectionId) -> bool {
        let is_gone = self.remotes.remove(id).is_some();
        if is_gone {
            self.on_change();
        }
        is_gone
    }

    /// Handles a message from a peer; returns false if the peer is not awaited.
    pub(super) fn on_message(&mut self, id: ConnectionId, message: Message) -> bool {
        let Some(remote) = self.remotes.get_mut(id) else { return false };
        match message {
            Message::Query => remote.is_requested = true,
            Message::Status(Status::ForceAllSet) => self.status = Status::ForceAllSet,
            Message::Status(status) => remote.received = status,
        }
        self.on_change();
        true
    }

    /// Switches this peer between `Set` and `AllSet`, depending on whether all awaited peers are ready.
    fn on_change(&mut self) {
        let any_unset = self.remotes.iter().any(|(_, remote)| remote.received == Status::Unset);
        match self.status {
            Status::Set if !any_unset => self.status = Status::AllSet,
            Status::AllSet if any_unset => self.status = Status::Set,
            Status::Unset | Status::Set | Status::AllSet | Status::ForceAllSet => {}
        }
        let is_completed = self.is_completed();
        self.is_unreported = is_completed && (self.is_unreported || !self.was_completed);
        self.was_completed = is_completed;
    }

    pub(super) fn is_completed(&self) -> bool {
        match self.status {
            Status::ForceAllSet => true,
            Status::AllSet => self.remotes.iter().all(|(_, remote)| remote.received == Status::AllSet),
            Status::Unset | Status::Set => false,
        }
    }

    /// Returns true if some peers have found all peers ready and others have not yet.
    pub(super) fn is_completing(&self) -> bool {
        let all_set = || self.remotes.iter().filter(|(_, remote)| remote.received == Status::AllSet).count();
        self.status != Status::ForceAllSet && !self.is_completed() && all_set() > 0
    }

    /// Returns true if a message is due.
    pub(super) fn is_due(&self) -> bool {
        self.remotes.iter().any(|(_, remote)| remote.next(self.status).is_some())
    }

    /// Sends due messages with `send`, which returns true if the message was accepted.
    pub(super) fn transmit(&mut self, mut send: impl FnMut(ConnectionId, [u8; super::wire::LENGTH]) -> bool) {
        for (connection, remote) in self.remotes.iter_mut() {
            while let Some(message) = remote.next(self.status) {
                if !send(connection, message.encode(self.id)) {
                    break;
                }
                remote.on_sent(message);
            }
        }
    }
}

impl Remote {
    /// Returns the next message to send, given this peer's own status.
    fn next(self, status: Status) -> Option<Message> {
        if self.asks {
            return Some(Message::Query);
        }
        let is_answer = self.is_requested && status != Status::Unset;
        (is_answer || self.sent != status).then_some(Message::Status(status))
    }

    const fn on_sent(&mut self, message: Message) {
        match message {
            Message::Query => self.asks = false,
            Message::Status(status) => (self.sent, self.is_requested) = (status, false),
        }
    }
}

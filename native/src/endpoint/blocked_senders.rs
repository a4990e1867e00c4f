//! Tasks that wait for room for their messages, by connection.

use std::collections::HashMap;
use std::task::Waker;

use rakwire::endpoint::ConnectionId;

/// The tasks that wait, and those that are to be woken. An endpoint where nobody waits takes no memory for this.
#[derive(Debug, Default)]
pub(crate) struct BlockedSenders {
    waiting: HashMap<ConnectionId, Vec<(WaitId, Waker)>>,
    to_wake: Vec<Waker>,
    next: WaitId,
    wakes: u64,
}

/// Names a task that waits; no other one of the endpoint gets the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitId(u64);

impl BlockedSenders {
    /// Has a task woken once, when the connection has room again or ends.
    pub(crate) fn register(&mut self, id: ConnectionId, waker: &Waker) -> WaitId {
        let wait = self.next;
        self.next = WaitId(wait.0 + 1);
        self.waiting.entry(id).or_default().push((wait, waker.clone()));
        wait
    }

    /// Removes a task that waits no more. Its waker is to be dropped where no lock is held.
    pub(crate) fn remove(&mut self, id: ConnectionId, wait: WaitId) -> Option<Waker> {
        let waiting = self.waiting.get_mut(&id)?;
        let place = waiting.iter().position(|(one, _)| *one == wait)?;
        let (_, waker) = waiting.remove(place);
        if waiting.is_empty() {
            self.waiting.remove(&id);
        }
        Some(waker)
    }

    /// Has one task woken that waits no more.
    pub(crate) fn wake_one(&mut self, id: ConnectionId, wait: WaitId) {
        let waker = self.remove(id, wait);
        self.to_wake.extend(waker);
    }

    /// Marks the tasks that wait for this connection as those to wake.
    pub(crate) fn wake(&mut self, id: ConnectionId) {
        let waiting = self.waiting.remove(&id).unwrap_or_default();
        self.wakes += waiting.len() as u64;
        self.to_wake.extend(waiting.into_iter().map(|(_, waker)| waker));
    }

    /// The tasks to wake, where no lock is held.
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.to_wake)
    }

    /// How often a task was woken.
    pub(crate) const fn wakes(&self) -> u64 {
        self.wakes
    }
}

#[cfg(test)]
mod tests {
    use rakwire::Instant;
    use rakwire::endpoint::Capacity;
    use rakwire::raknet::{Config, Peer};

    use super::*;

    #[test]
    fn only_those_who_wait_for_a_connection_are_woken() {
        let mut peer = Peer::with_capacity(Capacity::default(), Config::new([7; 32]));
        let ids: [ConnectionId; 2] = std::array::from_fn(|port| {
            peer.connect(Instant::ZERO, ([127, 0, 0, 1], port as u16 + 1).into()).expect("a free slot")
        });
        let mut senders = BlockedSenders::default();
        let old = senders.register(ids[0], Waker::noop());
        senders.register(ids[0], Waker::noop());
        senders.register(ids[1], Waker::noop());
        senders.wake(ids[0]);
        assert_eq!((senders.take().len(), senders.wakes()), (2, 2));
        senders.register(ids[0], Waker::noop());
        assert!(senders.remove(ids[0], old).is_none(), "it is another one");
        senders.wake(ids[0]);
        senders.wake(ids[0]);
        assert_eq!((senders.take().len(), senders.wakes(), senders.waiting.len()), (1, 3, 1));
    }
}

//! The inboxes of an endpoint, by the slots of its connections.

use std::sync::Arc;

use rakwire::endpoint::{ConnectionId, Protocol};

use super::inbox::Inbox;

/// The inboxes of the connections that the application refers to. The table reaches to the highest slot that was used: a
/// look-up costs the same whatever their number.
#[derive(Debug)]
pub(crate) struct Inboxes<P: Protocol>(Vec<Option<(ConnectionId, Arc<Inbox<P>>)>>);

impl<P: Protocol> Inboxes<P> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Keeps the inbox of a connection, in the place of an earlier connection of the same slot.
    pub(crate) fn insert(&mut self, id: ConnectionId, inbox: Arc<Inbox<P>>) {
        let slot = usize::from(id.slot());
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some((id, inbox));
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Arc<Inbox<P>>> {
        let (owner, inbox) = self.0.get(usize::from(id.slot()))?.as_ref()?;
        (*owner == id).then_some(inbox)
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Arc<Inbox<P>>> {
        let place = self.0.get_mut(usize::from(id.slot()))?;
        place.take_if(|(owner, _)| *owner == id).map(|(_, inbox)| inbox)
    }
}

#[cfg(test)]
mod tests {
    use rakwire::Instant;
    use rakwire::endpoint::Capacity;
    use rakwire::raknet::{Config, Peer, RakNet};

    use super::super::inbox::Phase;
    use super::super::spans::ConnectionSpan;
    use super::*;

    #[test]
    fn an_inbox_is_that_of_its_connection_and_of_no_later_one() {
        let id = |number| {
            let mut peer = Peer::with_capacity(Capacity::default(), Config::new([7; 32]));
            peer.partition_ids(number, 2).expect("a peer without connections");
            peer.connect(Instant::ZERO, ([127, 0, 0, 1], 1).into()).expect("a free slot")
        };
        let mut inboxes = Inboxes::<RakNet>::new();
        let [first, second] = [0, 1].map(id);
        assert_eq!(first.slot(), second.slot());
        let inbox = || {
            let remote = ([127, 0, 0, 1], 1).into();
            Arc::new(Inbox::new(remote, Phase::Connecting, ConnectionSpan::default()))
        };
        inboxes.insert(first, inbox());
        assert!(inboxes.get(first).is_some() && inboxes.get(second).is_none());
        assert!(inboxes.remove(second).is_none());
        inboxes.insert(second, inbox());
        assert!(inboxes.get(first).is_none() && inboxes.remove(first).is_none());
        assert!(inboxes.remove(second).is_some() && inboxes.get(second).is_none());
    }
}

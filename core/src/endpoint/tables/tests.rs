//! Tests of the tables of a peer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::endpoint::{Capacity, ConnectError, Peer, Protocol};
use crate::game_protocol::GameProtocol;
use crate::raknet::RakNet;

/// Opens and closes a connection in the only slot.
fn use_slot<P: Protocol>(peer: &mut Peer<'_, P>) -> Result<ConnectionId, ConnectError> {
    let id = peer.connect(Instant::ZERO, ([192, 0, 2, 1], 1).into())?;
    peer.disconnect(Instant::ZERO, id);
    while peer.poll_event().is_some() || peer.poll_transmit(Instant::ZERO, &mut [0; 1_500]).is_some() {}
    assert!(peer.connection(id).is_none());
    Ok(id)
}

/// Checks that ids are not repeated, until the slot has used up its ids and is retired.
fn names_end<P: Protocol>() {
    let capacity = Capacity { connections: 1, blocks: 16, block_size: 64 };
    let mut peer = Peer::<P>::with_capacity(capacity, P::config([7; 32]));
    let first = use_slot(&mut peer).expect("a vacant slot");
    // More connections than a 16-bit generation could distinguish.
    for _ in 0..70_000 {
        assert_ne!(use_slot(&mut peer), Ok(first));
    }
    peer.tables.connections.slot_mut(0).expect("the only slot").generation = u32::MAX - 1;
    assert_eq!(use_slot(&mut peer).expect("the last id").generation, u32::MAX);
    assert_eq!(use_slot(&mut peer), Err(ConnectError::Full));
}

#[test]
fn an_id_is_never_reused() {
    names_end::<RakNet>();
    names_end::<GameProtocol>();
}

/// Each peer's ids end where those of the next peer begin.
fn ids_are_partitioned<P: Protocol>() {
    const PEERS: u16 = 3;
    let capacity = Capacity { connections: 1, blocks: 16, block_size: 64 };
    let mut last = 0;
    for number in 0..PEERS {
        let mut peer = Peer::<P>::with_capacity(capacity, P::config([7; 32]));
        assert_eq!(peer.partition_ids(number, PEERS), Ok(()));
        assert_eq!(use_slot(&mut peer).expect("a vacant slot").generation, last + 1);
        assert_eq!(peer.partition_ids(number, PEERS), Err(PartitionError::InUse));
        last = peer.tables.connections.last_generation;
        peer.tables.connections.slot_mut(0).expect("the only slot").generation = last - 1;
        assert_eq!(use_slot(&mut peer).expect("the last id").generation, last);
        assert_eq!(use_slot(&mut peer), Err(ConnectError::Full));
    }
}

#[test]
fn peers_of_one_server_have_disjoint_ids() {
    ids_are_partitioned::<RakNet>();
    ids_are_partitioned::<GameProtocol>();
}

#[test]
fn a_partition_number_must_be_below_the_number_of_peers() {
    let mut peer = Peer::<RakNet>::with_capacity(Capacity::default(), RakNet::config([7; 32]));
    for (number, of) in [(0, 0), (1, 1), (3, 2)] {
        assert_eq!(peer.partition_ids(number, of), Err(PartitionError::NoSuchPeer));
    }
}

/// An open connection, with or without events.
#[derive(Debug, Default)]
struct Open {
    has_events: bool,
    share: Share,
}

impl Occupant for Open {
    fn state(&self) -> ConnectionState {
        ConnectionState::Connected
    }

    fn has_events(&self) -> bool {
        self.has_events
    }

    fn send_share(&self) -> &Share {
        &self.share
    }

    fn is_over(&self) -> bool {
        false
    }

    fn is_finished(&self, _now: Instant) -> bool {
        false
    }

    fn is_lingering(&self) -> bool {
        false
    }

    fn incoming(&self) -> Incoming {
        Incoming::NO
    }
}

fn queue() -> SlotQueue<'static> {
    SlotQueue::Owned(VecDeque::with_capacity(2))
}

#[test]
fn connections_take_turns_after_each_burst() {
    let mut wakeups = Wakeups::new(queue(), Deadlines::new(Slots::owned(2)));
    let mut slots: [Slot<Open>; 2] = Default::default();
    for _ in 0..2 {
        for (at, slot) in (0..).zip(&mut slots) {
            wakeups.list(slot, at);
        }
    }
    let turns = core::iter::repeat_with(|| {
        let at = wakeups.front().expect("a connection");
        wakeups.on_composed(at, 2);
        at
    });
    assert_eq!(turns.take(6).collect::<Vec<_>>(), [0, 0, 1, 1, 0, 0]);
}

#[test]
fn only_expired_deadlines_are_taken() {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let mut wakeups = Wakeups::new(queue(), Deadlines::new(Slots::owned(2)));
    wakeups.set_deadline(0, Some(at(5)));
    wakeups.set_deadline(1, Some(at(3)));
    assert_eq!([wakeups.take_due(at(4)), wakeups.take_due(at(4))], [Some(1), None]);
    assert_eq!(wakeups.next_deadline(), Some(at(5)));
}

#[test]
fn a_paused_connection_with_events_is_not_queued() {
    let mut events = EventQueue::new(queue());
    let mut slot =
        Slot { is_paused: true, connection: Open { has_events: true, ..Open::default() }, ..Slot::default() };
    events.list(&mut slot, 0);
    assert_eq!(events.front(), None);
    slot.is_paused = false;
    events.list(&mut slot, 0);
    assert_eq!(events.front(), Some(0));
}

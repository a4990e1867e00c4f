//! Ready events.

use std::collections::VecDeque;

use proptest::prelude::*;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Plugin, Side, Verdict};
use rakwire::raknet::{Delivery, DisconnectReason, Guid, RakNet};
use rakwire_plugins::ready::{EventId, Message, ReadyEvents, Status, TooManyEvents};
use serde_json::Value;

use crate::support::{Collector, connections};

const EVENT: EventId = EventId(7);
const MAX: usize = 6;

type Ready = ReadyEvents<2, MAX>;

fn receive<const N: usize>(ready: &mut ReadyEvents<2, N>, from: ConnectionId, bytes: &[u8]) {
    let plugin: &mut dyn Plugin<RakNet> = ready;
    let verdict = plugin.on_message(Instant::ZERO, from, Delivery::RELIABLE_ORDERED, &bytes);
    assert_eq!(verdict, Verdict::Drop, "the application must not receive a ready message");
}

fn transmit<const N: usize>(ready: &mut ReadyEvents<2, N>, sender: &mut Collector<RakNet>) {
    let plugin: &mut dyn Plugin<RakNet> = ready;
    plugin.update(Instant::ZERO, sender);
}

fn join<const N: usize>(ready: &mut ReadyEvents<2, N>, id: ConnectionId) {
    let plugin: &mut dyn Plugin<RakNet> = ready;
    plugin.on_connected(Instant::ZERO, id, ([10, 0, 0, 1], 1).into(), Guid(1), Side::Server);
}

#[test]
fn message_encoding_matches_the_test_vectors() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../vectors/ready.json")).expect("valid JSON");
    assert_eq!(vectors.len(), 5);
    for vector in vectors {
        let hex = vector["hex"].as_str().expect("a text");
        let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal digits");
        let bytes = [0, 1, 2, 3, 4].map(byte);
        let message = match vector["message"].as_str().expect("a text") {
            "set" => Message::Status(Status::Set),
            "unset" => Message::Status(Status::Unset),
            "all-set" => Message::Status(Status::AllSet),
            "force-all-set" => Message::Status(Status::ForceAllSet),
            _ => Message::Query,
        };
        let event = EventId(vector["event"].as_i64().expect("a number") as i32);
        assert_eq!((Message::decode(bytes), message.encode(event)), (Some((message, event)), bytes));
    }
}

/// Up to `N` peers, all connected to each other. Messages between two peers stay in order.
struct Mesh<const N: usize> {
    ids: Vec<ConnectionId>,
    peers: Vec<ReadyEvents<2, N>>,
    is_there: Vec<bool>,
    transits: Vec<VecDeque<Vec<u8>>>,
}

impl<const N: usize> Mesh<N> {
    /// Creates `count` present peers.
    fn new(count: usize) -> Self {
        let mut mesh = Self {
            ids: connections::<RakNet>(N),
            peers: (0..count).map(|_| ReadyEvents::new()).collect(),
            is_there: vec![false; count],
            transits: vec![VecDeque::new(); count * count],
        };
        for peer in 0..count {
            mesh.peers[peer].wait_for_all(EVENT).expect("enough space");
            mesh.come(peer);
        }
        mesh
    }

    fn there(&self) -> Vec<usize> {
        (0..self.peers.len()).filter(|peer| self.is_there[*peer]).collect()
    }

    fn others(&self, peer: usize) -> Vec<usize> {
        self.there().into_iter().filter(|other| *other != peer).collect()
    }

    /// Connects a peer to all others.
    fn come(&mut self, peer: usize) {
        self.is_there[peer] = true;
        for other in self.others(peer) {
            for (at, of) in [(peer, other), (other, peer)] {
                join(&mut self.peers[at], self.ids[of]);
            }
        }
    }

    /// Closes the connections of a peer. Messages in flight are lost.
    fn leave(&mut self, peer: usize) {
        for other in self.others(peer) {
            for (at, of) in [(peer, other), (other, peer)] {
                let plugin: &mut dyn Plugin<RakNet> = &mut self.peers[at];
                plugin.on_disconnected(Instant::ZERO, self.ids[of], DisconnectReason::Lost);
                self.transits[at * self.is_there.len() + of].clear();
            }
        }
        self.is_there[peer] = false;
    }

    /// Sends up to `room` messages from a peer.
    fn transmit(&mut self, peer: usize, room: usize) {
        let mut sender = Collector { room, ..Collector::new() };
        transmit(&mut self.peers[peer], &mut sender);
        for (to, bytes, _) in sender.messages {
            let to = self.ids.iter().position(|id| *id == to).expect("a connection");
            self.transits[peer * self.peers.len() + to].push_back(bytes);
        }
    }

    /// Delivers the oldest message from one peer to another.
    fn deliver(&mut self, from: usize, to: usize) -> bool {
        let Some(bytes) = self.transits[from * self.peers.len() + to].pop_front() else { return false };
        let id = self.ids[from];
        receive(&mut self.peers[to], id, &bytes);
        true
    }

    fn settle(&mut self) {
        let count = self.peers.len();
        for _ in 0..1_000 {
            for peer in self.there() {
                self.transmit(peer, usize::MAX);
            }
            let pairs = (0..count * count).filter(|pair| self.deliver(pair / count, pair % count));
            if pairs.count() == 0 {
                return;
            }
        }
        panic!("the peers never stop sending");
    }
}

impl<const N: usize> Mesh<N> {
    /// Returns, for each present peer, whether the event is completed.
    fn completed(&self) -> Vec<bool> {
        let there = self.peers.iter().zip(&self.is_there).filter(|(_, is_there)| **is_there);
        there.map(|(peer, _)| peer.is_completed(EVENT)).collect()
    }
}

#[test]
fn all_peers_are_notified_once_when_all_are_ready() {
    let mut mesh = Mesh::<MAX>::new(4);
    for peer in 0..4 {
        assert_eq!(mesh.completed(), [false; 4]);
        mesh.peers[peer].set(EVENT, true).expect("enough space");
        mesh.settle();
    }
    assert_eq!(mesh.completed(), [true; 4]);
    for peer in &mut mesh.peers {
        assert_eq!((peer.poll_completed(), peer.poll_completed()), (Some(EVENT), None));
    }
    // One peer changes its status twice.
    mesh.peers[2].set(EVENT, false).expect("enough space");
    mesh.settle();
    assert_eq!(mesh.completed(), [false; 4]);
    mesh.peers[2].set(EVENT, true).expect("enough space");
    mesh.settle();
    assert!(mesh.peers.iter_mut().all(|peer| peer.poll_completed() == Some(EVENT)));
}

#[test]
fn an_event_waits_for_late_peers_but_not_for_departed_peers() {
    let ids = connections::<RakNet>(2);
    let mut ready = Ready::new();
    ready.wait_for_all(EVENT).expect("enough space");
    ready.set(EVENT, true).expect("enough space");
    assert_eq!(ready.poll_completed(), Some(EVENT), "without other peers, the event must complete");
    join(&mut ready, ids[0]);
    // If a connection opens while the plugin is being attached, it is reported twice.
    join(&mut ready, ids[0]);
    assert!(!ready.is_completed(EVENT));
    let mut sender = Collector::new();
    transmit(&mut ready, &mut sender);
    let expected = [Message::Query.encode(EVENT), Message::Status(Status::Set).encode(EVENT)];
    assert_eq!(sender.bytes(), expected);
    let plugin: &mut dyn Plugin<RakNet> = &mut ready;
    plugin.on_disconnected(Instant::ZERO, ids[0], DisconnectReason::Lost);
    assert_eq!(plugin.poll_timeout(), None);
    assert!(ready.is_completed(EVENT));
    assert_eq!(
        ready.poll_completed(),
        Some(EVENT),
        "the event must complete again without the departed peer"
    );
}

/// A status that was sent before the remote peer created the event is repeated on request.
#[test]
fn status_query_is_answered() {
    let ids = connections::<RakNet>(1);
    let mut ready = Ready::new();
    ready.set(EVENT, true).expect("enough space");
    ready.wait_for(EVENT, ids[0]).expect("enough space");
    let mut sender = Collector::new();
    transmit(&mut ready, &mut sender);
    assert_eq!(sender.bytes().len(), 2);
    for _ in 0..1_000 {
        receive(&mut ready, ids[0], &Message::Query.encode(EVENT));
    }
    transmit(&mut ready, &mut sender);
    assert_eq!(
        sender.bytes(),
        [Message::Status(Status::Set).encode(EVENT)],
        "a repeated query is answered once"
    );
}

#[test]
fn forced_event_is_completed_everywhere() {
    let mut mesh = Mesh::<MAX>::new(3);
    mesh.peers[1].force(EVENT).expect("enough space");
    mesh.settle();
    assert_eq!(mesh.completed(), [true; 3]);
    mesh.peers[0].set(EVENT, false).expect("enough space");
    mesh.settle();
    assert_eq!(mesh.completed(), [true; 3], "a forced event cannot be changed");
}

/// A peer for which an event does not wait can neither complete nor prevent the event, and takes no memory.
#[test]
fn messages_of_peers_outside_the_event_have_no_effect() {
    let ids = connections::<RakNet>(2);
    let mut ready = Ready::new();
    ready.wait_for(EVENT, ids[0]).expect("enough space");
    let force = Message::Status(Status::ForceAllSet);
    for event in 0..1_000 {
        receive(&mut ready, ids[0], &force.encode(EventId(10_000 + event)));
        receive(&mut ready, ids[1], &force.encode(EVENT));
    }
    assert_eq!(ready.stats().unexpected, 2_000);
    assert_eq!((ready.status(EVENT), ready.is_completed(EVENT)), (Some(Status::Unset), false));
    assert_eq!((ready.status_of(EVENT, ids[1]), ready.poll_completed()), (None, None));
    for length in 0..5 {
        receive(&mut ready, ids[0], &force.encode(EVENT)[..length]);
    }
    assert_eq!(ready.stats().malformed, 5);
}

#[test]
fn number_of_events_is_limited() {
    let mut ready = Ready::new();
    assert_eq!((ready.set(EventId(1), true), ready.set(EventId(2), true)), (Ok(()), Ok(())));
    assert_eq!(ready.set(EventId(3), true), Err(TooManyEvents));
    assert!(ready.remove(EventId(1)) && !ready.remove(EventId(1)));
    assert_eq!(ready.set(EventId(3), true), Ok(()));
}

#[derive(Clone, Debug)]
enum Step {
    Set(usize, bool),
    Transmit(usize, usize),
    Deliver(usize, usize),
    /// The peer disconnects, or reconnects if it is absent.
    LeaveOrCome(usize),
}

fn step(count: usize) -> impl Strategy<Value = Step> {
    let peer = 0..count;
    prop_oneof![
        2 => (peer.clone(), any::<bool>()).prop_map(|(peer, is_ready)| Step::Set(peer, is_ready)),
        2 => (peer.clone(), 0..count).prop_map(|(peer, room)| Step::Transmit(peer, room)),
        2 => (peer.clone(), peer.clone()).prop_map(|(from, to)| Step::Deliver(from, to)),
        1 => peer.prop_map(Step::LeaveOrCome),
    ]
}

/// Checks that after any steps, all present peers agree that the event is completed, or not completed if one of them
/// is not ready.
fn check_agreement<const N: usize>(steps: Vec<Step>, are_all_ready: bool) -> Result<(), TestCaseError> {
    let mut mesh = Mesh::<N>::new(N);
    let mut is_ready = [false; N];
    for step in steps {
        match step {
            Step::Set(peer, ready) => {
                is_ready[peer] = ready;
                mesh.peers[peer].set(EVENT, ready).expect("enough space");
            }
            Step::Transmit(peer, room) if mesh.is_there[peer] => mesh.transmit(peer, room),
            Step::Deliver(from, to) if mesh.is_there[to] => {
                mesh.deliver(from, to);
            }
            Step::Transmit(..) | Step::Deliver(..) => {}
            Step::LeaveOrCome(peer) if mesh.is_there[peer] => mesh.leave(peer),
            Step::LeaveOrCome(peer) => mesh.come(peer),
        }
    }
    let there = mesh.there();
    if are_all_ready {
        for peer in &there {
            mesh.peers[*peer].set(EVENT, true).expect("enough space");
        }
    }
    mesh.settle();
    let is_completed = are_all_ready || there.iter().all(|peer| is_ready[*peer]);
    prop_assert_eq!(mesh.completed(), vec![is_completed; there.len()]);
    Ok(())
}

proptest! {
    #[test]
    fn all_peers_eventually_agree(steps in prop::collection::vec(step(4), 0..120), are_all_ready: bool) {
        check_agreement::<4>(steps, are_all_ready)?;
    }

    /// Arbitrary bytes cause no panic, whether or not the event waits for the sender.
    #[test]
    fn arbitrary_bytes_do_not_panic(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..50)) {
        let ids = connections::<RakNet>(1);
        let mut ready = Ready::new();
        ready.wait_for(EVENT, ids[0]).expect("enough space");
        for message in messages {
            receive(&mut ready, ids[0], &message);
        }
        transmit(&mut ready, &mut Collector::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn many_peers_eventually_agree(steps in prop::collection::vec(step(32), 0..600), are_all_ready: bool) {
        check_agreement::<32>(steps, are_all_ready)?;
    }
}

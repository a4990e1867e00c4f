//! The MTU of a connection, and datagrams that exceed the path MTU.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;

use rakwire::Instant;
use rakwire::raknet::{
    Capacity, Config, ConnectError, ConnectionId, CookiePolicy, Delivery, DisconnectReason, DropReason,
    Event, Guid, Outcome, Peer, Priority, Reliability,
};
use rakwire::sim::Conditions;
use rakwire::wire::datagram::{CapsuleHeader, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{MAX_MTU_IPV6, Reader, Wire};

use crate::support::forged::{answers, capsule, data, written};
use crate::support::raknet::{Net, client_config, messages, peer, server_config};

const GUID: Guid = Guid(7);
const START: Instant = Instant::from_micros(1);

fn ipv4() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 19132))
}

fn ipv6() -> SocketAddr {
    SocketAddr::from(([0xFD71, 0, 0, 0, 0, 0, 0, 2], 19132))
}

/// Returns a connecting client and the lengths of its first requests, if datagrams longer than `longest` are refused.
fn dial(server: SocketAddr, longest: usize) -> (Peer<'static>, Vec<usize>) {
    let (mut client, now) = (peer(client_config()), Instant::ZERO);
    client.connect(now, server).expect("a free slot");
    let mut lengths = Vec::new();
    loop {
        let requests = answers(&mut client, now);
        let Some((to, request)) = requests.first() else { return (client, lengths) };
        lengths.push(request.len());
        if request.len() > longest {
            client.handle_too_large(now, *to, request.len());
        }
    }
}

#[test]
fn a_request_too_large_for_the_interface_is_shortened_immediately() {
    for (server, longest, expected) in [
        (ipv4(), 1_464, &[1_464][..]),
        (ipv4(), 1_400, &[1_464, 1_172]),
        (ipv4(), 600, &[1_464, 1_172, 548]),
        (ipv6(), 1_452, &[1_444]),
        // Tunnels with an MTU of 1,420 and 1,280 bytes.
        (ipv6(), 1_372, &[1_444, 1_372]),
        (ipv6(), 1_232, &[1_444, 1_372, 1_232]),
    ] {
        assert_eq!(dial(server, longest).1, expected, "{server} {longest}");
    }
}

#[test]
fn an_attempt_retries_later_if_every_request_is_too_large() {
    let (client, lengths) = dial(ipv4(), 100);
    assert_eq!(lengths.len(), 3);
    let next = client.poll_timeout().expect("the attempt continues");
    assert_eq!(next.saturating_since(Instant::ZERO), Duration::from_millis(500));
}

fn mtu_of(datagram: &[u8]) -> Option<u16> {
    match Offline::read(&mut Reader::new(datagram)) {
        Ok(
            Offline::Request1 { mtu, .. }
            | Offline::Reply1 { mtu, .. }
            | Offline::Request2 { mtu, .. }
            | Offline::Reply2 { mtu, .. },
        ) => Some(mtu),
        _ => None,
    }
}

#[test]
fn a_reply_never_raises_the_mtu_above_the_last_request() {
    let (mut client, _) = dial(ipv4(), 1_400);
    let reply = Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_492 };
    client.handle_datagram(Instant::ZERO, ipv4(), &written(&reply));
    let requests = answers(&mut client, Instant::ZERO);
    assert_eq!(requests.iter().filter_map(|(_, bytes)| mtu_of(bytes)).collect::<Vec<_>>(), [1_200]);
    let reply = Offline::Reply2 { guid: GUID, client: ipv4(), mtu: 1_492, answer: None };
    client.handle_datagram(Instant::ZERO, ipv4(), &written(&reply));
    let id = client.connection_at(ipv4()).expect("a connection");
    assert_eq!(client.connection_stats(id).map(|stats| stats.mtu), Some(1_200));
}

#[test]
fn ipv6_mtus_never_exceed_an_ethernet_frame() {
    let (mut server, now) = (peer(server_config()), Instant::from_micros(1));
    server.handle_datagram(now, ipv6(), &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }));
    let replies = answers(&mut server, now);
    assert_eq!(mtu_of(&replies[0].1), Some(MAX_MTU_IPV6));
    let Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) =
        Offline::read(&mut Reader::new(&replies[0].1))
    else {
        panic!("expected a reply 1 with a cookie")
    };
    let security = ClientSecurity::Cookie(cookie);
    let request = Offline::Request2 { security, server: ipv6(), mtu: 1_492, guid: GUID };
    server.handle_datagram(now, ipv6(), &written(&request));
    let id = server.connection_at(ipv6()).expect("an accepted connection");
    assert_eq!(server.connection_stats(id).map(|stats| stats.mtu), Some(MAX_MTU_IPV6));
}

/// Returns three MTUs of peers behind network interfaces with an MTU of `interface` bytes.
///
/// These are the MTU in the client's request 1, the MTU that the server offers, and the MTU of the server's connection.
fn mtus_at_interface(interface: u16, remote: SocketAddr) -> [Option<u16>; 3] {
    let (now, mut client_config, mut server_config) = (START, client_config(), server_config());
    client_config.interface_mtu = interface;
    (server_config.interface_mtu, server_config.cookies) = (interface, CookiePolicy::Off);
    let (mut client, mut server) = (peer(client_config), peer(server_config));
    client.connect(now, remote).expect("a free slot");
    let requested = mtu_of(&answers(&mut client, now)[0].1);
    server.handle_datagram(now, remote, &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }));
    let offered = mtu_of(&answers(&mut server, now)[0].1);
    let request =
        Offline::Request2 { security: ClientSecurity::None, server: remote, mtu: 1_492, guid: GUID };
    server.handle_datagram(now, remote, &written(&request));
    let id = server.connection_at(remote).expect("an accepted connection");
    [requested, offered, server.connection_stats(id).map(|stats| stats.mtu)]
}

#[test]
fn mtus_and_probes_never_exceed_the_interface() {
    for (interface, over_ipv4, over_ipv6) in
        [(1_500, 1_492, 1_472), (1_400, 1_400, 1_380), (1_280, 1_280, 1_260)]
    {
        assert_eq!(mtus_at_interface(interface, ipv4()), [Some(over_ipv4); 3], "{interface}");
        assert_eq!(mtus_at_interface(interface, ipv6()), [Some(over_ipv6); 3], "{interface}");
    }
    let mut config = client_config();
    config.interface_mtu = 575;
    assert_eq!(peer(config).connect(START, ipv4()), Err(ConnectError::InvalidMtu));
}

/// Like C++ RakNet, a peer accepts datagrams longer than its own MTU. Other implementations send 1,480 or 1,482 bytes.
#[test]
fn datagrams_longer_than_the_local_mtu_are_accepted() {
    let mut net = Net::new(Conditions::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(500));
    for (number, length) in (20..).zip([1_472, 1_473, 1_480, 1_482, 1_492, 2_048]) {
        let capsule = capsule(Reliability::Unreliable, 0, 0);
        let header = data(number, capsule, b"").len();
        let message = vec![0x86; length - header];
        let (now, from) = (net.now(), net.pair.a_address);
        net.pair.b.handle_datagram(now, from, &data(number, capsule, &message));
        net.poll();
        assert_eq!(messages(&net.server).last().map(|message| message.len()), Some(length - header));
    }
}

/// Two connected peers, and a path from the first to the second that carries datagrams of at most `longest` bytes.
struct Path {
    peers: [Peer<'static>; 2],
    addresses: [SocketAddr; 2],
    now: Instant,
    longest: usize,
    /// The longest datagram that the path carries from the second peer to the first.
    longest_back: usize,
    /// The one-way latency.
    latency: Duration,
    /// Datagrams in flight: arrival time, sender and bytes.
    under_way: VecDeque<(Instant, usize, Vec<u8>)>,
    /// The maximum number of events that each application polls per step.
    reads: [usize; 2],
    /// The datagrams that the first peer has sent.
    sent: Vec<Vec<u8>>,
    /// The number of datagrams in a thousand that are lost at random, in each direction.
    lost_of_1000: u64,
    random: u64,
    id: ConnectionId,
    /// The MTUs reported to the first peer's application.
    mtus: Vec<u16>,
    /// The lengths of the messages delivered to the second peer's application.
    arrived: Vec<usize>,
    /// The number of receipts for acknowledged messages at the first peer.
    receipts: usize,
    /// The reason for the disconnection at the first peer.
    ended: Option<DisconnectReason>,
}

impl Path {
    fn new() -> Self {
        Self::between([peer(client_config()), peer(server_config())])
    }

    fn between(mut peers: [Peer<'static>; 2]) -> Self {
        let addresses = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 7)));
        let now = Instant::from_micros(1_000_000);
        let id = peers[0].connect(now, addresses[1]).expect("a free slot");
        let (mtus, arrived) = (Vec::new(), Vec::new());
        let (longest, longest_back, lost_of_1000, random) = (2_048, 2_048, 0, 1);
        let mut path = Self {
            peers,
            addresses,
            now,
            longest,
            longest_back,
            latency: Duration::ZERO,
            under_way: VecDeque::new(),
            reads: [usize::MAX; 2],
            sent: Vec::new(),
            lost_of_1000,
            random,
            id,
            mtus,
            arrived,
            receipts: 0,
            ended: None,
        };
        (0..50).for_each(|_| path.step());
        assert_eq!(path.mtu(), Some(1_492));
        path
    }

    /// Creates a path that loses `lost_of_1000` of a thousand datagrams at random.
    fn with_loss(lost_of_1000: u64, seed: u64) -> Self {
        let mut path = Self::new();
        (path.lost_of_1000, path.random) = (lost_of_1000, seed);
        path
    }

    /// Creates a path on which both peers have an RTT sample.
    fn with_latency(latency: Duration) -> Self {
        let mut path = Self::new();
        path.latency = latency;
        for _ in 0..100 {
            path.send(60);
            path.step();
        }
        path
    }

    fn loses(&mut self) -> bool {
        // The linear congruential generator of Knuth's MMIX.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 1_000 < self.lost_of_1000
    }

    fn mtu(&self) -> Option<u16> {
        self.peers[0].connection_stats(self.id).map(|stats| stats.mtu)
    }

    fn send(&mut self, length: usize) {
        self.deliver(length, Delivery::RELIABLE);
    }

    fn deliver(&mut self, length: usize, delivery: Delivery) {
        let sent = self.peers[0].send(self.now, self.id, &vec![0x86; length], delivery);
        assert!(sent.is_ok(), "{sent:?}");
    }

    /// Advances the time by 10 ms.
    fn step(&mut self) {
        self.now = self.now + Duration::from_millis(10);
        for from in [0, 1] {
            self.peers[from].handle_timeout(self.now);
            for (_, datagram) in answers(&mut self.peers[from], self.now) {
                let longest = if from == 0 { self.longest } else { self.longest_back };
                if from == 0 {
                    self.sent.push(datagram.clone());
                }
                if !self.loses() && datagram.len() <= longest {
                    self.under_way.push_back((self.now + self.latency, from, datagram));
                }
            }
            while self.under_way.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, from, datagram)) = self.under_way.pop_front() else { break };
                self.peers[1 - from].handle_datagram(self.now, self.addresses[from], &datagram);
            }
        }
        for _ in 0..self.reads[0] {
            match self.peers[0].poll_event() {
                None => break,
                Some(Event::MtuChanged { mtu, .. }) => self.mtus.push(mtu),
                Some(Event::Receipt { outcome: Outcome::Acknowledged, .. }) => self.receipts += 1,
                Some(Event::Disconnected { reason, .. }) => self.ended = Some(reason),
                Some(_) => {}
            }
        }
        for _ in 0..self.reads[1] {
            match self.peers[1].poll_event() {
                None => break,
                Some(Event::Message { message, .. }) => self.arrived.push(message.len()),
                Some(_) => {}
            }
        }
    }

    fn run(&mut self, steps: usize) {
        (0..steps).for_each(|_| self.step());
    }

    /// Makes the first peer's operating system refuse a datagram of the negotiated MTU.
    fn refuse_large(&mut self) {
        let (now, to) = (self.now, self.addresses[1]);
        self.peers[0].handle_too_large(now, to, 1_459);
    }

    fn arrived(&self, length: usize) -> usize {
        self.arrived.iter().filter(|arrived| **arrived == length).count()
    }

    /// Returns the number of blocks that each peer holds.
    fn held(&self) -> [usize; 2] {
        self.peers.each_ref().map(|peer| peer.blocks() - peer.blocks_available())
    }

    /// Returns true if both peers hold no blocks at some step of the next two seconds.
    fn frees_all(&mut self) -> bool {
        (0..200).any(|_| {
            self.step();
            self.held() == [0; 2]
        })
    }

    /// Sends messages from the second peer to the first.
    fn send_back(&mut self, count: usize) {
        let id = self.peers[1].connection_at(self.addresses[0]).expect("a connection");
        for _ in 0..count {
            let sent = self.peers[1].send(self.now, id, &[0x86; 200], Delivery::RELIABLE);
            assert!(sent.is_ok(), "{sent:?}");
        }
    }
}

#[test]
fn new_datagrams_are_smaller_after_a_black_hole_is_detected() {
    for (longest, mtus) in [(1_400, &[1_200][..]), (1_000, &[1_200, 576])] {
        let mut path = Path::new();
        path.longest = longest;
        for _ in 0..60 {
            path.send(1_400);
            path.send(1_130);
            for _ in 0..50 {
                path.send(20);
                path.step();
            }
        }
        assert_eq!(path.mtus, mtus);
        assert_eq!(path.mtu(), mtus.last().copied());
        path.send(10_000);
        (0..100).for_each(|_| path.step());
        assert!(path.arrived.contains(&10_000));
    }
}

#[test]
fn unsplit_messages_are_split_when_the_path_mtu_shrinks() {
    let mut path = Path::new();
    path.longest = 1_180;
    for _ in 0..20 {
        path.deliver(1_400, Delivery::RELIABLE_ORDERED);
        for step in 0..100 {
            if step < 20 {
                path.deliver(20, Delivery::RELIABLE_ORDERED);
            }
            path.step();
        }
    }
    let of_one = [&[1_400][..], &[20; 20]].concat();
    assert_eq!(path.arrived, of_one.repeat(20));
    assert_eq!(path.mtus, [1_200]);
}

#[test]
fn a_message_that_is_split_for_a_smaller_mtu_keeps_its_receipt_and_is_delivered_once() {
    let delivery = Delivery::new(Reliability::ReliableWithReceipt);
    for arrives_before in [true, false] {
        let mut path = Path::new();
        (path.longest, path.longest_back) = if arrives_before { (2_048, 0) } else { (1_180, 2_048) };
        path.deliver(1_400, delivery);
        path.step();
        path.step();
        assert_eq!(path.arrived.len(), usize::from(arrives_before));
        let (now, to) = (path.now, path.addresses[1]);
        path.peers[0].handle_too_large(now, to, 1_459);
        (0..100).for_each(|_| path.step());
        path.longest_back = 2_048;
        (0..200).for_each(|_| path.step());
        assert_eq!((&path.arrived[..], path.receipts), (&[1_400][..], 1), "{arrives_before}");
        assert_eq!(path.peers[1].blocks_available(), path.peers[1].blocks(), "{arrives_before}");
    }
}

/// A message is received whole and then again in parts, because its acknowledgement was lost. The first part has the
/// number of the whole message, so it is dropped as a duplicate. The other parts must not wait for it.
#[test]
fn a_message_received_before_it_was_split_leaves_no_state() {
    let mut net = Net::new(Conditions::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(500));
    let mut datagram = 20;
    let mut arrive = |net: &mut Net, number: u32, split: Option<Split>, bytes: &[u8]| {
        let capsule = CapsuleHeader { split, ..capsule(Reliability::Reliable, number, 0) };
        let (now, from) = (net.now(), net.pair.a_address);
        net.pair.b.handle_datagram(now, from, &data(datagram, capsule, bytes));
        datagram += 1;
        net.poll();
    };
    // Number 100 leaves a gap in the received numbers. Tracking the gap takes a block for the rest of the test.
    arrive(&mut net, 100, None, b"\x86");
    let free = net.pair.b.blocks_available();
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (id, order) in (0..).zip(orders) {
        let number = 110 + u32::from(id) * 10;
        arrive(&mut net, number, None, &[0x86; 1_400]);
        for index in order {
            let of = if index == 0 { number } else { number + index };
            arrive(&mut net, of, Some(Split { count: 3, id, index }), &[0x86; 500]);
        }
        assert_eq!(net.pair.b.blocks_available(), free, "{order:?}");
    }
    assert_eq!(messages(&net.server).len(), 1 + orders.len());
    // A duplicate of the first part does not discard the others.
    let split = |index| Some(Split { count: 3, id: 7, index });
    for (number, index) in [(201, 1), (200, 0), (200, 0), (202, 2), (200, 0)] {
        arrive(&mut net, number, split(index), &[0x86; 500]);
    }
    assert_eq!(messages(&net.server).last().map(|message| message.len()), Some(1_500));
    assert_eq!(net.pair.b.blocks_available(), free);
}

/// Some implementations reuse the split id of a complete message. A duplicate of its part must not affect the next one.
#[test]
fn an_early_reuse_of_a_split_id_loses_no_message() {
    for order in [[0, 1], [1, 0]] {
        let mut net = Net::new(Conditions::default(), 1);
        net.connect();
        net.run_for(Duration::from_millis(500));
        let arrive = |net: &mut Net, datagram: u32, number: u32, place: u32, index: u32| {
            let split = Some(Split { count: 2, id: 7, index });
            let capsule = capsule(Reliability::ReliableOrdered, number, place);
            let capsule = CapsuleHeader { split, channel: 3, ..capsule };
            let (now, from) = (net.now(), net.pair.a_address);
            net.pair.b.handle_datagram(now, from, &data(datagram, capsule, &[0x86; 500]));
            net.poll();
        };
        for (datagram, number, index) in [(20, 100, 0), (21, 101, 1), (22, 100, 0)] {
            arrive(&mut net, datagram, number, 0, index);
        }
        for (datagram, index) in (30..).zip(order) {
            arrive(&mut net, datagram, 102 + index, 1, index);
        }
        assert_eq!(messages(&net.server).len(), 2, "{order:?}");
    }
}

/// The receiver drops large messages and acknowledges small ones that need no memory.
#[test]
fn a_receiver_that_does_not_read_is_not_mistaken_for_a_black_hole() {
    let capacity = Capacity { connections: 1, blocks: 64, block_size: 256 };
    let (a, b) = (peer(client_config()), Peer::with_capacity(capacity, server_config()));
    let mut net =
        Net::with(a, b, Conditions { latency: Duration::from_millis(5), ..Conditions::default() }, 1);
    let (client, _) = net.connect();
    for _ in 0..100 {
        let now = net.now();
        net.pair.a.send(now, client, &[0x86; 1_400], Delivery::RELIABLE_ORDERED).expect("free memory");
    }
    // The application stops reading for a while.
    let end = net.now() + Duration::from_secs(120);
    while net.now() < end && net.pair.step() {}
    assert!(net.pair.b.stats().dropped(DropReason::NoMemory) > 0);
    net.run_for(Duration::from_secs(60));
    assert_eq!(messages(&net.server).len(), 100, "{:?}", net.pair.a.connection_stats(client));
    assert_eq!(net.pair.a.connection_stats(client).map(|stats| stats.mtu), Some(1_492));
}

/// On a path that fragments IP packets, parts larger than the reduced MTU arrive. The receiver already has some of
/// them, so all must keep their size.
#[test]
fn messages_split_for_a_larger_mtu_keep_their_parts() {
    let mut path = Path::new();
    path.send(500_000);
    let (now, to) = (path.now, path.addresses[1]);
    path.peers[0].handle_too_large(now, to, 1_459);
    path.send(300_000);
    (0..2_000).for_each(|_| path.step());
    assert_eq!((path.mtu(), &path.mtus[..]), (Some(1_200), &[1_200][..]));
    assert_eq!(path.arrived, [500_000, 300_000]);
}

/// Simulates a step of a game that sends small messages often and large ones occasionally.
fn play(path: &mut Path, millis: usize) {
    if millis.is_multiple_of(30) {
        path.send(60);
    }
    if millis.is_multiple_of(200) {
        path.send(1_400);
    }
    path.step();
}

/// Returns the time in milliseconds until the MTU is reduced on a path that drops all large datagrams, and others at
/// random.
fn time_to_heal(lost_of_1000: u64, seed: u64) -> usize {
    let mut path = Path::with_loss(lost_of_1000, seed);
    path.longest = 1_400;
    for millis in (0..60_000).step_by(10) {
        play(&mut path, millis);
        if !path.mtus.is_empty() {
            return millis;
        }
    }
    panic!("no black hole detected at a loss of {lost_of_1000}/1000, seed {seed}");
}

#[test]
fn a_black_hole_is_detected_despite_random_loss() {
    for (lost_of_1000, longest) in [(0, 400), (10, 500), (50, 600), (200, 1_000)] {
        let times = (1..=16).map(|seed| time_to_heal(lost_of_1000, seed)).max();
        assert!(times < Some(longest), "loss of {lost_of_1000}/1000: detected after {times:?} ms");
    }
}

#[test]
fn random_loss_of_a_large_message_is_not_mistaken_for_a_black_hole() {
    for loss in [0.01, 0.05, 0.2, 0.3] {
        for seed in 0..16 {
            let conditions = Conditions { loss, latency: Duration::from_millis(10), ..Conditions::default() };
            let mut net = Net::new(conditions, seed);
            let (client, _) = net.connect();
            // The negotiated MTU may be smaller than 1,492, because requests 1 may be lost.
            let mtu = |net: &Net| net.pair.a.connection_stats(client).map(|stats| stats.mtu);
            let (now, agreed) = (net.now(), mtu(&net));
            net.pair.a.send(now, client, &[0x86; 1_000_000], Delivery::RELIABLE).expect("free memory");
            assert!(net.run_until(Duration::from_secs(600), |net| !net.server.is_empty()), "{loss} {seed}");
            assert_eq!(mtu(&net), agreed, "{loss} {seed}");
        }
    }
}

#[test]
fn random_loss_of_mixed_messages_is_not_mistaken_for_a_black_hole() {
    for lost_of_1000 in [10, 50, 200, 300] {
        for seed in 1..=16 {
            let mut path = Path::with_loss(lost_of_1000, seed);
            (0..60_000).step_by(10).for_each(|millis| play(&mut path, millis));
            assert_eq!(path.mtus, [0; 0], "loss of {lost_of_1000}/1000, seed {seed}");
        }
    }
}

/// The maximum datagram length on a path with an MTU of 1,300.
const NARROW: usize = 1_272;

/// Runs until all messages are delivered or the connection closes, at most ten seconds, and then one more second.
fn run_until_arrived(path: &mut Path, messages: usize) {
    for _ in 0..1_000 {
        if path.arrived.len() == messages || path.ended.is_some() {
            break;
        }
        path.step();
    }
    (0..100).for_each(|_| path.step());
}

/// The path never carries datagrams of the negotiated MTU, and no small datagrams are in flight.
#[test]
fn split_messages_are_delivered_on_a_path_that_never_carried_large_datagrams() {
    let unordered = Delivery::new(Reliability::ReliableWithReceipt);
    let ordered = Delivery::new(Reliability::ReliableOrderedWithReceipt);
    for (longest, mtus) in [(NARROW, &[1_200][..]), (1_000, &[1_200, 576])] {
        for delivery in [unordered, ordered] {
            let mut path = Path::new();
            path.longest = longest;
            for length in [5_000, 50_000, 1_500, 5_000, 2_900] {
                path.deliver(length, delivery);
            }
            run_until_arrived(&mut path, 5);
            path.arrived.sort_unstable();
            assert_eq!(path.arrived, [1_500, 2_900, 5_000, 5_000, 50_000], "{longest} {delivery:?}");
            assert_eq!((&path.mtus[..], path.receipts, path.ended), (mtus, 5, None));
            let free = path.peers.each_ref().map(|peer| peer.blocks() - peer.blocks_available());
            assert_eq!(free, [0, 0], "{longest} {delivery:?}");
        }
    }
}

#[test]
fn a_large_transfer_completes_on_a_path_that_drops_large_datagrams() {
    let mut path = Path::new();
    path.longest = NARROW;
    path.send(300_000);
    path.send(100_000);
    run_until_arrived(&mut path, 2);
    path.arrived.sort_unstable();
    assert_eq!(path.arrived, [100_000, 300_000]);
}

/// Ordered messages cannot be delivered twice, so it is safe to split them again although earlier large datagrams were
/// acknowledged.
#[test]
fn split_messages_are_delivered_after_the_path_mtu_shrinks() {
    let mut path = Path::new();
    path.deliver(50_000, Delivery::RELIABLE_ORDERED);
    run_until_arrived(&mut path, 1);
    path.longest = NARROW;
    for length in [5_000, 50_000, 5_000] {
        path.deliver(length, Delivery::RELIABLE_ORDERED);
    }
    run_until_arrived(&mut path, 4);
    assert_eq!(path.arrived, [50_000, 5_000, 50_000, 5_000]);
    assert_eq!((&path.mtus[..], path.ended), (&[1_200][..], None));
}

/// The last datagram of a message may fit a path of 972 bytes although it is too long for the minimum MTU.
#[test]
fn split_messages_are_delivered_after_the_path_mtu_shrinks_again() {
    for length in [50_000, 44 * 1_137, 50_700, 5_000] {
        let mut path = Path::new();
        let mut sent = 0;
        let mut send = |path: &mut Path| {
            for _ in 0..5 {
                path.deliver(length, Delivery::RELIABLE_ORDERED);
                sent += 1;
                run_until_arrived(path, sent);
                assert_eq!((path.arrived.len(), path.ended), (sent, None), "{length} {:?}", path.mtus);
            }
        };
        send(&mut path);
        path.longest = NARROW;
        send(&mut path);
        path.longest = 972;
        send(&mut path);
        assert_eq!(path.mtus, [1_200, 576]);
    }
}

/// The path MTU is reduced after the receiver has the whole message, but before the sender has an acknowledgement.
#[test]
fn a_received_message_that_is_split_again_is_delivered_once() {
    let mut path = Path::new();
    path.longest_back = 0;
    path.deliver(5_000, Delivery::new(Reliability::ReliableOrderedWithReceipt));
    (0..5).for_each(|_| path.step());
    assert_eq!(path.arrived, [5_000]);
    (path.longest, path.longest_back) = (NARROW, 2_048);
    path.deliver(50_000, Delivery::RELIABLE_ORDERED);
    run_until_arrived(&mut path, 2);
    assert_eq!((&path.arrived[..], path.receipts, path.ended), (&[5_000, 50_000][..], 1, None));
    let free = path.peers.each_ref().map(|peer| peer.blocks() - peer.blocks_available());
    assert_eq!(free, [0, 0]);
}

/// A message cannot be split again if one of its parts was acknowledged. Neither can an unordered message that may have
/// been received whole, because it could be delivered twice.
#[test]
fn a_message_that_cannot_be_split_again_closes_the_connection() {
    for is_on_its_way in [true, false] {
        let mut path = Path::new();
        path.send(50_000);
        if is_on_its_way {
            path.send(500_000);
            path.step();
            path.step();
        } else {
            run_until_arrived(&mut path, 1);
        }
        path.longest = NARROW;
        path.send(5_600);
        let since = path.now;
        while path.ended.is_none() {
            path.step();
            let passed = path.now.saturating_since(since);
            assert!(passed < client_config().timeout, "not closed, in flight: {is_on_its_way}");
        }
        assert_eq!(path.ended, Some(DisconnectReason::PathTooNarrow), "{is_on_its_way}");
        assert_eq!(path.mtus, [1_200]);
    }
}

/// The length of a probe that exceeds an MTU of 1,200.
const PROBE: usize = 1_168;

/// Messages of 1,100 bytes fit the next smaller MTU, but not the path. Only path probes are longer, so only they can
/// reveal the black hole.
#[test]
fn messages_that_fit_the_next_smaller_mtu_are_delivered_on_a_path_with_a_still_smaller_mtu() {
    for latency in [0, 10, 100] {
        for beside in [0, 1, 5] {
            let mut path = Path::with_latency(Duration::from_millis(latency));
            path.longest = 1_000;
            path.send(1_100);
            let since = path.now;
            while path.arrived(1_100) == 0 {
                (0..beside).for_each(|_| path.send(20));
                path.step();
                let passed = path.now.saturating_since(since);
                assert!(passed < Duration::from_secs(20), "{latency} ms, beside {beside}: {:?}", path.mtus);
            }
            assert_eq!(path.mtus, [1_200, 576], "{latency} ms, beside {beside}");
        }
    }
}

#[test]
fn a_flow_that_fits_the_next_smaller_mtu_continues_on_a_path_with_a_still_smaller_mtu() {
    for latency in [0, 10, 100] {
        let mut path = Path::with_latency(Duration::from_millis(latency));
        path.longest = 1_000;
        for _ in 0..1_000 {
            path.send(20);
            path.send(1_100);
            path.step();
        }
        let since = path.now;
        while path.arrived(1_100) < 1_000 {
            path.step();
            let passed = path.now.saturating_since(since);
            assert!(passed < Duration::from_secs(30), "{latency} ms: {} arrived", path.arrived(1_100));
        }
        assert_eq!(path.mtus, [1_200, 576], "{latency}");
    }
}

#[test]
fn random_loss_of_small_datagrams_is_not_mistaken_for_a_black_hole() {
    let mut probes = 0;
    for (lost_of_1000, seed) in [(10, 1), (200, 2), (500, 3), (600, 4)] {
        let mut path = Path::with_loss(lost_of_1000, seed);
        for step in 0..10_000 {
            // The higher the loss, the less is sent, so that the send queue does not grow without bound.
            if step % (1 + lost_of_1000 / 20) == 0 {
                path.send(20);
                path.send(600);
            }
            path.step();
        }
        probes += path.sent.iter().filter(|datagram| datagram.len() >= PROBE).count();
        assert!(path.mtus.is_empty(), "{lost_of_1000}: {:?}", path.mtus);
    }
    assert!(probes > 0);
}

/// Each outage is shorter than the idle timeout and loses a path probe.
#[test]
fn outages_without_large_datagrams_are_not_mistaken_for_a_black_hole() {
    for latency in [0, 10, 100] {
        let mut path = Path::with_latency(Duration::from_millis(latency));
        for outage in 0..40 {
            (path.longest, path.longest_back) = (0, 0);
            path.send(1_100);
            path.run(300 + 5 * outage);
            (path.longest, path.longest_back) = (2_048, 2_048);
            path.run(500);
        }
        assert_eq!((&path.mtus[..], path.ended), (&[][..], None), "{latency}");
        assert_eq!(path.arrived(1_100), 40);
        assert!(path.sent.iter().any(|datagram| datagram.len() >= PROBE), "{latency}");
    }
}

/// The last part of the message is received. The other parts exceed the path MTU by less than the length of a ping.
#[test]
fn an_unsplittable_message_slightly_above_the_path_mtu_is_delivered_or_closes_the_connection() {
    for longest in [1_157, 1_160, 1_164, 1_170] {
        let mut path = Path::with_latency(Duration::from_millis(10));
        path.deliver(50_000, Delivery::RELIABLE_ORDERED);
        run_until_arrived(&mut path, 101);
        path.longest = longest;
        path.deliver(50_000, Delivery::RELIABLE_ORDERED);
        let since = path.now;
        while path.ended.is_none() && path.arrived.len() == 101 {
            path.step();
            let passed = path.now.saturating_since(since);
            assert!(passed < client_config().timeout, "longest datagram {longest}: MTUs {:?}", path.mtus);
        }
        let expected = if path.arrived.len() == 102 { None } else { Some(DisconnectReason::PathTooNarrow) };
        assert_eq!(path.ended, expected, "{longest}");
    }
}

/// Other messages are acknowledged meanwhile, so the idle timeout does not close the connection.
#[test]
fn an_unsplittable_message_closes_the_connection_despite_other_traffic() {
    let mut path = Path::new();
    path.send(500_000);
    path.step();
    path.step();
    path.longest = NARROW;
    for _ in 0..1_000 {
        if path.ended.is_some() {
            break;
        }
        path.send(1_100);
        path.step();
    }
    assert_eq!(path.ended, Some(DisconnectReason::PathTooNarrow));
}

/// The driver reports that a datagram was too large, but the connection has closed meanwhile.
#[test]
fn a_too_large_report_after_a_disconnect_changes_no_mtu() {
    let mut path = Path::new();
    let [client, server] = path.addresses;
    let id = path.peers[1].connection_at(client).expect("a connection");
    path.peers[1].disconnect(path.now, id);
    while path.ended.is_none() {
        path.step();
    }
    path.peers[0].handle_too_large(path.now, server, 1_464);
    path.step();
    assert!(path.mtus.is_empty(), "{:?}", path.mtus);
}

#[test]
fn a_connection_closed_by_an_unsplittable_message_frees_its_slot() {
    let mut path = Path::new();
    path.send(50_000);
    run_until_arrived(&mut path, 1);
    path.longest = NARROW;
    path.send(5_600);
    let since = path.now;
    let is_in_time = |path: &Path| path.now.saturating_since(since) < 10 * client_config().timeout;
    while path.peers.iter().any(|peer| peer.poll_timeout().is_some()) && is_in_time(&path) {
        path.step();
    }
    assert_eq!(path.ended, Some(DisconnectReason::PathTooNarrow));
    let next = path.peers.each_ref().map(Peer::poll_timeout);
    assert_eq!(next, [None, None]);
}

/// Creates a peer with little memory.
fn small(config: Config) -> Peer<'static> {
    Peer::with_capacity(Capacity { connections: 1, blocks: 60, block_size: 256 }, config)
}

/// The receiver rarely has more than two free blocks, so it usually refuses large messages.
#[test]
fn a_receiver_with_memory_only_for_small_messages_is_not_mistaken_for_a_black_hole() {
    let mut path = Path::between([peer(client_config()), small(server_config())]);
    path.reads[1] = 0;
    (0..80).for_each(|_| path.send(20));
    path.run(20);
    path.reads[1] = 1;
    for step in 0..3_000 {
        path.send(20);
        if step % 50 == 0 {
            path.send(1_400);
        }
        path.step();
    }
    assert!(path.peers[1].stats().dropped(DropReason::NoMemory) > 0);
    assert!(path.arrived(1_400) < 60);
    assert_eq!(path.mtus, [0; 0]);
    path.reads[1] = usize::MAX;
    path.run(1_000);
    assert_eq!((path.arrived(1_400), &path.mtus[..], path.held()), (60, &[][..], [0; 2]));
}

/// A message sent in large datagrams arrives after the MTU was reduced because earlier large datagrams were lost.
#[test]
fn late_large_datagrams_deliver_their_message_once() {
    let mut cut = 0;
    for sent in (0..240).step_by(4) {
        let mut path = Path::with_latency(Duration::from_millis(50));
        for step in 0..400 {
            if step % 3 == 0 && step < 300 {
                path.send(60);
            }
            if step % 20 == 0 && step < sent {
                path.send(1_400);
            }
            path.longest = if step == sent { 2_048 } else { NARROW };
            if step == sent {
                path.send(2_800);
            }
            path.step();
        }
        path.run(400);
        assert_eq!((path.arrived(2_800), path.ended), (1, None), "{sent}");
        assert!(path.frees_all(), "{sent}");
        cut += path.mtus.len();
    }
    assert!(cut > 10, "{cut}");
}

/// Datagrams sent before the operating system refused one are still in flight.
#[test]
fn datagrams_in_flight_before_a_too_large_report_deliver_their_message_once() {
    let mut path = Path::with_latency(Duration::from_millis(50));
    path.send(2_800);
    path.step();
    path.refuse_large();
    path.run(100);
    assert_eq!((path.arrived(2_800), &path.mtus[..]), (1, &[1_200][..]));
    assert!(path.frees_all());
}

#[test]
fn split_messages_are_split_again_after_a_too_large_report() {
    let mut path = Path::new();
    path.longest = 1_180;
    path.send(5_000);
    path.step();
    path.refuse_large();
    path.sent.clear();
    path.send(5_000);
    path.run(20);
    assert_eq!((&path.arrived[..], path.held()), (&[5_000, 5_000][..], [0; 2]));
    let longest = path.sent.iter().map(Vec::len).max();
    assert!(longest <= Some(1_172), "{longest:?}");
}

/// Parts reserve space for the longest header, but the header of this message is shorter, so it fits unsplit. Many such
/// messages are queued when the path MTU is reduced.
#[test]
fn a_message_that_fits_the_reduced_mtu_is_not_split() {
    let mut config = client_config();
    config.outgoing_limit = Some(2_000_000);
    let mut path = Path::between([peer(config), peer(server_config())]);
    path.longest = 1_180;
    for step in 0..1_000 {
        if !path.mtus.is_empty() {
            break;
        }
        path.send(60);
        if step % 10 == 0 {
            path.send(1_400);
        }
        for _ in 0..5 {
            let low = Delivery::RELIABLE.with_priority(Priority::Low);
            // A refused message means that enough are queued.
            let _ = path.peers[0].send(path.now, path.id, &[0x86; 1_150], low);
        }
        path.step();
    }
    let waiting = path.peers[0].connection_stats(path.id).map(|stats| stats.waiting);
    assert_eq!(path.mtus, [1_200]);
    assert!(waiting.is_some_and(|waiting| waiting.iter().any(|queue| queue.messages > 20)), "{waiting:?}");
    path.run(1_000);
    let halves = path.sent.iter().filter(|datagram| (500..700).contains(&datagram.len())).count();
    assert_eq!(halves, 0);
}

/// The sender's memory is full of received messages that its own application has not read.
#[test]
fn a_message_is_split_again_once_memory_is_available() {
    let mut path = Path::between([small(client_config()), peer(server_config())]);
    (path.longest, path.reads[0]) = (NARROW, 0);
    path.send_back(40);
    path.send(5_600);
    path.run(1_500);
    assert_eq!((path.arrived.len(), path.ended), (0, None));
    assert!(path.held()[0] > 50, "{:?}", path.held());
    path.reads[0] = usize::MAX;
    path.run(500);
    assert_eq!((&path.arrived[..], path.ended), (&[5_600][..], None));
    assert!(path.frees_all());
}

#[test]
fn a_message_that_lacks_the_memory_to_be_split_again_closes_the_connection() {
    let capacity = Capacity { connections: 2, blocks: 160, block_size: 256 };
    let mut path = Path::between([Peer::with_capacity(capacity, client_config()), peer(server_config())]);
    path.longest = NARROW;
    path.send(12_800);
    path.run(1_500);
    assert_eq!(path.ended, Some(DisconnectReason::PathTooNarrow));
}

/// While there is no memory for the large probe, the small probe must wait as well.
#[test]
fn a_large_probe_precedes_the_small_probe_despite_a_lack_of_memory() {
    let mut path = Path::between([small(client_config()), peer(server_config())]);
    (path.longest, path.reads[0]) = (0, 0);
    path.send(5_600);
    (0..6).for_each(|_| path.send(200));
    path.send_back(60);
    path.run(100);
    assert_eq!(path.peers[0].blocks_available(), 0);
    path.sent.clear();
    (path.longest, path.reads[0]) = (NARROW, usize::MAX);
    path.run(50);
    // A data datagram that begins with an unreliable message, which is a ping.
    let is_probe = |datagram: &&Vec<u8>| datagram[0] & 0xE0 == 0x80 && datagram[4] >> 5 == 0;
    let probe = path.sent.iter().find(is_probe).map(Vec::len);
    assert!(probe > Some(1_200), "{probe:?}");
}

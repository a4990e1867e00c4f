//! The `Hook` trait, and the hooks of this crate: message filter, packet logger and capture writer.

use core::net::SocketAddr;
use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

use rakwire::raknet::{
    ConnectionId, Delivery, Direction, Event, FilterGroup, Hook, Hooked, LineWriter, LogSink, MessageFilter,
    PacketLogger, PcapWriter, Peer, RakNet, SendError, Verdict,
};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine};

use crate::support::raknet::{client_config, peer, server_config};

const CONDITIONS: Conditions = Conditions {
    loss: 0.0,
    duplication: 0.0,
    reordering: 0.0,
    latency: Duration::from_millis(5),
    jitter: Duration::ZERO,
    bottleneck: None,
    bursts: None,
};

type Joined<H> = Pair<Peer<'static>, Hooked<'static, H>>;

fn pair<H: Hook<RakNet>>(hook: H) -> Joined<H> {
    let server = Hooked::new(peer(server_config()), hook);
    Pair::new(peer(client_config()), server, CONDITIONS, 1)
}

/// Runs for `time`; returns the messages that the server received, and the connection's id at the client and at the
/// server if it opened.
fn run<H: Hook<RakNet>>(
    pair: &mut Joined<H>,
    time: Duration,
) -> (Vec<Vec<u8>>, Option<ConnectionId>, Option<ConnectionId>) {
    let end = pair.now + time;
    let (mut messages, mut client, mut server) = (Vec::new(), None, None);
    while pair.now < end && pair.step() {
        while let Some(event) = pair.a.poll_event() {
            if let Event::Connected { id, .. } = event {
                client = Some(id);
            }
        }
        while let Some(event) = pair.b.poll_event() {
            if let Event::Connected { id, .. } = event {
                server = Some(id);
            }
            if let Event::Message { message, .. } = event {
                messages.push(message.to_vec());
            }
        }
    }
    (messages, client, server)
}

fn connect<H: Hook<RakNet>>(pair: &mut Joined<H>) -> (ConnectionId, ConnectionId) {
    pair.a.connect(pair.now, pair.b_address).expect("a free slot");
    let (_, client, server) = run(pair, Duration::from_secs(1));
    (client.expect("an open connection"), server.expect("an open connection"))
}

#[test]
fn a_message_filter_enforces_the_rules_of_each_group() {
    let mut filter = MessageFilter::<2>::new();
    filter.deny_all(FilterGroup::DEFAULT);
    filter.allow(FilterGroup::DEFAULT, [0x86]);
    let mut pair = pair(filter);
    let (client, server) = connect(&mut pair);
    let send = |pair: &mut Joined<MessageFilter<2>>| {
        for id in [0x86, 0x90] {
            pair.a.send(pair.now, client, &[id], Delivery::RELIABLE_ORDERED).expect("free memory");
        }
        run(pair, Duration::from_secs(1)).0
    };
    assert_eq!(send(&mut pair), [[0x86]]);
    assert_eq!(pair.b.hook.dropped(), 1);
    assert!(pair.b.hook.set_group(server, FilterGroup(1)));
    assert_eq!(send(&mut pair), [[0x86], [0x90]]);
    assert!(!pair.b.hook.set_group(server, FilterGroup(9)));
    assert_eq!(pair.b.hook.group_of(server), FilterGroup(1));
    assert!(pair.b.hook.set_group(server, FilterGroup::DEFAULT));
    assert_eq!(pair.b.hook.group_of(server), FilterGroup::DEFAULT);
}

#[test]
fn a_closed_connection_leaves_its_filter_group() {
    let mut pair = pair(MessageFilter::<1>::new());
    let (client, server) = connect(&mut pair);
    assert!(pair.b.hook.set_group(server, FilterGroup(3)));
    pair.a.disconnect(pair.now, client);
    run(&mut pair, Duration::from_secs(3));
    assert_eq!(pair.b.hook.group_of(server), FilterGroup::DEFAULT);
    assert_eq!(pair.b.peer.blocks_available(), pair.b.peer.blocks());
}

/// A hook that drops datagrams from one address, refuses to send one message, and sends its own message.
#[derive(Default)]
struct Meddler {
    drops_from: Option<SocketAddr>,
    greeted: bool,
    target: Option<ConnectionId>,
}

impl Hook<RakNet> for Meddler {
    fn on_received(&mut self, _: Instant, from: SocketAddr, _: &[u8]) -> Verdict {
        if self.drops_from == Some(from) { Verdict::Drop } else { Verdict::Pass }
    }

    fn on_send(&mut self, _: Instant, _: ConnectionId, message: &[u8], _: Delivery) -> Verdict {
        if message == b"\x86secret" { Verdict::Drop } else { Verdict::Pass }
    }

    fn on_event(&mut self, _: Instant, event: &Event<'_>) -> Verdict {
        if let Event::Connected { id, .. } = event {
            self.target = Some(*id);
        }
        Verdict::Pass
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_>) {
        if let (false, Some(id)) = (self.greeted, self.target) {
            self.greeted = peer.send(now, id, b"\x86injected", Delivery::RELIABLE).is_ok();
        }
    }
}

#[test]
fn a_hook_can_send_messages_refuse_sends_and_drop_datagrams() {
    let mut pair = pair(Meddler::default());
    let (client, server) = connect(&mut pair);
    let now = pair.now;
    let refused = pair.b.send(now, server, b"\x86secret", Delivery::RELIABLE);
    assert_eq!(refused, Err(SendError::Filtered));
    assert_eq!(pair.b.send(now, server, b"\x86public", Delivery::RELIABLE), Ok(None));
    pair.b.hook.drops_from = Some(pair.a_address);
    let before = pair.b.peer.stats().datagrams_received;
    pair.a.send(now, client, b"\x86lost", Delivery::UNRELIABLE).expect("free memory");
    let end = pair.now + Duration::from_millis(100);
    let mut events = Vec::new();
    while pair.now < end && pair.step() {
        while let Some(event) = pair.a.poll_event() {
            if let Event::Message { message, .. } = event {
                events.push(message.to_vec());
            }
        }
        assert!(pair.b.poll_event().is_none());
    }
    assert_eq!(events, [b"\x86public"]);
    assert!(pair.b.hook.greeted);
    assert_eq!(pair.b.peer.stats().datagrams_received, before);
}

/// A hook that records every time passed to it.
#[derive(Default)]
struct Times(Vec<Instant>);

impl Hook<RakNet> for Times {
    fn on_received(&mut self, now: Instant, _: SocketAddr, _: &[u8]) -> Verdict {
        self.0.push(now);
        Verdict::Pass
    }

    fn on_transmit(&mut self, now: Instant, _: SocketAddr, _: &[u8]) -> Verdict {
        self.0.push(now);
        Verdict::Pass
    }

    fn on_event(&mut self, now: Instant, _: &Event<'_>) -> Verdict {
        self.0.push(now);
        Verdict::Pass
    }

    fn on_send(&mut self, now: Instant, _: ConnectionId, _: &[u8], _: Delivery) -> Verdict {
        self.0.push(now);
        Verdict::Pass
    }

    fn update(&mut self, now: Instant, _: &mut Peer<'_>) {
        self.0.push(now);
    }
}

/// The clock of a driver may step back.
#[test]
fn the_times_passed_to_a_hook_never_go_backwards() {
    let mut pair = pair(Times::default());
    let (client, server) = connect(&mut pair);
    let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
    let (late, early) = (pair.now, Instant::from_micros(1));
    for (now, number) in [(late, 0x86), (early, 0x87)] {
        pair.a.send(late, client, &[number], Delivery::RELIABLE).expect("free memory");
        let sent = pair.a.poll_transmit(late, &mut buffer).expect("a message");
        pair.b.handle_datagram(now, pair.a_address, sent.payload);
        assert!(matches!(pair.b.poll_event(), Some(Event::Message { .. })));
        pair.b.send(now, server, &[number], Delivery::RELIABLE).expect("free memory");
        pair.b.handle_timeout(now);
        while pair.b.poll_transmit(now, &mut buffer).is_some() {}
    }
    assert!(pair.b.hook.0.is_sorted(), "{:?}", pair.b.hook.0);
}

#[test]
fn captures_and_text_logs_record_every_datagram() {
    let file = Rc::new(RefCell::new(Vec::new()));
    let sink = {
        let file = Rc::clone(&file);
        move |bytes: &[u8]| file.borrow_mut().extend_from_slice(bytes)
    };
    let local = "192.0.2.2:2".parse().expect("an address");
    let loggers = (PacketLogger(PcapWriter::new(local, sink)), PacketLogger(LineWriter::new(String::new())));
    let mut pair = pair(loggers);
    connect(&mut pair);
    let lines = pair.b.hook.1.0.target.clone();
    let first: Vec<_> = lines.lines().take(3).collect();
    assert_eq!(first[0], "1.005000 in 192.0.2.1:1 1464 bytes, open connection request 1");
    assert_eq!(first[1], "1.005000 out 192.0.2.1:1 32 bytes, open connection reply 1");
    assert_eq!(first[2], "1.015000 in 192.0.2.1:1 39 bytes, open connection request 2");
    assert!(lines.contains("data 0") && lines.contains("acknowledgement"));
    assert_eq!(check_capture(&file.borrow()), vec![4; lines.lines().count()]);
}

/// A dual-stack socket communicates with peers of both IP versions.
#[test]
fn captures_contain_addresses_of_both_ip_versions() {
    let mut file = Vec::new();
    let mut writer =
        PcapWriter::new("[::]:2".parse().expect("an address"), |bytes: &[u8]| file.extend(bytes));
    let peers = ["192.0.2.1:1", "[2001:db8::1]:1", "[::ffff:192.0.2.1]:1", "[2001:db8::1]:65535"];
    for (peer, length) in peers.into_iter().zip([0, 1, 1_200, 65_527]) {
        let peer = peer.parse().expect("an address");
        writer.record(Instant::ZERO, Direction::Receiving, peer, &vec![0xFF; length]);
        writer.record(Instant::ZERO, Direction::Sending, peer, &vec![0xA5; length]);
    }
    // This payload exceeds the maximum length of an IPv4 packet, so the writer omits it.
    writer.record(
        Instant::ZERO,
        Direction::Sending,
        "192.0.2.1:1".parse().expect("an address"),
        &[0; 65_520],
    );
    assert_eq!(check_capture(&file), [4, 4, 6, 6, 4, 4, 6, 6]);
}

/// Parses a capture and checks every length and every checksum; returns the IP versions.
fn check_capture(file: &[u8]) -> Vec<u8> {
    assert_eq!(file[..4], [0xA1, 0xB2, 0xC3, 0xD4]);
    assert_eq!(file[20..24], [0, 0, 0, 101]);
    let mut rest = &file[24..];
    let mut versions = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
        let packet = &rest[16..16 + length];
        let (header, addresses, protocol) = match packet[0] {
            0x45 => {
                assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), length);
                assert_eq!(sum(&packet[..20]), 0xFFFF, "the IPv4 checksum of packet {}", versions.len());
                (20, 12, packet[9])
            }
            first => {
                assert_eq!(first, 0x60);
                (40, 8, packet[6])
            }
        };
        let udp = &packet[header..];
        assert_eq!((protocol, usize::from(u16::from_be_bytes([udp[4], udp[5]]))), (17, udp.len()));
        let pseudo = [&packet[addresses..header], &[0, 17], &udp[4..6], udp].concat();
        assert_eq!(sum(&pseudo), 0xFFFF, "the UDP checksum of packet {}", versions.len());
        versions.push(packet[0] >> 4);
        rest = &rest[16 + length..];
    }
    versions
}

/// Returns the ones' complement sum.
fn sum(bytes: &[u8]) -> u32 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    words.fold(0, |sum, word| (sum + word) % 0x1_0000 + (sum + word) / 0x1_0000)
}

/// Some drivers poll the events of each connection separately.
#[test]
fn a_message_filter_applies_to_events_polled_per_connection() {
    let mut filter = MessageFilter::<1>::new();
    filter.deny(FilterGroup::DEFAULT, [0x90]);
    let mut pair = pair(filter);
    let (client, _) = connect(&mut pair);
    for id in [0x90, 0x86, 0x90, 0x87, 0x90] {
        pair.a.send(pair.now, client, &[id], Delivery::RELIABLE_ORDERED).expect("free memory");
    }
    let (end, mut messages) = (pair.now + Duration::from_secs(1), Vec::new());
    while pair.now < end && pair.step() {
        while let Some(id) = pair.b.poll_readable() {
            while let Some(event) = pair.b.poll_event_of(id) {
                if let Event::Message { message, .. } = event {
                    messages.push(message.to_vec());
                }
            }
        }
    }
    assert_eq!((messages, pair.b.hook.dropped()), (vec![vec![0x86], vec![0x87]], 3));
    pair.a.disconnect(pair.now, client);
    run(&mut pair, Duration::from_secs(3));
    assert_eq!(pair.b.peer.blocks_available(), pair.b.peer.blocks());
}

/// A hook that would drop every event, but declares that it does not watch events.
struct Blind;

impl Hook<RakNet> for Blind {
    fn on_event(&mut self, _: Instant, _: &Event<'_>) -> Verdict {
        Verdict::Drop
    }

    fn watches_events(&self) -> bool {
        false
    }
}

#[test]
fn a_hook_that_does_not_watch_events_receives_none() {
    // The application is notified of the connection nevertheless.
    connect(&mut pair(Blind));
    let mut both = pair((Blind, MessageFilter::<1>::new()));
    both.a.connect(both.now, both.b_address).expect("a free slot");
    let (_, _, server) = run(&mut both, Duration::from_secs(1));
    assert_eq!(server, None, "a pair of hooks passes events to both if one watches them");
}

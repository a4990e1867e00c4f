//! Clients with unvalidated addresses: limits on their number and on the bytes sent to them, and their effect on other
//! clients.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::U24;
use rakwire::endpoint::{Protocol, RefuseReason};
use rakwire::raknet::{
    Capacity, Config, ConnectionId, CookiePolicy, Delivery, DisconnectReason, DropReason, Event, Guid, Peer,
    RakNet, Reliability,
};
use rakwire::wire::address::AddressList;
use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope};
use rakwire::wire::{MAX_DATAGRAM, Reader, Source, Wire};

use crate::support::forged::{answers, capsule, data, request_2, written};
use crate::support::raknet::{OwnedEvent, client_config, peer};

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 19_132);
const START: Instant = Instant::from_micros(1_000_000);

fn server(places: u16, change: impl FnOnce(&mut Config)) -> Peer<'static> {
    let mut config = Config::new([2; 32]);
    config.max_incoming = places;
    change(&mut config);
    Peer::with_capacity(Capacity { connections: places.into(), blocks: 4_096, block_size: 512 }, config)
}

/// Returns the datagrams of a client's complete handshake, forged without data from the server.
fn forged_handshake(guid: u64, mtu: u16) -> [Vec<u8>; 4] {
    let request = Control::Request { guid: Guid(guid), time: 0, proof: None, password: b"" };
    let addresses = AddressList::unassigned(10);
    let last = Control::NewIncoming { server: SERVER.into(), addresses, accepted_time: 0, time: 0 };
    [
        written(&Offline::Request1 { protocol: 6, mtu }),
        request_2(ClientSecurity::None, guid),
        data(0, capsule(Reliability::Reliable, 0, 0), &written(&request)),
        data(1, capsule(Reliability::ReliableOrdered, 1, 0), &written(&last)),
    ]
}

fn acknowledgement(first: u32, last: u32) -> Vec<u8> {
    let mut bytes = written(&DatagramHeader::Ack { arrival_speed: None, records: 1 });
    bytes.extend(written(&Record { first: U24::new(first), last: U24::new(last) }));
    bytes
}

/// A client that records its events and the length of reply 1.
struct Client {
    peer: Peer<'static>,
    address: SocketAddr,
    answers_pings: bool,
    /// The length of the first reply 1 received.
    reply_1: usize,
    events: Vec<OwnedEvent>,
}

impl Client {
    fn new(now: Instant, address: impl Into<SocketAddr>, guid: u64) -> Self {
        let mut config = client_config();
        config.guid = Guid(guid);
        let mut peer = peer(config);
        peer.connect(now, SERVER.into()).expect("a free slot");
        Self { peer, address: address.into(), answers_pings: true, reply_1: 0, events: Vec::new() }
    }

    fn is_connected(&self) -> bool {
        self.events.iter().any(|event| matches!(event, OwnedEvent::Connected(_)))
    }

    fn receive(&mut self, now: Instant, datagram: &[u8]) {
        if datagram[0] == 0x06 && self.reply_1 == 0 {
            self.reply_1 = datagram.len();
        }
        self.peer.handle_datagram(now, SERVER.into(), datagram);
        while let Some(event) = self.peer.poll_event() {
            match event {
                Event::Connected { id, .. } => self.events.push(OwnedEvent::Connected(id)),
                Event::ConnectFailed { id, reason, .. } => self.events.push(OwnedEvent::Failed(id, reason)),
                Event::Message { id, delivery, message } => {
                    self.events.push(OwnedEvent::Message(id, delivery, message.to_vec()));
                }
                Event::Disconnected { .. }
                | Event::Refused { .. }
                | Event::Receipt { .. }
                | Event::Progress { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => {}
            }
        }
    }
}

/// A server and a client with a path between them.
struct Path {
    server: Peer<'static>,
    opened: Vec<ConnectionId>,
    now: Instant,
    one_way: Duration,
    to_server: Vec<(Instant, Vec<u8>)>,
    to_client: Vec<(Instant, Vec<u8>)>,
}

impl Path {
    fn new(server: Peer<'static>, one_way: Duration) -> Self {
        Self { server, opened: Vec::new(), now: START, one_way, to_server: Vec::new(), to_client: Vec::new() }
    }

    /// Advances the time by a millisecond. Datagrams to the client for which `drops` returns true are lost.
    fn step(&mut self, client: &mut Client, mut drops: impl FnMut(&[u8]) -> bool) {
        let now = self.now;
        client.peer.handle_timeout(now);
        self.server.handle_timeout(now);
        for (_, bytes) in answers(&mut client.peer, now) {
            if client.answers_pings || !has_pong(&bytes) {
                self.to_server.push((now + self.one_way, bytes));
            }
        }
        for bytes in arrived(&mut self.to_server, now) {
            self.server.handle_datagram(now, client.address, &bytes);
        }
        while let Some(event) = self.server.poll_event() {
            if let Event::Connected { id, .. } = event {
                self.opened.push(id);
            }
        }
        for (to, bytes) in answers(&mut self.server, now) {
            if to == client.address && !drops(&bytes) {
                self.to_client.push((now + self.one_way, bytes));
            }
        }
        for bytes in arrived(&mut self.to_client, now) {
            client.receive(now, &bytes);
        }
        self.now = now + Duration::from_millis(1);
    }

    fn run(&mut self, client: &mut Client, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step(client, |_| false);
        }
    }
}

/// Returns true if a datagram contains a connected pong.
fn has_pong(datagram: &[u8]) -> bool {
    let mut reader = Reader::new(datagram);
    let Ok(DatagramHeader::Data { .. }) = DatagramHeader::read(&mut reader) else { return false };
    while let Ok(capsule) = CapsuleHeader::read(&mut reader) {
        let payload = reader.take(capsule.length()).expect("a whole message");
        if payload[0] == 0x03 {
            return true;
        }
    }
    false
}

fn arrived(queue: &mut Vec<(Instant, Vec<u8>)>, now: Instant) -> Vec<Vec<u8>> {
    let (due, later) = std::mem::take(queue).into_iter().partition(|(at, _)| *at <= now);
    *queue = later;
    let due: Vec<_> = due;
    due.into_iter().map(|(_, bytes)| bytes).collect()
}

/// Attack A4: forged acknowledgements keep forged connections open for three minutes. The rate limit of unvalidated
/// clients refills every ten seconds, but their number of slots does not grow.
#[test]
fn a04_persistent_forged_connections_take_at_most_an_eighth_of_the_slots() {
    let mut server = server(100, |_| {});
    let from = |number: u32| {
        let [_, high, middle, low] = number.to_be_bytes();
        SocketAddr::from(([10, high, middle, low], 4_000))
    };
    let mut now = START;
    for second in 0..180_u32 {
        for number in second * 3..second * 3 + 3 {
            for datagram in forged_handshake(u64::from(number) + 1_000, 1_492) {
                server.handle_datagram(now, from(number), &datagram);
            }
        }
        answers(&mut server, now);
        if second % 3 == 0 {
            let alive = acknowledgement(0, 200);
            (0..second * 3).for_each(|number| server.handle_datagram(now, from(number), &alive));
        }
        while server.poll_event().is_some() {}
        now = now + Duration::from_secs(1);
        server.handle_timeout(now);
        answers(&mut server, now);
        let places = server.connections().count();
        assert!(places <= 12, "{places} of 100 slots are taken after {second} s");
    }
    // Clients with a cookie can connect.
    let mut path = Path::new(server, Duration::from_millis(20));
    path.now = now;
    let mut client = Client::new(now, ([203, 0, 113, 7], 1), 7);
    path.run(&mut client, Duration::from_secs(1));
    assert!(client.is_connected());
    assert_eq!(client.reply_1, 32, "reply 1 must contain a cookie");
}

/// The answer to a ping proves that the client receives datagrams at its address.
#[test]
fn a_client_that_answers_a_ping_frees_its_unvalidated_slot() {
    // The rate limit refills within 10 s. The slot is freed immediately when the address is validated.
    for (answers_pings, seconds, reply_1) in [(true, 2, 28), (true, 15, 28), (false, 2, 32), (false, 15, 32)]
    {
        let mut path = Path::new(server(4, |_| {}), Duration::from_millis(20));
        let mut first = Client::new(START, ([203, 0, 113, 7], 1), 7);
        first.answers_pings = answers_pings;
        path.run(&mut first, Duration::from_secs(seconds));
        assert!(first.is_connected());
        assert_eq!((first.reply_1, path.server.connections().count()), (28, 1));
        let mut second = Client::new(path.now, ([203, 0, 114, 7], 1), 8);
        path.run(&mut second, Duration::from_millis(500));
        assert!(second.is_connected());
        assert_eq!(second.reply_1, reply_1, "first client answers pings: {answers_pings}, after {seconds} s");
    }
}

/// Attack A4: forged clients get one slot of up to seven, two of 8 to 23, and an eighth of more.
#[test]
fn a04_forged_connections_get_at_most_two_slots_of_small_servers() {
    for (places, most) in [(1, 1), (4, 1), (7, 1), (8, 2), (15, 2), (16, 2), (24, 3)] {
        let mut server = server(places, |_| {});
        let mut now = START;
        for second in 0..30_u16 {
            for datagram in forged_handshake(u64::from(second) + 1_000, 1_492) {
                server.handle_datagram(now, ([10, 0, 0, 1], 1_000 + second).into(), &datagram);
            }
            answers(&mut server, now);
            for port in 1_000..=1_000 + second {
                server.handle_datagram(now, ([10, 0, 0, 1], port).into(), &acknowledgement(0, 200));
            }
            while server.poll_event().is_some() {}
            now = now + Duration::from_secs(1);
            server.handle_timeout(now);
            answers(&mut server, now);
            assert!(server.connections().count() <= most, "a server of {places} slots after {second} s");
        }
        assert_eq!(server.connections().count(), most, "a server of {places} slots");
    }
}

/// Attack A4: a forged client makes the server's application send its greeting of ten large messages to a victim.
#[test]
fn a04_a_forged_connection_receives_at_most_three_times_its_bytes() {
    for (policy, mtu) in
        [(CookiePolicy::Automatic, 1_492), (CookiePolicy::Off, 1_492), (CookiePolicy::Off, 576)]
    {
        let mut server = server(8, |config| config.cookies = policy);
        let (victim, mut now) = (SocketAddr::from(([198, 51, 100, 7], 4_000)), START);
        let (mut bytes_in, mut bytes) = (0, 0);
        let mut opened = 0;
        for datagram in forged_handshake(7, mtu) {
            server.handle_datagram(now, victim, &datagram);
            bytes_in += datagram.len();
            bytes += answers(&mut server, now).iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        }
        for second in 1..=60 {
            let mut greeted = Vec::new();
            while let Some(event) = server.poll_event() {
                if let Event::Connected { id, .. } = event {
                    greeted.push(id);
                }
            }
            for id in greeted {
                opened += 1;
                for _ in 0..10 {
                    let greeting = [0x86; 1_400];
                    server.send(now, id, &greeting, Delivery::RELIABLE_ORDERED).expect("free memory");
                }
            }
            let end = START + Duration::from_secs(second);
            while now < end {
                bytes += answers(&mut server, now).iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
                now = server.poll_timeout().unwrap_or(end).clamp(now + Duration::from_micros(1), end);
                server.handle_timeout(now);
            }
            // The server also sends a ping of 16 bytes each second while the connection exists.
            let most =
                3 * bytes_in + 16 * usize::try_from(second.min(11)).expect("a number of seconds that fits");
            assert!(
                bytes <= most,
                "{bytes} bytes sent for {bytes_in} received after {second} s, {policy:?}, {mtu}"
            );
        }
        assert_eq!(
            (opened, server.connections().count()),
            (1, 0),
            "the connection must open once and then expire"
        );
    }
}

/// Returns the time from the connection attempt until the client has received the server's greeting of ten large
/// messages. The datagrams to the client for which `drops` returns true are lost.
fn greeting_takes(cookies: CookiePolicy, mut drops: impl FnMut(usize) -> bool) -> Duration {
    let mut path = Path::new(server(8, |config| config.cookies = cookies), Duration::from_millis(50));
    let mut client = Client::new(START, ([203, 0, 113, 7], 1), 7);
    let (mut greeted, mut since_open) = (false, 0);
    while path.now < START + Duration::from_secs(20) {
        let is_open = greeted;
        path.step(&mut client, |_| {
            since_open += usize::from(is_open);
            is_open && drops(since_open)
        });
        if let (false, Some(id)) = (greeted, path.opened.first()) {
            greeted = true;
            for _ in 0..10 {
                let sent = path.server.send(path.now, *id, &[0x86; 1_400], Delivery::RELIABLE_ORDERED);
                assert!(sent.is_ok());
            }
        }
        let received = client.events.iter().filter(|event| matches!(event, OwnedEvent::Message(..))).count();
        if received == 10 {
            return path.now.saturating_since(START);
        }
    }
    panic!("{cookies:?}: the greeting did not arrive within 20 s");
}

/// To a client without a cookie the server immediately sends what the amplification limit allows. The rest follows one
/// round trip of 100 ms later.
#[test]
fn a_greeting_is_delayed_only_by_address_validation() {
    let with_cookie = greeting_takes(CookiePolicy::Required, |_| false);
    let without = greeting_takes(CookiePolicy::Automatic, |_| false);
    assert!(
        without <= with_cookie + Duration::from_millis(110),
        "{without:?} without a cookie, {with_cookie:?} with one"
    );
    // The first datagrams after the connection opened are lost, among them the one that would validate the address.
    for lost in 1..=8 {
        let with_cookie = greeting_takes(CookiePolicy::Required, |number| number <= lost);
        let without = greeting_takes(CookiePolicy::Automatic, |number| number <= lost);
        assert!(
            without <= with_cookie + Duration::from_secs(2),
            "{without:?} without a cookie, {with_cookie:?} with one, {lost} lost"
        );
    }
}

/// Forged connections from a player's address do not count towards the limits of that address and its network.
#[test]
fn a_player_connects_despite_connections_forged_from_its_address() {
    type Change = fn(&mut Config);
    let changes: [Change; 3] = [
        |config| config.max_per_address = Some(2),
        |config| config.max_per_network = Some(2),
        |config| config.connection_interval = Some(Duration::from_secs(60)),
    ];
    for change in changes {
        let mut server = server(16, |config| {
            config.cookies = CookiePolicy::UnderLoad { unvalidated: 8 };
            change(config);
        });
        for number in 0..2_u16 {
            let from = SocketAddr::from(([198, 51, 100, 7], 4_000 + number));
            for datagram in forged_handshake(u64::from(number) + 1_000, 1_492) {
                server.handle_datagram(START, from, &datagram);
            }
            answers(&mut server, START);
        }
        while server.poll_event().is_some() {}
        let mut path = Path::new(server, Duration::from_millis(20));
        let mut player = Client::new(START, ([198, 51, 100, 7], 1), 7);
        path.run(&mut player, Duration::from_secs(2));
        assert!(player.is_connected(), "{:?}", player.events);
    }
}

/// An application that bans the addresses of refused clients must not ban forged addresses.
#[test]
fn a_refusal_states_whether_the_clients_address_is_validated() {
    for (cookies, expected) in
        [(CookiePolicy::Off, false), (CookiePolicy::Automatic, false), (CookiePolicy::Required, true)]
    {
        let mut server = server(8, |config| config.cookies = cookies);
        server.set_password(b"snow").expect("a short password");
        let mut client = Client::new(START, ([203, 0, 113, 7], 1), 7);
        let mut refused = Vec::new();
        for millis in 0..100 {
            let now = START + Duration::from_millis(millis);
            for (_, bytes) in answers(&mut client.peer, now) {
                server.handle_datagram(now, client.address, &bytes);
            }
            for (_, bytes) in answers(&mut server, now) {
                client.receive(now, &bytes);
            }
            while let Some(event) = server.poll_event() {
                if let Event::Refused { remote, reason, is_validated, .. } = event {
                    refused.push((remote, reason, is_validated));
                }
            }
        }
        assert_eq!(refused, [(client.address, RefuseReason::WrongPassword, expected)], "{cookies:?}");
    }
}

/// Requests with another version from many ports do not change the number of addresses in the list sent to a client.
#[test]
fn requests_from_other_ports_do_not_change_a_clients_address_list() {
    for (own, others, addresses) in [(11, 6, 20), (6, 11, 10)] {
        let mut server = server(8, |_| {});
        let client = SocketAddr::from(([203, 0, 113, 7], 4_000));
        let request_1 = |protocol| written(&Offline::Request1 { protocol, mtu: 1_492 });
        server.handle_datagram(START, client, &request_1(own));
        for port in 1..=150 {
            let from = SocketAddr::from(([198, 51, 100, 7], port));
            server.handle_datagram(START, from, &request_1(others));
        }
        let [_, second, request, _] = forged_handshake(7, 1_492);
        server.handle_datagram(START, client, &second);
        server.handle_datagram(START, client, &request);
        let sent = answers(&mut server, START);
        let listed = sent.iter().filter(|(to, _)| *to == client).find_map(|(_, datagram)| {
            let at = datagram.windows(5).position(|bytes| bytes == [0x10, 0x04, !203, !0, !113])?;
            match Control::read(&mut Reader::new(&datagram[at..])) {
                Ok(Control::Accepted { addresses, .. }) => Some(addresses.iter().count()),
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(listed, Some(addresses), "own version {own}, other ports {others}");
    }
}

/// The server remembers each client that needs no cookie in a small table. Under a flood of requests 1 it sends cookies
/// instead, so the entries of genuine clients are not evicted.
#[test]
fn a_flood_of_first_requests_makes_cookies_required() {
    let mut server = server(8, |_| {});
    let request_1 = written(&Offline::Request1 { protocol: 6, mtu: 1_492 });
    let mut lengths = Vec::new();
    for port in 1..=300 {
        server.handle_datagram(START, ([198, 51, 100, 7], port).into(), &request_1);
        lengths.extend(answers(&mut server, START).iter().map(|(_, reply)| reply.len()));
    }
    assert_eq!((lengths[0], lengths[299]), (28, 32));
    let later = START + Duration::from_secs(1);
    server.handle_datagram(later, ([203, 0, 113, 7], 1).into(), &request_1);
    assert_eq!(answers(&mut server, later)[0].1.len(), 28, "after the flood no cookie may be required");
}

/// Two clients compete for the only slot without a cookie. The server gives it to the first client, and requests a
/// cookie from the second.
#[test]
fn a_client_is_counted_only_if_it_ignores_the_requested_cookie() {
    for pongs_per_second in [1_000, 0] {
        let mut server = server(4, |config| config.pongs_per_second = pongs_per_second);
        let from = |port| SocketAddr::from(([203, 0, 113, 7], port));
        let request_1 = written(&Offline::Request1 { protocol: 6, mtu: 1_492 });
        for port in [1, 2] {
            server.handle_datagram(START, from(port), &request_1);
            assert_eq!(answers(&mut server, START)[0].1.len(), 28);
        }
        server.handle_datagram(START, from(1), &request_2(ClientSecurity::None, 1));
        assert_eq!(answers(&mut server, START)[0].1[0], 0x08);
        server.handle_datagram(START, from(2), &request_2(ClientSecurity::None, 2));
        let asked = answers(&mut server, START);
        assert_eq!(asked.iter().map(|(_, reply)| (reply[0], reply.len())).collect::<Vec<_>>(), [(0x06, 32)]);
        assert_eq!(RakNet::advice(&server), None);
        let dropped = |server: &Peer<'_>, reason| server.stats().dropped(reason);
        assert_eq!(dropped(&server, DropReason::CookieRequested), 1);
        // A client that repeats its request without the cookie is counted and gets no further response.
        for _ in 0..1_000 {
            server.handle_datagram(START, from(2), &request_2(ClientSecurity::None, 2));
        }
        assert!(answers(&mut server, START).is_empty());
        assert_eq!(dropped(&server, DropReason::MissingCookie), 1_000);
        assert!(RakNet::advice(&server).is_some());
        // Other clients of its network still get all their pongs.
        let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
        for host in 0..20 {
            server.handle_datagram(START, ([203, 0, 113, 100 + host], 1).into(), &ping);
        }
        assert_eq!(answers(&mut server, START).len(), if pongs_per_second > 0 { 20 } else { 0 });
    }
}

/// Acknowledgements of datagrams that were never sent do not restart the idle timeout.
#[test]
fn acknowledgements_of_unsent_datagrams_do_not_keep_a_connection_alive() {
    let mut path = Path::new(server(8, |_| {}), Duration::from_millis(20));
    let mut client = Client::new(START, ([203, 0, 113, 7], 1), 7);
    path.run(&mut client, Duration::from_secs(1));
    let id = path.opened[0];
    let mut now = path.now;
    path.server.send(now, id, &[0x86; 100], Delivery::RELIABLE).expect("free memory");
    let mut ended = None;
    for _ in 0..300 {
        now = now + Duration::from_millis(100);
        let forged = acknowledgement(5_000, 6_000);
        path.server.handle_datagram(now, client.address, &forged);
        path.server.handle_timeout(now);
        while path.server.poll_transmit(now, &mut [0; MAX_DATAGRAM]).is_some() {}
        while let Some(event) = path.server.poll_event() {
            if let Event::Disconnected { reason, .. } = event {
                ended = Some((reason, now.saturating_since(path.now)));
            }
        }
    }
    let (reason, after) = ended.expect("the connection closes");
    assert_eq!(reason, DisconnectReason::Lost);
    assert!(after <= Duration::from_secs(11), "{after:?}");
}

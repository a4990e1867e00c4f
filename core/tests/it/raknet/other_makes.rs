//! Compatibility with other implementations of RakNet: their parsers, omissions and expectations.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    Config, ConnectFailure, ConnectOptions, ConnectionId, CookiePolicy, DropReason, Event, Guid, Peer,
    Reliability,
};
use rakwire::wire::address::AddressList;
use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record};
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{MAX_DATAGRAM, Reader, Source, Wire};

use crate::support::forged::{answers, capsule, data, request_2, written};
use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};

const CLIENT: SocketAddr =
    SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 9)), 4_000);
const SERVER: SocketAddr =
    SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1)), 19132);

/// Returns the ids of RakNet's own messages in a datagram, each with its number of addresses.
fn controls(datagram: &[u8]) -> Vec<(u8, usize)> {
    let mut reader = Reader::new(datagram);
    let Ok(DatagramHeader::Data { .. }) = DatagramHeader::read(&mut reader) else { return Vec::new() };
    let mut found = Vec::new();
    while let Ok(capsule) = CapsuleHeader::read(&mut reader) {
        let payload = reader.take(capsule.length()).expect("a whole message");
        let addresses = match Control::read(&mut Reader::new(payload)) {
            Ok(Control::Accepted { addresses, .. } | Control::NewIncoming { addresses, .. }) => {
                addresses.iter().count()
            }
            _ => 0,
        };
        found.push((payload[0], addresses));
    }
    found
}

/// Connects a client to a server; returns RakNet's own messages in each datagram of both peers.
fn handshake(client: Config, server: Config) -> [Vec<Vec<(u8, usize)>>; 2] {
    let (mut client, mut server) = (peer(client), peer(server));
    client.connect(Instant::ZERO, SERVER).expect("a free slot");
    let mut said = [Vec::new(), Vec::new()];
    for milliseconds in 0..300 {
        let now = Instant::from_micros(milliseconds * 1_000);
        client.handle_timeout(now);
        server.handle_timeout(now);
        for (_, datagram) in answers(&mut client, now) {
            said[0].push(controls(&datagram));
            server.handle_datagram(now, CLIENT, &datagram);
        }
        for (_, datagram) in answers(&mut server, now) {
            said[1].push(controls(&datagram));
            client.handle_datagram(now, SERVER, &datagram);
        }
    }
    assert!(matches!(client.poll_event(), Some(Event::Connected { .. })));
    said
}

fn addresses_of(said: &[Vec<(u8, usize)>], id: u8) -> usize {
    let all = said.iter().flatten();
    all.filter(|(found, _)| *found == id)
        .map(|(_, addresses)| *addresses)
        .next()
        .expect("the message was sent")
}

/// Two servers in the npm registry crash on a list of ten addresses, and C++ RakNet misreads a list of twenty.
#[test]
fn address_lists_have_the_length_of_the_protocol_version() {
    let policies = [CookiePolicy::Required, CookiePolicy::Off, CookiePolicy::Automatic];
    for cookies in policies {
        for (version, accepted, expected) in [
            (6, &[6, 10, 11][..], 10),
            (8, &[8, 9], 10),
            (9, &[8, 9], 20),
            (11, &[6, 10, 11], 20),
            (6, &[10], 20),
        ] {
            let (mut client, mut server) = (client_config(), server_config());
            client.protocol_version = version;
            server.accepted_versions = accepted.iter().copied().collect();
            server.cookies = cookies;
            let [of_client, of_server] = handshake(client, server);
            let lists = (addresses_of(&of_client, 0x13), addresses_of(&of_server, 0x10));
            assert_eq!(lists, (expected, expected), "version {version}, {accepted:?}, {cookies:?}");
        }
    }
}

/// The list begins with the peer's addresses in the order in which they were set. A list of ten contains only the first
/// ten of them.
#[test]
fn address_lists_of_any_length_contain_the_peers_addresses() {
    let own: Vec<SocketAddr> = (1..=12).map(|host| ([198, 51, 100, host], 7).into()).collect();
    for (version, expected) in [(6, 10), (11, 12)] {
        let mut config = client_config();
        config.protocol_version = version;
        let mut net = Net::with(peer(config), peer(server_config()), Default::default(), 1);
        assert_eq!(net.pair.a.set_internal_addresses(&own), Ok(()));
        net.pair.a.connect(net.pair.now, net.pair.b_address).expect("a free slot");
        let announced = loop {
            if let Some(Event::Connected { id, .. }) = net.pair.b.poll_event() {
                break net.pair.b.internal_addresses(id);
            }
            assert!(net.pair.step(), "the handshake must complete");
        };
        assert_eq!(announced[..], own[..expected]);
    }
}

/// C++ RakNet sends "new incoming connection" first, and some servers read only the first message of a datagram.
#[test]
fn new_incoming_connection_is_the_first_message_of_its_datagram() {
    for version in [6, 11] {
        let mut client = client_config();
        client.protocol_version = version;
        let [of_client, _] = handshake(client, server_config());
        let ids = of_client.iter().map(|datagram| datagram.iter().map(|(id, _)| *id).collect::<Vec<u8>>());
        let after_request: Vec<Vec<u8>> =
            ids.skip_while(|ids| !ids.contains(&0x09)).skip(1).filter(|ids| !ids.is_empty()).collect();
        assert_eq!(after_request[0][0], 0x13, "{after_request:?}");
        assert!(after_request.concat().contains(&0), "a ping must follow");
    }
}

/// A client of a simulated server, with its connection request in flight.
struct Requested {
    client: Peer<'static>,
    id: ConnectionId,
    now: Instant,
    /// The number of connection requests sent.
    requests: usize,
}

impl Requested {
    fn new(options: &ConnectOptions<'_>) -> Self {
        let mut client = peer(client_config());
        let id = client.connect_with(Instant::ZERO, SERVER, options).expect("a free slot");
        let mut requested = Self { client, id, now: Instant::ZERO, requests: 0 };
        requested.look();
        requested.receive(&written(&Offline::Reply1 {
            guid: Guid(7),
            security: ServerSecurity::None,
            mtu: 1492,
        }));
        requested.receive(&written(&Offline::Reply2 {
            guid: Guid(7),
            client: CLIENT,
            mtu: 1492,
            answer: None,
        }));
        requested
    }

    fn receive(&mut self, datagram: &[u8]) {
        self.client.handle_datagram(self.now, SERVER, datagram);
        self.look();
    }

    /// Polls the datagrams from the client and acknowledges them.
    fn look(&mut self) {
        let mut buffer = [0; MAX_DATAGRAM];
        while let Some(transmit) = self.client.poll_transmit(self.now, &mut buffer) {
            let mut reader = Reader::new(transmit.payload);
            if let Ok(DatagramHeader::Data { number, .. }) = DatagramHeader::read(&mut reader) {
                let requests = controls(transmit.payload).iter().filter(|(id, _)| *id == 0x09).count();
                self.requests += requests;
                let mut ack = written(&DatagramHeader::Ack { records: 1, arrival_speed: None });
                ack.extend(written(&Record { first: number, last: number }));
                self.client.handle_datagram(self.now, SERVER, &ack);
            }
        }
    }

    fn wait(&mut self, end: Duration) {
        let end = Instant::ZERO + end;
        while let Some(next) = self.client.poll_timeout().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.client.handle_timeout(self.now);
            self.look();
        }
        self.now = end;
    }

    /// Delivers "connection request accepted" from a server that sends it unreliably.
    fn accept(&mut self, number: u32) {
        let accepted = Control::Accepted {
            client: CLIENT,
            system_index: 0,
            addresses: AddressList::unassigned(10),
            request_time: 0,
            time: 0,
        };
        self.receive(&data(number, capsule(Reliability::Unreliable, 0, 0), &written(&accepted)));
    }

    fn event(&mut self) -> Option<OwnedEvent> {
        let event = self.client.poll_event()?;
        if let Event::Connected { id, .. } = event {
            return Some(OwnedEvent::Connected(id));
        }
        let Event::ConnectFailed { id, reason, .. } = event else { panic!("{event:?}") };
        Some(OwnedEvent::Failed(id, reason))
    }
}

/// Some servers send "connection request accepted" unreliably, once for each connection request.
#[test]
fn a_connection_request_is_repeated_until_it_is_accepted() {
    let password = ConnectOptions { password: b"friends", ..ConnectOptions::default() };
    for options in [ConnectOptions::default(), password] {
        let mut requested = Requested::new(&options);
        requested.wait(Duration::from_millis(999));
        assert_eq!(requested.requests, 1);
        requested.wait(Duration::from_millis(1_001));
        assert_eq!(requested.requests, 2, "the second request is due after one second");
        requested.wait(Duration::from_millis(4_500));
        assert_eq!(requested.requests, 5, "further requests are due every second");
        requested.accept(0);
        assert_eq!(requested.event(), Some(OwnedEvent::Connected(requested.id)));
        requested.wait(Duration::from_secs(8));
        assert_eq!((requested.requests, requested.event()), (5, None));
    }
}

/// This failure distinguishes a server that stops responding from one that never responded.
#[test]
fn a_stalled_handshake_fails_with_handshake_timeout() {
    let mut requested = Requested::new(&ConnectOptions::default());
    requested.wait(Duration::from_secs(30));
    let stuck = OwnedEvent::Failed(requested.id, ConnectFailure::HandshakeTimeout);
    assert_eq!(requested.event(), Some(stuck));

    let mut client = peer(client_config());
    let id = client.connect(Instant::ZERO, SERVER).expect("a free slot");
    let reply = Offline::Reply1 { guid: Guid(7), security: ServerSecurity::None, mtu: 1492 };
    let mut only_first = Requested { client, id, now: Instant::ZERO, requests: 0 };
    only_first.look();
    only_first.receive(&written(&reply));
    only_first.wait(Duration::from_secs(30));
    assert_eq!(only_first.event(), Some(OwnedEvent::Failed(id, ConnectFailure::HandshakeTimeout)));
}

/// Some implementations reuse datagram numbers for other messages.
#[test]
fn a_reused_datagram_number_neither_loses_nor_repeats_reliable_messages() {
    let mut net = Net::new(Default::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(100));
    let client = net.pair.a_address;
    let next = 20;
    let bits = |kind, number| data(next, capsule(kind, number, 100), &[0x86, number as u8]);
    for datagram in [
        bits(Reliability::Unreliable, 1),
        bits(Reliability::Unreliable, 2),
        bits(Reliability::Reliable, 100),
        bits(Reliability::Reliable, 101),
        bits(Reliability::Reliable, 100),
    ] {
        net.pair.b.handle_datagram(net.pair.now, client, &datagram);
    }
    net.poll();
    assert_eq!(messages(&net.server), [&[0x86, 1][..], &[0x86, 100], &[0x86, 101]]);
    assert_eq!(net.pair.b.stats().dropped(DropReason::DuplicateDatagram), 4);
    assert_eq!(net.pair.b.stats().dropped(DropReason::DuplicateMessage), 1);
}

/// A datagram with a reused number is always acknowledged, so a message in it that exceeds the memory is lost. A
/// separate drop reason counts such losses.
#[test]
fn a_message_lost_with_a_reused_datagram_number_is_counted() {
    let mut config = server_config();
    config.connection_blocks = Some(8);
    let mut net = Net::with(peer(client_config()), peer(config), Default::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(100));
    let client = net.pair.a_address;
    let mut take = |number: u32, reliable: u32| {
        // The messages wait for a predecessor that never arrives.
        let datagram = data(number, capsule(Reliability::ReliableOrdered, reliable, reliable), &[0x86; 400]);
        net.pair.b.handle_datagram(net.pair.now, client, &datagram);
        let stats = net.pair.b.stats();
        (stats.dropped(DropReason::NoMemory), stats.dropped(DropReason::LostInDuplicate))
    };
    let mut reliable = 100;
    while take(reliable, reliable) == (0, 0) {
        reliable += 1;
        assert!(reliable < 1_000, "the server must run out of memory");
    }
    assert_eq!(take(100, reliable + 1), (1, 1));
}

/// Three of eight other implementations never return a cookie. By default a server accepts their clients without one,
/// and counts requests without a cookie while it requires cookies.
#[test]
fn a_client_without_cookie_support_is_counted_under_load() {
    let mut config = Config::new([2; 32]);
    config.max_incoming = 16;
    let mut server = peer(config);
    let mut open = |number: u8| {
        let from = SocketAddr::from(([203, 0, number, 1], 4_000));
        let request_1 = written(&Offline::Request1 { protocol: 10, mtu: 1_464 });
        server.handle_datagram(Instant::ZERO, from, &request_1);
        answers(&mut server, Instant::ZERO);
        server.handle_datagram(Instant::ZERO, from, &request_2(ClientSecurity::None, number.into()));
        let is_in = answers(&mut server, Instant::ZERO).iter().any(|(_, answer)| answer[0] == 0x08);
        (is_in, server.stats().dropped(DropReason::MissingCookie))
    };
    assert_eq!([1, 2].map(&mut open), [(true, 0), (true, 0)]);
    assert_eq!(open(3), (false, 1), "the third client exceeds an eighth of 16 slots");
}

/// Some servers block an address that requests another version, so the client queries the server's version with a ping.
#[test]
fn a_client_queries_the_version_before_its_first_request() {
    let answer = |pong: Option<&[u8]>, server_version: u8| {
        let mut config = client_config();
        config.learn_version = true;
        let mut client = peer(config);
        client.connect(Instant::ZERO, SERVER).expect("a free slot");
        let (mut said, mut now) = (Vec::new(), Instant::ZERO);
        while said.last() != Some(&(5, server_version)) {
            for (_, datagram) in answers(&mut client, now) {
                let version = if datagram[0] == 5 { datagram[17] } else { 0 };
                said.push((datagram[0], version));
                if let (1, Some(data)) = (datagram[0], pong) {
                    let pong = Offline::Pong { time: 0, guid: Guid(7), data };
                    client.handle_datagram(now, SERVER, &written(&pong));
                }
            }
            if said.last().is_some_and(|(id, _)| *id == 5) {
                break;
            }
            now = client.poll_timeout().unwrap_or(now).max(now);
            client.handle_timeout(now);
        }
        assert!(client.poll_event().is_none(), "a pong to the client's own query must not be reported");
        (said, now.as_millis())
    };
    assert_eq!(answer(Some(b"\0\x05MCPE;"), 11), (vec![(1, 0), (5, 11)], 0));
    assert_eq!(answer(Some(b"another game"), 6), (vec![(1, 0), (5, 6)], 0));
    assert_eq!(answer(None, 6), (vec![(1, 0), (5, 6)], 500), "a server that sends no pong");
}

/// No query is sent if the version cannot change. An attempt spends at most a quarter of its timeout on the query.
#[test]
fn the_version_is_queried_once_and_within_the_timeout() {
    let first = |version: u8, options: ConnectOptions<'_>| {
        let mut config = client_config();
        (config.learn_version, config.protocol_version) = (true, version);
        let mut client = peer(config);
        client.connect_with(Instant::ZERO, SERVER, &options).expect("a free slot");
        let first = answers(&mut client, Instant::ZERO)[0].1[0];
        let next = client.poll_timeout().expect("a deadline");
        (first, next.as_millis())
    };
    let usual = ConnectOptions::default;
    assert_eq!(first(6, usual()), (1, 500));
    assert_eq!(first(11, usual()).0, 5);
    assert_eq!(first(6, ConnectOptions { protocol_version: Some(6), ..usual() }).0, 5);
    let short = ConnectOptions { connect_timeout: Some(Duration::from_millis(200)), ..usual() };
    assert_eq!(first(6, short), (1, 50));
}

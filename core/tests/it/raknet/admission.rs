//! Admission: passwords, bans, limits, and responses to unconnected peers.
//!
//! Attack numbers such as A11 are those of docs/attacks.md.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    BanList, Capacity, Config, ConnectError, ConnectFailure, ConnectOptions, CookiePolicy, DropReason, Guid,
    Peer, Refusal, Resources, SetError,
};
use rakwire::sim::Conditions;
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, ServerSecurity};
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire, Writer};

use crate::support::raknet::{Net, OwnedEvent, client_config, peer, server_config};

const LATENCY: Conditions = Conditions {
    loss: 0.0,
    duplication: 0.0,
    reordering: 0.0,
    latency: Duration::from_millis(5),
    jitter: Duration::ZERO,
    bottleneck: None,
    bursts: None,
};

fn net(server: Config) -> Net {
    Net::with(peer(client_config()), peer(server), LATENCY, 1)
}

/// Connects with `options`; returns the failure, or `None` if the connection opens.
fn attempt(net: &mut Net, options: &ConnectOptions<'_>) -> Option<ConnectFailure> {
    net.client.clear();
    let to = net.pair.b_address;
    net.pair.a.connect_with(net.pair.now, to, options).expect("a free slot");
    assert!(net.run_until(Duration::from_secs(20), |net| !net.client.is_empty()));
    match &net.client[0] {
        OwnedEvent::Connected(_) => None,
        OwnedEvent::Failed(_, reason) => Some(*reason),
        other @ (OwnedEvent::Disconnected(..)
        | OwnedEvent::Message(..)
        | OwnedEvent::Pong(..)
        | OwnedEvent::Receipt(..)
        | OwnedEvent::Progress(_)) => panic!("{other:?}"),
    }
}

fn answers(server: &mut Peer<'_>, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut answers = Vec::new();
    while let Some(transmit) = server.poll_transmit(now, &mut buffer) {
        answers.push((transmit.to, transmit.payload.to_vec()));
    }
    answers
}

fn written(message: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer).expect("the buffer is large enough");
    writer.finish().to_vec()
}

/// Delivers request 1 and then request 2 without a cookie from an address; discards reply 1.
fn request_2(server: &mut Peer<'_>, now: Instant, from: SocketAddr, guid: u64) {
    server.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    assert_eq!(answers(server, now).pop().map(|(to, reply)| (to, reply.len())), Some((from, 28)));
    let security = ClientSecurity::None;
    let request = Offline::Request2 { security, server: from, mtu: 1492, guid: Guid(guid) };
    server.handle_datagram(now, from, &written(&request));
}

#[test]
fn passwords_must_match_in_length_and_content() {
    let cases: [(&[u8], &[u8], bool); 7] = [
        (b"", b"", true),
        (b"secret", b"secret", true),
        (b"secret", b"secreT", false),
        (b"secret", b"secre", false),
        (b"secret", b"secrets", false),
        (b"secret", b"", false),
        (b"", b"secret", false),
    ];
    for (expected, given, admitted) in cases {
        let mut net = net(server_config());
        assert_eq!(net.pair.b.set_password(expected), Ok(()));
        let options = ConnectOptions { password: given, ..ConnectOptions::default() };
        let failure = attempt(&mut net, &options);
        let expected = if admitted { None } else { Some(ConnectFailure::InvalidPassword) };
        assert_eq!(failure, expected);
        net.run_for(Duration::from_secs(1));
        assert_eq!(
            net.pair.b.connections().count(),
            usize::from(admitted),
            "a refused client must not keep a slot"
        );
        assert_eq!(net.pair.a.blocks_available(), net.pair.a.blocks());
    }
}

#[test]
fn a_password_of_256_bytes_is_too_long() {
    let mut net = net(server_config());
    assert_eq!(net.pair.b.set_password(&[1; 256]), Err(SetError::PasswordTooLong));
    assert_eq!(net.pair.b.set_password(&[1; 255]), Ok(()));
    let options = ConnectOptions { password: &[1; 256], ..ConnectOptions::default() };
    let to = net.pair.b_address;
    let error = net.pair.a.connect_with(net.pair.now, to, &options);
    assert_eq!(error, Err(ConnectError::PasswordTooLong));
    let options = ConnectOptions { password: &[1; 255], ..ConnectOptions::default() };
    assert_eq!(attempt(&mut net, &options), None);
}

#[test]
fn connecting_without_memory_for_the_password_takes_no_slot() {
    let mut resources = Resources::<1, 4, 32>::new();
    let mut client = Peer::new(&mut resources, client_config());
    let to = "192.0.2.1:1".parse().expect("a literal address");
    let options = ConnectOptions { password: &[1; 200], ..ConnectOptions::default() };
    assert_eq!(client.connect_with(Instant::ZERO, to, &options), Err(ConnectError::NoMemory));
    assert!(client.connect(Instant::ZERO, to).is_ok());
}

#[test]
fn options_of_one_connection_override_the_configuration() {
    let mut net = net(server_config());
    let options = ConnectOptions { protocol_version: Some(9), ..ConnectOptions::default() };
    let reason = ConnectFailure::IncompatibleProtocol { server: 11 };
    assert_eq!(attempt(&mut net, &options), Some(reason));
    net.pair.set_conditions(Conditions { loss: 1.0, ..LATENCY });
    let options = ConnectOptions {
        attempts: Some(3),
        interval: Some(Duration::from_millis(100)),
        ..ConnectOptions::default()
    };
    let start = net.now();
    assert_eq!(attempt(&mut net, &options), Some(ConnectFailure::NoAnswer));
    assert_eq!(net.now().saturating_since(start), Duration::from_millis(400));
}

#[test]
fn a_timeout_can_be_set_for_one_connection() {
    let mut net = net(server_config());
    let (client, server) = net.connect();
    assert_eq!(net.pair.a.set_timeout(client, Duration::from_secs(2)), Ok(()));
    assert_eq!(net.pair.b.set_timeout(server, Duration::from_secs(40)), Ok(()));
    net.pair.set_conditions(Conditions { loss: 1.0, ..LATENCY });
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.client.len(), 1);
    assert!(net.server.is_empty());
    net.run_for(Duration::from_secs(80));
    assert_eq!(net.server.len(), 1);
    assert_eq!(
        net.pair.a.set_timeout(client, Duration::from_secs(2)),
        Err(SetError::NoConnection),
        "the connection must be closed"
    );
}

#[test]
fn banned_addresses_are_refused_until_the_ban_expires() {
    let mut net = net(server_config());
    let until = net.now() + Duration::from_secs(30);
    let pattern = "192.0.2.*".parse().expect("a pattern");
    let bans = net.pair.b.bans_mut().expect("a ban list");
    bans.add(pattern, Some(until)).expect("a free entry");
    let refused = Some(ConnectFailure::Refused(Refusal::Banned));
    assert_eq!(attempt(&mut net, &ConnectOptions::default()), refused);
    net.run_for(Duration::from_secs(31));
    assert_eq!(attempt(&mut net, &ConnectOptions::default()), None);
}

#[test]
fn a_ban_list_can_be_borrowed() {
    let mut bans = BanList::new();
    let mut resources = Resources::<1, 4, 32>::new();
    let mut server = Peer::new(&mut resources, server_config());
    server.set_ban_list(&mut bans);
    let list = server.bans_mut().expect("the borrowed ban list");
    list.add("203.0.113.0/24".parse().expect("a pattern"), None).expect("a free entry");
    let from: SocketAddr = "203.0.113.5:7".parse().expect("a literal address");
    server.handle_datagram(Instant::ZERO, from, &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    let answers = answers(&mut server, Instant::ZERO);
    assert_eq!(answers[0].1[0], 0x17);
    assert_eq!(server.stats().dropped(DropReason::Banned), 1);
}

#[test]
fn an_address_must_wait_between_two_connections() {
    let mut config = server_config();
    config.connection_interval = Some(Duration::from_millis(100));
    let mut net = net(config);
    net.connect();
    // Another peer at the same IP address.
    let mut other = client_config();
    other.guid.0 += 1;
    net.pair.a = peer(other);
    net.pair.a_address.set_port(77);
    let refused = Some(ConnectFailure::Refused(Refusal::RecentlyConnected));
    assert_eq!(attempt(&mut net, &ConnectOptions::default()), refused);
    net.run_for(Duration::from_millis(100));
    assert_eq!(attempt(&mut net, &ConnectOptions::default()), None);
}

/// Attack A11 without cookies: one network gets a few half-open connections, and other networks can still connect.
#[test]
fn one_network_cannot_take_all_half_open_slots() {
    let mut config = server_config();
    config.cookies = CookiePolicy::Off;
    config.max_incoming = 64;
    config.max_half_open_per_network = 3;
    let capacity = Capacity { connections: 64, blocks: 64, block_size: 64 };
    let mut server = Peer::with_capacity(capacity, config);
    for number in 0..50_u8 {
        request_2(&mut server, Instant::ZERO, SocketAddr::from(([203, 0, 113, number], 9)), number.into());
    }
    assert_eq!(server.connections().count(), 3);
    request_2(&mut server, Instant::ZERO, SocketAddr::from(([203, 0, 114, 1], 9)), 99);
    assert_eq!(server.connections().count(), 4);
    assert_eq!(server.stats().dropped(DropReason::HalfOpenLimit), 47);
}

/// Attack A11: a new client evicts the oldest half-open connection of a full server.
#[test]
fn the_oldest_half_open_connection_is_evicted() {
    let mut config = server_config();
    config.cookies = CookiePolicy::Off;
    config.max_incoming = 64;
    let capacity = Capacity { connections: 4, blocks: 64, block_size: 64 };
    let mut server = Peer::with_capacity(capacity, config);
    let address = |number: u8| SocketAddr::from(([203, 0, number, 1], 9));
    for number in 0..4_u8 {
        let now = Instant::from_micros(u64::from(number) * 1_000);
        request_2(&mut server, now, address(number), number.into());
        answers(&mut server, now);
    }
    let now = Instant::from_micros(9_000);
    request_2(&mut server, now, address(9), 9);
    assert!(answers(&mut server, now).is_empty(), "the request that evicts a client must get no reply");
    request_2(&mut server, now, address(9), 9);
    assert_eq!(answers(&mut server, now).len(), 1);
    assert!(server.connection_at(address(0)).is_none());
    assert!(server.connection_at(address(1)).is_some());
    assert!(server.connection_at(address(9)).is_some());
    assert!(server.connection_of(Guid(9)).is_some());
    assert!(server.connection_of(Guid(0)).is_none());
}

/// Attack A5: the limits apply per network and to the whole server.
#[test]
fn pongs_are_rate_limited() {
    let mut config = server_config();
    config.pongs_per_network = 5;
    config.pongs_per_second = 8;
    let mut server = peer(config);
    assert_eq!(server.set_advertisement(&[b'x'; 399]), Ok(()));
    let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    let mut bytes = 0;
    for number in 0..1_000_u32 {
        let from = SocketAddr::from(([203, 0, (number % 4) as u8, 1], 9));
        server.handle_datagram(Instant::from_micros(1_000_000), from, &ping);
        let answers = answers(&mut server, Instant::from_micros(1_000_000));
        bytes += answers.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    }
    assert_eq!(bytes, 8 * (33 + 399));
    assert_eq!(server.stats().dropped(DropReason::PongLimit), 992);
}

#[test]
fn a_full_server_answers_only_pings_that_do_not_require_a_free_slot() {
    let mut config = server_config();
    config.max_incoming = 1;
    let mut net = net(config);
    net.connect();
    let from: SocketAddr = "203.0.113.5:7".parse().expect("a literal address");
    let now = net.now();
    for (scope, expected) in [(PingScope::Any, 1), (PingScope::OpenConnections, 0)] {
        let ping = written(&Offline::Ping { scope, time: 1, guid: Some(Guid(1)) });
        net.pair.b.handle_datagram(now, from, &ping);
        let pongs = answers(&mut net.pair.b, now).into_iter().filter(|(to, _)| *to == from);
        assert_eq!(pongs.count(), expected, "{scope:?}");
    }
}

#[test]
fn connections_are_found_by_address_and_guid() {
    let mut net = net(server_config());
    let (client, server) = net.connect();
    let (a, b) = (&net.pair.a, &net.pair.b);
    assert_eq!(a.connection_at(net.pair.b_address), Some(client));
    assert_eq!(a.connection_of(b.config().guid), Some(client));
    assert_eq!(b.connection_at(net.pair.a_address), Some(server));
    assert_eq!(b.connection_of(a.config().guid), Some(server));
    assert_eq!(b.connection_of(Guid(1)), None);
}

/// Parses reply 1 like a client of C++ RakNet that was built with `LIBCAT_SECURITY` but does not use it.
///
/// Returns the MTU, or `None` if that client reports a key mismatch.
fn read_with_security(reply: &[u8]) -> Option<u16> {
    let (flag, rest) = reply[25..].split_first()?;
    let rest = if *flag == 0 {
        rest
    } else {
        let key = rest.get(4..4 + 64)?;
        if key != [0; 64] {
            return None;
        }
        &rest[4 + 64..]
    };
    Some(u16::from_be_bytes(rest.try_into().ok()?))
}

#[test]
fn a_client_built_with_libcat_security_connects_only_without_cookies() {
    let from = "192.0.2.1:1".parse().expect("a literal address");
    let under_load = CookiePolicy::UnderLoad { unvalidated: 1 };
    let policies =
        [(CookiePolicy::Required, None), (under_load, Some(1492)), (CookiePolicy::Off, Some(1492))];
    for (cookies, expected) in policies {
        let mut config = server_config();
        config.cookies = cookies;
        let mut server = peer(config);
        let now = Instant::ZERO;
        server.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 1492 }));
        let (_, reply) = answers(&mut server, now).pop().expect("reply 1");
        let mtu = read_with_security(&reply);
        assert_eq!(mtu, expected, "{cookies:?}");
        let Some(mtu) = mtu else { continue };
        let security = ClientSecurity::None;
        let request = Offline::Request2 { security, server: from, mtu, guid: Guid(5) };
        server.handle_datagram(now, from, &written(&request));
        let (_, reply) = answers(&mut server, now).pop().expect("reply 2");
        // The last byte signals a plain connection; otherwise 128 bytes would follow.
        assert_eq!((reply[0], reply.len(), reply[34]), (8, 35, 0));
        assert_eq!(server.connections().count(), 1);
    }
}

/// A client without cookie support cannot connect under load. It can connect one handshake timeout later.
#[test]
fn a_client_without_cookie_support_connects_when_the_load_ends() {
    let mut config = server_config();
    config.cookies = CookiePolicy::UnderLoad { unvalidated: 2 };
    let mut server = peer(config);
    let from = |number: u8| SocketAddr::from(([203, 0, number, 1], 9));
    let now = Instant::from_micros(1_000_000);
    for number in 0..2 {
        request_2(&mut server, now, from(number), number.into());
        assert_eq!(answers(&mut server, now).len(), 1);
    }
    server.handle_datagram(now, from(2), &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    assert_eq!(
        answers(&mut server, now).pop().map(|(_, reply)| reply.len()),
        Some(32),
        "reply 1 must contain a cookie"
    );
    // A client that was accepted may retransmit request 2 without a cookie.
    let security = ClientSecurity::None;
    let request =
        |guid| written(&Offline::Request2 { security, server: from(0), mtu: 576, guid: Guid(guid) });
    server.handle_datagram(now, from(1), &request(1));
    assert_eq!(answers(&mut server, now).pop().map(|(_, reply)| reply[0]), Some(0x08));
    // The first two clients have not validated their addresses and still count towards the limit.
    let later = now + Duration::from_secs(5);
    server.handle_timeout(later);
    server.handle_datagram(later, from(3), &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    assert_eq!(
        answers(&mut server, later).pop().map(|(_, reply)| reply.len()),
        Some(32),
        "reply 1 must contain a cookie"
    );
    let over = now + Duration::from_secs(10);
    server.handle_timeout(over);
    request_2(&mut server, over, from(3), 3);
    assert_eq!(answers(&mut server, over).len(), 1);
    assert_eq!(server.connections().count(), 1);
}

/// Returns the cookie that a second server issues to an address.
///
/// The second server has the same secret, and always requires cookies.
fn cookie_of_busy_server(from: SocketAddr, now: Instant) -> u32 {
    let mut server = peer(server_config());
    server.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    let (_, reply) = answers(&mut server, now).pop().expect("reply 1");
    match Offline::read(&mut Reader::new(&reply)) {
        Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) => cookie,
        other => panic!("{other:?}"),
    }
}

fn server_of(max_incoming: u16, unvalidated: u16) -> Peer<'static> {
    let mut config = server_config();
    config.cookies = CookiePolicy::UnderLoad { unvalidated };
    config.max_incoming = max_incoming;
    peer(config)
}

/// The address of a client without a cookie may be forged, so it must not evict a half-open connection with a validated
/// address.
#[test]
fn a_client_without_a_cookie_evicts_no_client_with_a_cookie() {
    let now = Instant::from_micros(1_000_000);
    let from = |number: u8| SocketAddr::from(([203, 0, number, 1], 9));
    let mut server = server_of(1, 50);
    let security = ClientSecurity::Cookie(cookie_of_busy_server(from(0), now));
    let request = Offline::Request2 { security, server: from(0), mtu: 576, guid: Guid(100) };
    server.handle_datagram(now, from(0), &written(&request));
    assert_eq!(answers(&mut server, now).pop().map(|(_, reply)| reply[0]), Some(0x08));
    for number in 1..20 {
        request_2(&mut server, now, from(number), number.into());
        let replies = answers(&mut server, now);
        assert!(server.connection_at(from(0)).is_some(), "client {number} evicted the client with a cookie");
        assert_eq!(
            replies.first().map(|(_, reply)| reply[0]),
            Some(0x14),
            "the server must refuse the client as full"
        );
    }
    // A new client with a cookie evicts the half-open connection.
    let security = ClientSecurity::Cookie(cookie_of_busy_server(from(20), now));
    let request = Offline::Request2 { security, server: from(20), mtu: 576, guid: Guid(20) };
    server.handle_datagram(now, from(20), &written(&request));
    assert_eq!(answers(&mut server, now).len(), 0, "the request that evicts a client must get no reply");
    assert_eq!(server.stats().dropped(DropReason::HalfOpenLimit), 1);
    server.handle_datagram(now, from(20), &written(&request));
    assert!(server.connection_at(from(20)).is_some());
}

/// A client that gets its slot by eviction counts towards the limit of unvalidated clients.
#[test]
fn evictions_for_clients_without_a_cookie_are_rate_limited() {
    let now = Instant::from_micros(1_000_000);
    let mut server = server_of(2, 4);
    let mut evicted = Vec::new();
    for number in 0..8_u8 {
        let from = SocketAddr::from(([203, 0, number, 1], 9));
        // The response to request 1 determines whether cookies are required; request 2 contains none.
        server.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
        let request = Offline::Request2 {
            security: ClientSecurity::None,
            server: from,
            mtu: 576,
            guid: Guid(number.into()),
        };
        server.handle_datagram(now, from, &written(&request));
        answers(&mut server, now);
        evicted.push(server.stats().dropped(DropReason::HalfOpenLimit));
    }
    assert_eq!(evicted, [0, 0, 1, 1, 1, 1, 1, 1]);
}

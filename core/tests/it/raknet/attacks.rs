//! The attacks of docs/attacks.md, except those that `hostile.rs` and `admission.rs` test. The prefix of a test name
//! is the number of the attack.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::{
    BanList, Capacity, ConnectionId, CookiePolicy, Delivery, DisconnectReason, DropReason, Event, Guid, Peer,
    Reliability, SendError,
};
use rakwire::sim::Conditions;
use rakwire::wire::address::AddressList;
use rakwire::wire::control::Control;
use rakwire::wire::datagram::{DatagramHeader, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, ServerSecurity};
use rakwire::wire::{Reader, Wire};
use rakwire::{Instant, U24};

use crate::support::forged::{
    UNKNOWN_SOURCE, answers, bytes_out, capsule, data, missing, request_2, written,
};
use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};

/// A number that is greater than all datagram and message numbers of the handshake.
const NEXT: u32 = 20;
const ROUND_TRIP: Duration = Duration::from_millis(100);

fn open(conditions: Conditions) -> (Net, ConnectionId, ConnectionId) {
    let mut net = Net::new(conditions, 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_millis(500));
    (net, client, server)
}

/// Delivers a datagram with the client's source address to the server.
fn forge(net: &mut Net, datagram: &[u8]) {
    let (now, from) = (net.now(), net.pair.a_address);
    net.pair.b.handle_datagram(now, from, datagram);
}

/// Returns true if a message from the client still reaches the server.
fn works(net: &mut Net, client: ConnectionId) -> bool {
    net.server.clear();
    net.pair.a.send(net.pair.now, client, b"\x86works", Delivery::RELIABLE_ORDERED).expect("free memory");
    net.run_until(Duration::from_secs(5), |net| messages(&net.server).contains(&&b"\x86works"[..]))
}

/// A datagram of records that repeatedly cover everything in flight costs at most 8,192 lookups.
#[test]
fn a02_the_work_for_acknowledgement_records_is_bounded() {
    let latency = Duration::from_millis(50);
    let (mut net, client, _) = open(Conditions { latency, ..Conditions::default() });
    for _ in 0..2_000 {
        let sent = net.pair.a.send(net.pair.now, client, &[0x86; 1_300], Delivery::RELIABLE);
        assert!(matches!(sent, Ok(_) | Err(SendError::QuotaExceeded)), "{sent:?}");
    }
    // Datagrams in flight stay tracked until they are resent, so every record looks them up.
    let wide = |net: &mut Net| {
        let stats = net.pair.a.connection_stats(client).expect("an open connection");
        stats.in_flight > 60 * 1_300
    };
    assert!(
        net.run_until(Duration::from_secs(10), wide),
        "the congestion window stayed too small for the test"
    );
    let stats = net.pair.a.connection_stats(client).expect("an open connection");
    let (now, from) = (net.now(), net.pair.b_address);
    net.pair.a.handle_datagram(now, from, &missing(0, 0xFF_FFFE, 200));
    assert!(net.pair.a.stats().dropped(DropReason::TooManyRecords) > 0);
    let after = net.pair.a.connection_stats(client).expect("an open connection");
    assert!(after.datagrams_lost - stats.datagrams_lost <= u64::from(stats.in_flight) / 1_300 + 1);
    assert!(works(&mut net, client));
}

/// Negative acknowledgements every millisecond cause at most one resend per nine tenths of a round trip.
///
/// Resends never exceed the congestion window.
#[test]
fn a03_negative_acknowledgements_cause_few_resends() {
    let (mut net, client, _) = open(Conditions { latency: ROUND_TRIP / 2, ..Conditions::default() });
    // From here on the server receives nothing, so only the forged negative acknowledgements arrive.
    net.pair.set_conditions(Conditions { loss: 1.0, latency: ROUND_TRIP / 2, ..Conditions::default() });
    net.pair.a.send(net.pair.now, client, &[0x86; 1_000], Delivery::RELIABLE).expect("free memory");
    net.pair.transmit();
    let before = net.pair.a.connection_stats(client).expect("an open connection");
    let (start, from) = (net.now(), net.pair.b_address);
    for milli in 1..=1_000 {
        let now = start + Duration::from_millis(milli);
        net.pair.now = now;
        net.pair.a.handle_datagram(now, from, &missing(0, 5_000, 100));
        net.pair.a.handle_timeout(now);
        net.pair.transmit();
        let stats = net.pair.a.connection_stats(client).expect("an open connection");
        assert!(stats.in_flight <= stats.congestion_window + 1_492);
    }
    let after = net.pair.a.connection_stats(client).expect("an open connection");
    let resends = after.datagrams_sent - before.datagrams_sent;
    assert!((5..=12).contains(&resends), "{resends} resends in ten round trips");
}

/// A request from an unknown address, truncated to any length, causes a response of at most that length, and no
/// datagram later.
#[test]
fn a04_no_answer_is_longer_than_its_request() {
    for cookies in [CookiePolicy::Required, CookiePolicy::UnderLoad { unvalidated: 0 }] {
        check_answers_are_not_longer(cookies);
    }
}

fn check_answers_are_not_longer(cookies: CookiePolicy) {
    let mut config = server_config();
    config.cookies = cookies;
    let mut server = peer(config);
    let mut now = Instant::from_micros(1_000_000);
    let full = written(&Offline::Request1 { protocol: 6, mtu: 1_492 });
    let unknown = written(&Offline::Request1 { protocol: 77, mtu: 1_492 });
    let requests =
        [full, unknown, request_2(ClientSecurity::None, 5), request_2(ClientSecurity::Cookie(1), 5)];
    for request in &requests {
        for length in 1..=request.len() {
            now = now + Duration::from_millis(1);
            server.handle_datagram(now, UNKNOWN_SOURCE.into(), &request[..length]);
            let bytes = bytes_out(&mut server, now);
            assert!(bytes <= length, "{bytes} bytes sent for {length} received");
        }
    }
    let later = now + Duration::from_secs(100);
    server.handle_timeout(later);
    assert_eq!(bytes_out(&mut server, later), 0, "the server must send nothing unsolicited");
}

#[test]
fn a05_pongs_can_be_disabled() {
    let mut config = server_config();
    config.pongs_per_second = 0;
    let mut server = peer(config);
    let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    server.handle_datagram(Instant::ZERO, UNKNOWN_SOURCE.into(), &ping);
    assert_eq!(bytes_out(&mut server, Instant::ZERO), 0);
}

/// Reply 2 is longer than request 2. The server sends it only if earlier bytes from that address cover the difference.
#[test]
fn a04_without_cookies_an_address_receives_no_more_bytes_than_it_sent() {
    let addresses = ["203.0.113.9:4000", "[2001:db8::1]:4000"].map(|text| text.parse().expect("an address"));
    let policies = [CookiePolicy::Off, CookiePolicy::UnderLoad { unvalidated: 8 }];
    for (from, cookies) in addresses.into_iter().flat_map(|from| policies.map(|cookies| (from, cookies))) {
        let from: SocketAddr = from;
        let mut config = server_config();
        config.cookies = cookies;
        let mut server = peer(config);
        let (request_1, request_2) =
            (written(&Offline::Request1 { protocol: 6, mtu: 576 }), request_2(ClientSecurity::None, 5));
        let (mut bytes_in, mut bytes) = (0, 0);
        let mut take = |server: &mut Peer<'_>, request: &[u8]| {
            server.handle_datagram(Instant::ZERO, from, request);
            let answer = bytes_out(server, Instant::ZERO);
            (bytes_in, bytes) = (bytes_in + request.len(), bytes + answer);
            assert!(bytes <= bytes_in, "{bytes} bytes sent for {bytes_in} received");
            answer
        };
        assert_eq!(take(&mut server, &request_2), 0, "reply 2 needs credit from request 1");
        assert_eq!(take(&mut server, &request_1[..32]), 28);
        let answers: Vec<_> = (0..10).map(|_| take(&mut server, &request_2)).collect();
        let (reply_2, paid) = if from.is_ipv4() { (35, 4) } else { (57, 0) };
        assert_eq!(answers.iter().filter(|answer| **answer == reply_2).count(), paid);
        assert_eq!(take(&mut server, &request_1), 28);
        assert_eq!(take(&mut server, &request_2), reply_2, "a genuine client must get reply 2");
        assert_eq!(server.connections().count(), 1);
        assert_eq!(server.stats().dropped(DropReason::WouldAmplify), 11 - paid as u64);
    }
}

/// Without cookies, a handshake that is forged up to its third datagram makes the server send datagrams to a victim.
///
/// The amplification is known and below three times the forged bytes.
#[test]
fn a04_without_cookies_forged_handshakes_have_the_documented_cost() {
    assert_eq!(
        cost_of_forged_handshakes(CookiePolicy::Off, 1),
        (94, 180),
        "update docs/attacks.md with these bytes"
    );
}

/// Of a hundred simultaneous forged handshakes, a server under load continues two and answers the others with a
/// cookie.
#[test]
fn a04_under_load_forged_handshakes_have_the_documented_cost() {
    let under_load = CookiePolicy::UnderLoad { unvalidated: 2 };
    assert_eq!(cost_of_forged_handshakes(under_load, 100), (9_400, 2 * 180 + 98 * 32));
    // By default, unvalidated clients may use two of the eight slots.
    assert_eq!(cost_of_forged_handshakes(CookiePolicy::default(), 100), (9_400, 2 * 180 + 98 * 32));
}

/// Returns the first three datagrams of a client's handshake, forged without data from the server.
fn forged_handshake(guid: u64) -> [Vec<u8>; 3] {
    let control = Control::Request { guid: Guid(guid), time: 0, proof: None, password: b"" };
    let mut request_1 = written(&Offline::Request1 { protocol: 6, mtu: 576 });
    // The shortest request that is answered.
    request_1.truncate(32);
    [
        request_1,
        request_2(ClientSecurity::None, guid),
        data(0, capsule(Reliability::Reliable, 0, 0), &written(&control)),
    ]
}

/// Returns the bytes of forged handshakes from `count` networks, and the bytes that the server sends in response.
fn cost_of_forged_handshakes(cookies: CookiePolicy, count: u8) -> (usize, usize) {
    let mut config = server_config();
    config.cookies = cookies;
    let mut server = peer(config);
    let (mut bytes_in, mut bytes) = (0, 0);
    for number in 0..count {
        let from = SocketAddr::from(([203, 0, number, 1], 4_000));
        for datagram in forged_handshake(number.into()) {
            server.handle_datagram(Instant::ZERO, from, &datagram);
            bytes_in += datagram.len();
        }
        bytes += bytes_out(&mut server, Instant::ZERO);
    }
    while let Some(due) = server.poll_timeout() {
        server.handle_timeout(due);
        bytes += bytes_out(&mut server, due);
    }
    assert_eq!(server.connections().count(), 0, "the forged connections must expire");
    (bytes_in, bytes)
}

/// Exchanges datagrams between a player and the server; returns the bytes that the server sends to other addresses.
fn exchange(player: &mut Peer<'_>, server: &mut Peer<'_>, now: Instant) -> usize {
    let (here, there) = (SocketAddr::from(([192, 0, 2, 1], 1)), SocketAddr::from(([192, 0, 2, 2], 2)));
    player.handle_timeout(now);
    server.handle_timeout(now);
    answers(player, now).iter().for_each(|(_, bytes)| server.handle_datagram(now, here, bytes));
    let (own, others): (Vec<_>, Vec<_>) = answers(server, now).into_iter().partition(|(to, _)| *to == here);
    own.iter().for_each(|(_, bytes)| player.handle_datagram(now, there, bytes));
    others.iter().map(|(_, bytes)| bytes.len()).sum()
}

/// Returns the number of connections that have opened.
fn opened(peer: &mut Peer<'_>) -> usize {
    let mut count = 0;
    while let Some(event) = peer.poll_event() {
        count += usize::from(matches!(event, Event::Connected { .. }));
    }
    count
}

/// During a flood of complete forged handshakes, 34 per second, a player can always connect.
///
/// The forged clients get only the slots for unvalidated clients.
#[test]
fn a04_players_can_connect_during_a_flood() {
    players_connect_during_a_flood(CookiePolicy::UnderLoad { unvalidated: 2 }, 2);
    players_connect_during_a_flood(CookiePolicy::default(), 2);
}

fn players_connect_during_a_flood(cookies: CookiePolicy, unvalidated: usize) {
    const SECONDS: usize = 30;
    let mut config = server_config();
    config.cookies = cookies;
    let mut server = peer(config);
    let mut player = peer(client_config());
    let there = SocketAddr::from(([192, 0, 2, 2], 2));
    let (mut bytes_in, mut bytes, mut at_server) = (0, 0, 0);
    let last = Control::NewIncoming {
        server: there,
        addresses: AddressList::unassigned(10),
        accepted_time: 0,
        time: 0,
    };
    let last = data(1, capsule(Reliability::ReliableOrdered, 1, 0), &written(&last));
    let mut now = Instant::from_micros(1_000_000);
    for second in 0..SECONDS {
        let id = player.connect(now, there).expect("a free slot");
        let mut here = 0;
        for step in 0..100 {
            now = now + Duration::from_millis(10);
            if step % 3 == 0 {
                let number = u64::try_from(second * 100 + step).expect("a number that fits 64 bits");
                let [.., high, low] = number.to_be_bytes();
                let forged = forged_handshake(number + 1_000);
                for datagram in forged.iter().chain([&last]) {
                    server.handle_datagram(now, SocketAddr::from(([10, high, low, 1], 1)), datagram);
                    bytes_in += datagram.len();
                }
            }
            bytes += exchange(&mut player, &mut server, now);
            here += opened(&mut player);
            at_server += opened(&mut server);
            if step == 50 {
                player.disconnect(now, id);
            }
        }
        assert_eq!(here, 1, "a player must connect within half a second");
    }
    let most = unvalidated * (1 + SECONDS / 10);
    assert!((SECONDS + unvalidated..=SECONDS + most).contains(&at_server), "{at_server} connections opened");
    assert!(bytes <= bytes_in, "{bytes} bytes sent for {bytes_in} received");
}

/// A pong has the length of its ping plus the advertisement. A truncated ping gets no response.
#[test]
fn a05_a_pong_exceeds_its_ping_only_by_the_advertisement() {
    let mut config = server_config();
    (config.pongs_per_second, config.pongs_per_network) = (u16::MAX, u16::MAX);
    let mut server = peer(config);
    let mut now = Instant::ZERO;
    let full = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    let open = written(&Offline::Ping { scope: PingScope::OpenConnections, time: 1, guid: Some(Guid(1)) });
    for advertised in [0, 1, 100, 399] {
        assert_eq!(server.set_advertisement(&vec![b'x'; advertised]), Ok(()));
        for (ping, length) in [&full, &open].into_iter().flat_map(|ping| (1..=33).map(move |n| (ping, n))) {
            now = now + Duration::from_millis(1);
            server.handle_datagram(now, UNKNOWN_SOURCE.into(), &ping[..length]);
            let expected = if length == 33 { 33 + advertised } else { 0 };
            assert_eq!(
                bytes_out(&mut server, now),
                expected,
                "a ping of {length} bytes, an advertisement of {advertised}"
            );
        }
    }
}

/// The server has the longest advertisement and the default limits.
#[test]
fn a05_a_flood_of_pings_has_the_documented_amplification() {
    const SECONDS: usize = 10;
    // 200 networks share 32 rate limiters of 20 pongs per second, so they get 640 per second. The limit of the whole
    // server is 1,000.
    let ping = written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    for (networks, a_second) in [(1, 20 * 432), (200, 640 * 432)] {
        let mut server = peer(server_config());
        assert_eq!(server.set_advertisement(&[b'x'; 399]), Ok(()));
        let mut bytes = 0;
        for milli in 0..1_000 * SECONDS {
            let now = Instant::from_micros(milli as u64 * 1_000);
            for number in 0..4 {
                let network = u8::try_from((milli * 4 + number) % networks).expect("at most 256 networks");
                server.handle_datagram(now, SocketAddr::from(([203, 0, network, 1], 9)), &ping);
            }
            bytes += bytes_out(&mut server, now);
        }
        // A burst of one second is allowed, plus half a second in advance.
        let most = a_second * (2 * SECONDS + 3) / 2;
        assert!(
            bytes <= most,
            "{bytes} bytes sent in {SECONDS} s to {networks} networks, at most {most} allowed"
        );
        assert!(bytes > most / 2, "the flood used only {bytes} bytes of the limit {most}");
    }
}

/// Returns the cookie that a server sends to this address at `now`.
pub(super) fn cookie(server: &mut Peer<'_>, now: Instant, from: SocketAddr) -> u32 {
    server.handle_datagram(now, from, &written(&Offline::Request1 { protocol: 6, mtu: 576 }));
    let answers = answers(server, now);
    match Offline::read(&mut Reader::new(&answers[0].1)) {
        Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) => cookie,
        other => panic!("{other:?}"),
    }
}

/// A cookie is valid only for its address and for less than ten seconds, and every bit of it is checked.
#[test]
fn a06_a_cookie_is_bound_to_its_address_and_time() {
    let mut server = peer(server_config());
    let now = Instant::from_micros(3_000_000);
    let address = SocketAddr::from(([203, 0, 113, 1], 1_000));
    let given = cookie(&mut server, now, address);
    let others: [SocketAddr; 3] = [
        ([203, 0, 113, 1], 1_001).into(),
        ([203, 0, 113, 2], 1_000).into(),
        "[2001:db8::1]:1000".parse().expect("a literal address"),
    ];
    for other in others {
        server.handle_datagram(now, other, &request_2(ClientSecurity::Cookie(given), 5));
    }
    for bit in 0..32 {
        server.handle_datagram(now, address, &request_2(ClientSecurity::Cookie(given ^ 1 << bit), 5));
    }
    assert_eq!((server.connections().count(), server.stats().dropped(DropReason::BadCookie)), (0, 35));
    // Another server with the same secret accepts the cookie until it expires.
    for (after, expected) in [(0, 1), (10, 0)] {
        let mut other = peer(server_config());
        let then = now + Duration::from_secs(after);
        other.handle_datagram(then, address, &request_2(ClientSecurity::Cookie(given), 5));
        assert_eq!(other.connections().count(), expected, "a cookie after {after} s");
    }
    server.handle_datagram(now, address, &request_2(ClientSecurity::Cookie(given), 5));
    assert_eq!(server.connections().count(), 1, "the cookie must be valid for its own address");
}

/// Forged malformed data from a player's address does not close the player's connection or block a new one.
#[test]
fn a08_forged_data_neither_disconnects_a_player_nor_prevents_a_reconnect() {
    let (mut net, client, _) = open(Conditions::default());
    for byte in 0..=u8::MAX {
        forge(&mut net, &[byte; 40]);
        forge(&mut net, &[byte, 1, 2]);
    }
    forge(&mut net, &request_2(ClientSecurity::Cookie(7), 99));
    forge(&mut net, &written(&Offline::Request1 { protocol: 99, mtu: 576 }));
    net.run_for(Duration::from_millis(100));
    assert!(works(&mut net, client));
    net.pair.a.disconnect(net.pair.now, client);
    net.run_for(Duration::from_secs(5));
    (net.client, net.server) = (Vec::new(), Vec::new());
    net.connect();
}

/// A full ban list returns an error, and no received data adds an entry.
#[test]
fn a09_the_ban_list_has_a_fixed_size() {
    let mut bans = BanList::new();
    let addresses = (0..100_000_u32).map(|number| {
        let [a, b, c, d] = number.to_be_bytes();
        format!("{a}.{b}.{c}.{d}").parse().expect("an address")
    });
    let added = addresses.take_while(|pattern| bans.add(*pattern, None).is_ok()).count();
    assert!((1..100_000).contains(&added), "the list accepted {added} entries");
    let mut server = peer(server_config());
    for number in 0..10_000_u32 {
        let from = SocketAddr::from((number.to_be_bytes(), 9));
        server.handle_datagram(Instant::ZERO, from, &[5; 60]);
    }
    let known = server.bans_mut().expect("a ban list");
    assert!(!known.is_banned([0, 0, 0, 1].into(), Instant::ZERO));
}

/// Returns pseudorandom bytes from the linear congruential generator of Knuth's MMIX.
fn nonsense(seed: &mut u64, length: usize) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Half a million random datagrams, and half a million offline messages with random endings, cause no events and are
/// counted by reason.
#[test]
fn a10_malformed_datagrams_are_counted_without_events() {
    let mut server = peer(server_config());
    let cookie = request_2(ClientSecurity::Cookie(7), 5);
    let offline: [&[u8]; 6] = [
        &written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: None }),
        &written(&Offline::Request1 { protocol: 11, mtu: 56 }),
        &cookie,
        &written(&Offline::Pong { time: 1, guid: Guid(2), data: b"pong" }),
        &written(&Offline::Reply2 { guid: Guid(2), client: UNKNOWN_SOURCE.into(), mtu: 1_400, answer: None }),
        &written(&Offline::IncompatibleProtocol { protocol: 6, guid: Guid(2) }),
    ];
    let mut seed = 10;
    for number in 0..500_000_usize {
        let bytes = nonsense(&mut seed, number % 60);
        server.handle_datagram(Instant::ZERO, UNKNOWN_SOURCE.into(), &bytes);
        let message = offline[number % offline.len()];
        // A random number of bytes after the id and the magic are replaced or missing.
        let kept = 17 + usize::from(nonsense(&mut seed, 1)[0]) % (message.len() - 16);
        let rest = nonsense(&mut seed, (message.len() - kept) * (number / offline.len() % 2));
        let bytes = [&message[..kept], &rest].concat();
        server.handle_datagram(Instant::ZERO, UNKNOWN_SOURCE.into(), &bytes);
    }
    assert!(server.poll_event().is_none());
    assert_eq!(server.connections().count(), 0);
    let stats = server.stats();
    for reason in [
        DropReason::TooShort,
        DropReason::UnknownSource,
        DropReason::BadOffline,
        DropReason::Unexpected,
        DropReason::WouldAmplify,
        DropReason::BadCookie,
    ] {
        assert!(stats.dropped(reason) > 0, "{reason:?}");
    }
    assert_eq!(stats.drops().map(|(_, count)| count).sum::<u64>(), 1_000_000);
}

/// A datagram with a number far ahead is dropped. It causes no negative acknowledgement and takes no memory, and the
/// connection continues.
#[test]
fn a14_a_datagram_number_far_ahead_has_no_effect() {
    let (mut net, client, _) = open(Conditions::default());
    net.pair.transmit();
    let before = net.pair.b.blocks_available();
    for number in [60_000, 0x7F_FFFF, 0x80_0010, 0xFF_FFFF - 2_000] {
        forge(&mut net, &data(number, capsule(Reliability::Unreliable, 0, 0), b"\x86far"));
    }
    assert_eq!(net.pair.b.stats().dropped(DropReason::OutsideWindow), 4);
    let now = net.now();
    assert_eq!((bytes_out(&mut net.pair.b, now), net.pair.b.blocks_available()), (0, before));
    // A jump within the limit costs one datagram of negative acknowledgements.
    forge(&mut net, &data(49_000, capsule(Reliability::Unreliable, 0, 0), b"\x86far"));
    let complaints = answers(&mut net.pair.b, now);
    assert!(complaints.len() <= 2 && complaints.iter().all(|(_, bytes)| bytes.len() <= 24), "{complaints:?}");
    net.run_for(Duration::from_secs(1));
    assert!(net.pair.b.connections().next().is_some() && net.pair.a.connection(client).is_some());
}

/// A disconnection notification from an unknown address, or with numbers outside the window, closes no connection.
#[test]
fn a15_a_blind_disconnection_notification_closes_no_connection() {
    let (mut net, client, _) = open(Conditions::default());
    let notification = |number, reliable| data(number, capsule(Reliability::Reliable, reliable, 0), b"\x15");
    let now = net.now();
    net.pair.b.handle_datagram(now, UNKNOWN_SOURCE.into(), &notification(NEXT, NEXT));
    for (number, reliable) in [(0x40_0000, NEXT), (NEXT, 0x40_0000), (NEXT + 1, 0xC0_0000), (0x90_0000, 0)] {
        forge(&mut net, &notification(number, reliable));
    }
    net.run_for(Duration::from_secs(1));
    assert!(net.server.is_empty(), "{:?}", net.server);
    assert!(works(&mut net, client));
}

/// For any MTU that the remote peer requests, a connection uses 576 to 1,492 bytes.
#[test]
fn a16_mtus_are_clamped_in_both_directions() {
    for (named, used) in [(0, 576), (1, 576), (575, 576), (1_000, 1_000), (9_000, 1_492), (u16::MAX, 1_492)] {
        let mut server = peer(server_config());
        let (now, address) = (Instant::from_micros(1), SocketAddr::from(UNKNOWN_SOURCE));
        let security = ClientSecurity::Cookie(cookie(&mut server, now, address));
        let request = Offline::Request2 { security, server: address, mtu: named, guid: Guid(5) };
        server.handle_datagram(now, address, &written(&request));
        let id = server.connection_at(address).expect("an accepted connection");
        assert_eq!(server.connection_stats(id).map(|info| info.mtu), Some(used), "{named}");

        let mut client = peer(client_config());
        let id = client.connect(now, address).expect("a free slot");
        let guid = Guid(5);
        let reply = Offline::Reply2 { guid, client: address, mtu: named, answer: None };
        client.handle_datagram(now, address, &written(&reply));
        assert_eq!(client.connection_stats(id).map(|info| info.mtu), Some(used), "{named}");
    }
}

/// At a malformed capsule the rest of the datagram is dropped; the capsules before it are processed.
#[test]
fn a17_a_malformed_capsule_drops_only_the_rest_of_its_datagram() {
    let (mut net, client, _) = open(Conditions::default());
    let good = |text: &[u8]| data(0, capsule(Reliability::Unreliable, 0, 0), text)[4..].to_vec();
    let bad: [&[u8]; 4] = [
        &[0x60, 0, 8, 9, 0, 0, 9, 0, 0, 255, 0x86],
        &[0x10, 0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x86],
        &[0x00, 0xFF, 0xFF, 0x86],
        &[0x00, 0, 0, 0x86],
    ];
    for (number, bad) in (NEXT..).zip(bad) {
        let header = written(&DatagramHeader::Data { hints: 0, number: U24::new(number) });
        forge(&mut net, &[&header, &good(b"\x86before"), bad, &good(b"\x86after")].concat());
    }
    net.poll();
    assert_eq!(messages(&net.server), [b"\x86before"; 4]);
    assert_eq!(
        net.pair.b.stats().dropped(DropReason::BadDatagram),
        3,
        "a capsule of length zero counts as padding"
    );
    // The reliabilities with receipts do not exist on the wire, and messages with them are delivered like those
    // without.
    for (number, flags) in (NEXT + 4..).zip([0xA0, 0xC0]) {
        let header = written(&DatagramHeader::Data { hints: 0, number: U24::new(number) });
        forge(&mut net, &[&header[..], &[flags, 0, 16, 0x86, 7]].concat());
    }
    net.poll();
    assert_eq!(messages(&net.server).len(), 6);
    assert!(works(&mut net, client));
}

/// A connection that fills its memory limit with an endless message leaves memory for others.
#[test]
fn a18_an_endless_message_leaves_memory_for_others() {
    let capacity = Capacity { connections: 4, blocks: 256, block_size: 512 };
    let server = Peer::with_capacity(capacity, server_config());
    let mut net = Net::with(peer(client_config()), server, Conditions::default(), 1);
    let (client, id) = net.connect();
    net.run_for(Duration::from_millis(500));
    let total = net.pair.b.blocks();
    for part in 0..200 {
        let split = Some(Split { count: 26, id: 1 + (part / 25) as u16, index: part % 25 });
        let header = rakwire::wire::datagram::CapsuleHeader {
            split,
            ..capsule(Reliability::Reliable, NEXT + part, 0)
        };
        forge(&mut net, &data(NEXT + part, header, &[0x86; 1_300]));
        assert!(
            net.pair.b.blocks_available() >= total / 2 - 20,
            "the message took more than half of the memory"
        );
    }
    assert_eq!(
        net.pair.a.send(net.pair.now, client, &vec![0x86; 10_000_000], Delivery::RELIABLE),
        Err(SendError::NeverFits)
    );
    // Another client can connect and send a message.
    let mut config = client_config();
    config.guid.0 += 1;
    let mut other = Net::with(peer(config), net.pair.b, Conditions::default(), 2);
    other.pair.a_address.set_port(77);
    let (other_client, _) = other.connect();
    assert!(works(&mut other, other_client));
    // The connection with the endless message closes after its timeout.
    let other_id = |event: &OwnedEvent| matches!(event, OwnedEvent::Disconnected(over, DisconnectReason::Lost | DisconnectReason::ReceiveMemory) if *over == id);
    other.run_for(Duration::from_secs(60));
    assert!(other.server.iter().any(other_id), "{:?}", other.server);
}

//! Secure connections (docs/secure.md).

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    Capacity, Config, ConnectError, ConnectFailure, ConnectOptions, ConnectionId, CookiePolicy, Delivery,
    DisconnectReason, DropReason, Event, Guid, Peer, SecurePeer, Security,
};
use rakwire::secure::{KnownServer, MAX_IDENTITY_DATA, OVERHEAD, ServerIdentity, ServerTrust, StaticKey};
use rakwire::sim::Conditions;
use rakwire::wire::offline::{ClientSecurity, Offline, Refusal, ServerSecurity};
use rakwire::wire::{Reader, Wire};

use crate::support::forged::{UNKNOWN_SOURCE, answers, request_2, written};
use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};
use crate::support::secure::{
    client_key, net, pinned, requiring_server, secure_client, secure_server, server_key, trusting,
};

const MINUTE: Duration = Duration::from_secs(60);
const NOW: Instant = Instant::from_micros(1_000_000);
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 1);
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 2);
const ALREADY_CONNECTED: ConnectFailure = ConnectFailure::Refused(Refusal::AlreadyConnected);

/// Both peers send messages of up to 8,084 bytes on paths with loss, duplication and reordering.
#[test]
fn messages_are_delivered_in_sealed_datagrams_over_any_path() {
    let conditions = Conditions {
        loss: 0.1,
        duplication: 0.1,
        reordering: 0.1,
        latency: Duration::from_millis(20),
        jitter: Duration::from_millis(30),
        ..Conditions::default()
    };
    for (seed, identity) in [(1, false), (2, true), (3, false), (4, true)] {
        let client = secure_client(identity.then(client_key));
        let mut net = net(client, requiring_server(), conditions, seed);
        let (client, server) = net.open(&pinned());
        let sent: Vec<Vec<u8>> =
            (0..60).map(|index| vec![0x86 + index % 7; 1 + 137 * usize::from(index)]).collect();
        for message in &sent {
            net.pair.a.send(net.pair.now, client, message, Delivery::RELIABLE_ORDERED).expect("free memory");
            net.pair.b.send(net.pair.now, server, message, Delivery::RELIABLE_ORDERED).expect("free memory");
        }
        let arrived = net.run_until(MINUTE, |net| {
            messages(&net.client).len() == sent.len() && messages(&net.server).len() == sent.len()
        });
        assert!(arrived, "seed {seed}");
        assert_eq!(messages(&net.client), sent);
        assert_eq!(messages(&net.server), sent);
        net.pair.a.disconnect(net.pair.now, client);
        let ended = OwnedEvent::Disconnected(server, DisconnectReason::Remote);
        assert!(net.run_until(MINUTE, |net| net.server.contains(&ended)), "seed {seed}");
    }
}

#[test]
fn each_peer_gets_the_authenticated_identity_of_the_other() {
    for identity in [None, Some(client_key())] {
        let expected = identity.as_ref().map(StaticKey::public);
        let mut net = net(secure_client(identity), requiring_server(), Conditions::default(), 1);
        let (client, server) = net.open(&pinned());
        let known = KnownServer { key: server_key().public(), next: None };
        assert_eq!(net.pair.a.secure_peer(client), Some(SecurePeer::Server(known)));
        let Some(SecurePeer::Client(shown)) = net.pair.b.secure_peer(server) else {
            panic!("expected a secure client")
        };
        assert_eq!(shown.map(|shown| shown.key), expected);
    }
}

/// A client may attach application data of at most `MAX_IDENTITY_DATA` bytes to its identity.
#[test]
fn identity_data_is_delivered_to_the_server() {
    let key = client_key();
    for length in [0, 1, MAX_IDENTITY_DATA] {
        let data: Vec<u8> = (1..).take(length).collect();
        let options = ConnectOptions { identity: Some(&key), identity_data: &data, ..pinned() };
        let mut net = net(secure_client(None), requiring_server(), Conditions::default(), 1);
        let (_, server) = net.open(&options);
        let Some(SecurePeer::Client(Some(shown))) = net.pair.b.secure_peer(server) else {
            panic!("expected an identified client")
        };
        assert_eq!((shown.key, shown.data()), (key.public(), &data[..]));
    }
}

#[test]
fn invalid_identity_data_is_refused_by_connect() {
    let (key, long) = (client_key(), [7; MAX_IDENTITY_DATA + 1]);
    let error = Err(ConnectError::InvalidIdentityData);
    let long = ConnectOptions { identity: Some(&key), identity_data: &long, ..pinned() };
    assert_eq!(peer(secure_client(None)).connect_with(NOW, SERVER.into(), &long), error);
    let nobodys = ConnectOptions { identity_data: &[7], ..pinned() };
    assert_eq!(peer(secure_client(None)).connect_with(NOW, SERVER.into(), &nobodys), error);
    let plain = ConnectOptions { identity_data: &[7], ..ConnectOptions::default() };
    assert_eq!(peer(client_config()).connect_with(NOW, SERVER.into(), &plain), error);
    // The identity may also come from the configuration.
    let mut always = peer(secure_client(Some(client_key())));
    assert!(always.connect_with(NOW, SERVER.into(), &nobodys).is_ok());
}

#[test]
fn a_client_can_trust_a_key_a_key_hash_a_record_or_any_server() {
    let (key, next) = (server_key().public(), StaticKey::from_bytes([3; 32]).public());
    let before = KnownServer { key: next, next: Some(key.hash()) };
    let announcing = || secure_server(|identity| identity.next = Some(next.hash()));
    for trust in [
        ServerTrust::Key(key),
        ServerTrust::KeyHash(key.hash()),
        ServerTrust::Known(before),
        ServerTrust::Any,
    ] {
        let mut net = net(secure_client(None), announcing(), Conditions::default(), 1);
        let (client, _) = net.open(&trusting(trust));
        let known = KnownServer { key, next: Some(next.hash()) };
        assert_eq!(net.pair.a.secure_peer(client), Some(SecurePeer::Server(known)), "{trust:?}");
    }
    for trust in [ServerTrust::Key(next), ServerTrust::KeyHash(next.hash())] {
        let mut net = net(secure_client(None), announcing(), Conditions::default(), 1);
        let id = net.dial(&trusting(trust));
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.client, [OwnedEvent::Failed(id, ConnectFailure::PublicKeyMismatch)]);
        assert_eq!(net.server, []);
    }
}

/// Trust on first use: a client stores the record of a server, and refuses the server if its key changes.
#[test]
fn a_server_trusted_on_first_use_must_keep_its_key() {
    let mut first = net(secure_client(None), requiring_server(), Conditions::default(), 1);
    let (client, _) = first.open(&trusting(ServerTrust::Any));
    let Some(SecurePeer::Server(known)) = first.pair.a.secure_peer(client) else { panic!("no server") };
    let known = trusting(ServerTrust::Known(known));

    let mut again = net(secure_client(None), requiring_server(), Conditions::default(), 2);
    let (client, _) = again.open(&known);
    assert!(again.pair.a.secure_peer(client).is_some());

    let other = secure_server(|identity| *identity = ServerIdentity::new(StaticKey::from_bytes([3; 32])));
    let mut other = net(secure_client(None), other, Conditions::default(), 3);
    let id = other.dial(&known);
    other.run_for(Duration::from_secs(1));
    assert_eq!(other.client, [OwnedEvent::Failed(id, ConnectFailure::PublicKeyMismatch)]);
    assert_eq!(other.server, []);
}

/// The rows of docs/secure.md#compatibility, with peers of this crate.
#[test]
fn incompatible_security_settings_are_refused_with_distinct_reasons() {
    let plain = ConnectOptions::default;
    let identified = || {
        secure_server(|identity| {
            identity.requires_security = true;
            identity.requires_identity = true;
        })
    };
    let offering = || secure_server(|_| ());
    let cases = [
        (requiring_server(), plain(), None, Err(ConnectFailure::SecurityRequired)),
        (server_config(), pinned(), None, Err(ConnectFailure::ServerWithoutSecurity)),
        (identified(), pinned(), None, Err(ConnectFailure::IdentityRequired)),
        (identified(), pinned(), Some(client_key()), Ok(true)),
        (offering(), plain(), None, Ok(false)),
        (offering(), pinned(), None, Ok(true)),
        (requiring_server(), pinned(), None, Ok(true)),
        (server_config(), plain(), None, Ok(false)),
    ];
    for (server, options, identity, expected) in cases {
        let case = format!("{:?} {options:?} {}", server.security, identity.is_some());
        let mut net = net(secure_client(identity), server, Conditions::default(), 1);
        let id = net.dial(&options);
        net.run_for(Duration::from_secs(1));
        match expected {
            Ok(is_secure) => {
                assert_eq!(net.client, [OwnedEvent::Connected(id)], "{case}");
                assert_eq!(net.pair.a.secure_peer(id).is_some(), is_secure, "{case}");
            }
            Err(failure) => {
                assert_eq!(net.client, [OwnedEvent::Failed(id, failure)], "{case}");
                assert_eq!(net.server, [], "{case}");
                net.run_for(Duration::from_secs(20));
                assert_eq!(net.pair.b.connections().count(), 0, "{case}");
            }
        }
    }
}

/// Creates a peer that accepts connections and has a key.
fn listening(mut config: Config) -> Peer<'static> {
    config.max_incoming = 8;
    let security = config.security.get_or_insert_with(|| Security::new([0x33; 32]));
    security.server = Some(ServerIdentity::new(server_key()));
    peer(config)
}

/// Delivers all pending datagrams of both peers, but not the responses to them.
fn exchange(net: &mut Net) {
    let now = net.now();
    let (forth, back) = (answers(&mut net.pair.a, now), answers(&mut net.pair.b, now));
    for (_, bytes) in forth {
        net.pair.b.handle_datagram(now, net.pair.a_address, &bytes);
    }
    for (_, bytes) in back {
        net.pair.a.handle_datagram(now, net.pair.b_address, &bytes);
    }
    net.poll();
}

/// Checks the outcome of an attempt while the other peer connects as well.
///
/// The attempt either opens a connection, which is secure if and only if that was requested, or fails with
/// `AlreadyConnected`.
fn assert_kept(peer: &Peer<'_>, id: ConnectionId, events: &[OwnedEvent], options: &ConnectOptions<'_>) {
    if events.contains(&OwnedEvent::Connected(id)) {
        assert_eq!(peer.secure_peer(id).is_some(), options.trust.is_some(), "{events:?}");
    } else {
        assert!(events.contains(&OwnedEvent::Failed(id, ALREADY_CONNECTED)), "{events:?}");
    }
}

/// A secure attempt never results in a plain connection, even if the remote peer makes a plain attempt.
///
/// The second peer connects before each datagram exchange of the first peer's handshake.
#[test]
fn simultaneous_attempts_never_downgrade_a_secure_attempt() {
    let plain = ConnectOptions::default();
    for [first, second] in [[pinned(), plain], [plain, pinned()], [pinned(), pinned()]] {
        for exchanges in 0..8 {
            let (a, b) = (listening(secure_client(None)), listening(server_config()));
            let mut net = Net::with(a, b, Conditions::default(), 1);
            let a = net.dial(&first);
            (0..exchanges).for_each(|_| exchange(&mut net));
            let (now, to) = (net.now(), net.pair.a_address);
            let b = net.pair.b.connect_with(now, to, &second);
            (0..12).for_each(|_| exchange(&mut net));
            assert_kept(&net.pair.a, a, &net.client, &first);
            if let Ok(b) = b {
                assert_kept(&net.pair.b, b, &net.server, &second);
            }
            if exchanges == 0 {
                assert_eq!(net.client, [OwnedEvent::Failed(a, ALREADY_CONNECTED)]);
                assert_eq!(net.server, [OwnedEvent::Failed(b.expect("a free slot"), ALREADY_CONNECTED)]);
            }
        }
    }
}

/// The server verifies the cookie and then sends a refusal that C++ RakNet understands.
#[test]
fn a_client_without_security_is_refused_by_a_secure_server() {
    let mut server = peer(requiring_server());
    let cookie = cookie_of(&mut server);
    server.handle_datagram(NOW, UNKNOWN_SOURCE.into(), &request_2(ClientSecurity::Cookie(cookie ^ 1), 9));
    assert_eq!(answers(&mut server, NOW), []);
    server.handle_datagram(NOW, UNKNOWN_SOURCE.into(), &request_2(ClientSecurity::Cookie(cookie), 9));
    let answers = answers(&mut server, NOW);
    let [(_, bytes)] = &answers[..] else { panic!("{answers:?}") };
    let refused = Offline::Refused { refusal: Refusal::AttemptFailed, guid: server.config().guid };
    assert_eq!(Offline::read(&mut Reader::new(bytes)), Ok(refused));
    assert_eq!(server.connections().count(), 0);
}

/// Returns the cookie that a server sends to an unknown address.
fn cookie_of(server: &mut Peer<'_>) -> u32 {
    server.handle_datagram(
        NOW,
        UNKNOWN_SOURCE.into(),
        &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }),
    );
    let answers = answers(server, NOW);
    let [(_, bytes)] = &answers[..] else { panic!("{answers:?}") };
    match Offline::read(&mut Reader::new(bytes)) {
        Ok(Offline::Reply1 { security: ServerSecurity::PublicKey { cookie, .. }, .. }) => cookie,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_secure_connection_needs_a_configuration_with_security() {
    let mut client = peer(client_config());
    assert_eq!(client.connect_with(NOW, SERVER.into(), &pinned()), Err(ConnectError::NoSecurity));
}

/// A client with an identity makes no plain attempt, even if the remote peer has already started a plain one.
#[test]
fn connecting_with_an_identity_requires_a_trusted_server() {
    let (key, plain) = (client_key(), ConnectOptions::default());
    let shown = ConnectOptions { identity: Some(&key), ..plain };
    let error = Err(ConnectError::IdentityWithoutTrust);
    assert_eq!(peer(secure_client(None)).connect_with(NOW, SERVER.into(), &shown), error);
    assert_eq!(peer(client_config()).connect_with(NOW, SERVER.into(), &shown), error);
    let mut always = peer(secure_client(Some(client_key())));
    assert_eq!(always.connect_with(NOW, SERVER.into(), &plain), error);
    assert!(always.connect_with(NOW, SERVER.into(), &pinned()).is_ok());

    let mut net = net(client_config(), server_config(), Conditions::default(), 1);
    net.dial(&plain);
    let (to, now) = (net.pair.a_address, net.pair.now);
    net.run_until(MINUTE, |net| net.pair.b.connections().count() > 0);
    assert_eq!(net.pair.b.connect_with(now, to, &shown), error);
}

/// A peer with an identity in its configuration accepts plain incoming connections, but its own attempt does not use
/// one.
#[test]
fn an_attempt_with_an_identity_never_reuses_a_plain_incoming_connection() {
    let mut identified = server_config();
    identified.security = secure_client(Some(client_key())).security;
    let mut net = net(client_config(), identified, Conditions::default(), 1);
    net.dial(&ConnectOptions::default());
    let to = net.pair.a_address;
    net.run_until(MINUTE, |net| net.pair.b.connections().count() > 0);
    while !net.server.iter().any(|event| matches!(event, OwnedEvent::Connected(_))) {
        let now = net.pair.now;
        let adopted = net.pair.b.connect_with(now, to, &ConnectOptions::default());
        assert_eq!(adopted, Err(ConnectError::IdentityWithoutTrust));
        net.run_for(Duration::from_millis(1));
    }
    assert_eq!(net.client, [OwnedEvent::Connected(net.pair.a.connections().next().expect("a connection"))]);
}

/// Two peers. The test delivers their datagrams explicitly.
struct Steps {
    client: Peer<'static>,
    server: Peer<'static>,
    client_address: SocketAddr,
    server_address: SocketAddr,
}

impl Steps {
    fn new(server: Config) -> Self {
        Self::between(server, CLIENT.into(), SERVER.into())
    }

    fn between(server: Config, client_address: SocketAddr, server_address: SocketAddr) -> Self {
        let mut client = peer(secure_client(None));
        client.connect_with(NOW, server_address, &pinned()).expect("a free slot");
        Self { client, server: peer(server), client_address, server_address }
    }

    /// Polls the datagrams from the client, without delivering them.
    fn sent_by_client(&mut self) -> Vec<Vec<u8>> {
        answers(&mut self.client, NOW).into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn sent_by_server(&mut self) -> Vec<Vec<u8>> {
        answers(&mut self.server, NOW).into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn deliver_to_server(&mut self, datagrams: &[Vec<u8>]) {
        datagrams.iter().for_each(|bytes| self.server.handle_datagram(NOW, self.client_address, bytes));
    }

    fn deliver_to_client(&mut self, datagrams: &[Vec<u8>]) {
        datagrams.iter().for_each(|bytes| self.client.handle_datagram(NOW, self.server_address, bytes));
    }

    /// Returns the client's request 2 without delivering it.
    fn request_2(&mut self) -> Vec<u8> {
        let request_1 = self.sent_by_client();
        self.deliver_to_server(&request_1);
        let reply_1 = self.sent_by_server();
        self.deliver_to_client(&reply_1);
        let requests = self.sent_by_client();
        let [request_2] = &requests[..] else { panic!("{requests:02x?}") };
        let length = if self.server_address.is_ipv4() { 103 } else { 125 };
        assert_eq!(request_2.len(), length);
        request_2.clone()
    }
}

/// The repeated reply costs no computation: the rate limit allows only one handshake.
#[test]
fn a_retransmitted_request_2_gets_an_identical_reply() {
    check_identical_answers(CLIENT.into(), SERVER.into(), 163);
    let ipv6 = |host, port| SocketAddr::from(([0x2001, 0xDB8, 0, 0, 0, 0, 0, host], port));
    check_identical_answers(ipv6(1, 1), ipv6(2, 2), 185);
}

fn check_identical_answers(client: SocketAddr, server: SocketAddr, length: usize) {
    let mut config = requiring_server();
    if let Some(security) = &mut config.security {
        security.handshakes_per_network = 1;
    }
    let mut steps = Steps::between(config, client, server);
    let request_2 = steps.request_2();
    steps.deliver_to_server(std::slice::from_ref(&request_2));
    let first = steps.sent_by_server();
    assert_eq!(first.iter().map(Vec::len).collect::<Vec<_>>(), [length]);
    for _ in 0..5 {
        steps.deliver_to_server(std::slice::from_ref(&request_2));
        assert_eq!(steps.sent_by_server(), first);
    }
    steps.deliver_to_client(&first);
    let connection_request = steps.sent_by_client();
    steps.deliver_to_server(&connection_request);
    // After the connection request, a late request 2 and reply 2 have no effect.
    steps.deliver_to_server(&[request_2]);
    steps.deliver_to_client(&first);
    for _ in 0..4 {
        let datagrams = steps.sent_by_server();
        steps.deliver_to_client(&datagrams);
        let datagrams = steps.sent_by_client();
        steps.deliver_to_server(&datagrams);
    }
    assert_eq!(steps.server.stats().dropped(DropReason::HandshakeLimit), 0);
    let connected = |event| matches!(event, Some(Event::Connected { .. }));
    assert!(connected(steps.server.poll_event()) && connected(steps.client.poll_event()));
}

/// The first eight bytes of a challenge are cleartext. The server checks them before any computation.
#[test]
fn challenges_rejected_by_their_header_do_not_count_towards_the_rate_limit() {
    /// The offset after id, magic, cookie and flag: the pattern, two zeros, and the suite.
    const CHALLENGE: usize = 1 + 16 + 4 + 1;
    let mut config = requiring_server();
    if let Some(security) = &mut config.security {
        security.handshakes_per_network = 1;
    }
    let mut steps = Steps::new(config);
    let request_2 = steps.request_2();
    for at in CHALLENGE..CHALLENGE + 8 {
        for bit in 2..8 {
            let mut other = request_2.clone();
            other[at] ^= 1 << bit;
            steps.deliver_to_server(&[other]);
        }
    }
    assert!(steps.sent_by_server().iter().all(|answer| answer.len() == 25), "only refusals may be sent");
    assert_eq!(steps.server.stats().dropped(DropReason::HandshakeLimit), 0);
    assert_eq!(steps.server.stats().dropped(DropReason::Unauthentic), 3 * 6);
    steps.deliver_to_server(&[request_2]);
    assert_eq!(steps.sent_by_server().iter().map(Vec::len).collect::<Vec<_>>(), [163]);
}

/// A request 2 with a changed byte creates no connection. The last requests exceed the rate limit of their network.
#[test]
fn modified_challenges_get_no_reply_2() {
    let mut steps = Steps::new(requiring_server());
    let request_2 = steps.request_2();
    for at in 17..request_2.len() {
        let mut changed = request_2.clone();
        changed[at] ^= 1;
        steps.deliver_to_server(&[changed]);
        let answers = steps.sent_by_server();
        assert!(answers.iter().all(|answer| answer.len() < 103), "byte {at}: {answers:02x?}");
        assert_eq!(steps.server.connections().count(), 0, "byte {at}");
    }
    assert!(steps.server.stats().dropped(DropReason::HandshakeLimit) > 0, "the rate limit must apply");
}

/// A modified reply 2, or one without an answer, does not fail the attempt, which continues when the genuine reply
/// arrives.
#[test]
fn modified_replies_are_dropped_and_the_attempt_continues() {
    /// The offset of the encryption flag of reply 2, after id, magic, GUID, address and MTU.
    const FLAG: usize = 1 + 16 + 8 + 7 + 2;
    let mut steps = Steps::new(requiring_server());
    let request_2 = steps.request_2();
    steps.deliver_to_server(&[request_2]);
    let replies = steps.sent_by_server();
    let reply_2 = &replies[0];
    for at in 17..reply_2.len() {
        let mut changed = reply_2.clone();
        // Any value except zero means that an answer follows.
        changed[at] = if at == FLAG { 0 } else { changed[at] ^ 1 };
        steps.deliver_to_client(&[changed]);
    }
    steps.deliver_to_client(&[written(&Offline::Reply2 {
        guid: steps.server.config().guid,
        client: CLIENT.into(),
        mtu: 1_492,
        answer: None,
    })]);
    assert!(steps.client.poll_event().is_none());
    let stats = steps.client.stats();
    let dropped = stats.dropped(DropReason::Unauthentic) + stats.dropped(DropReason::BadOffline);
    assert_eq!(dropped, reply_2.len() as u64 - 17 + 1);
    steps.deliver_to_client(&replies);
    assert!(!steps.sent_by_client().is_empty(), "the client must continue its handshake");
}

/// Without a valid cookie, the server stores and computes nothing for a source, with any cookie policy.
#[test]
fn a_forged_source_causes_no_state_computation_or_amplification() {
    for cookies in [CookiePolicy::Required, CookiePolicy::Off, CookiePolicy::UnderLoad { unvalidated: 9 }] {
        let mut config = requiring_server();
        config.cookies = cookies;
        if let Some(security) = &mut config.security {
            // With a limit of zero, any computation would be counted as dropped.
            security.handshakes_per_second = 0;
        }
        let mut server = peer(config);
        let (mut sent, mut received) = (0, 0);
        for port in 1..2_000 {
            let from = ([203, 0, 113, 7], port).into();
            for length in [24, 32, 95, 96, 1_464] {
                let mut request_1 = written(&Offline::Request1 { protocol: 6, mtu: 1_492 });
                request_1.truncate(length);
                server.handle_datagram(NOW, from, &request_1);
                sent += length;
                let longest =
                    answers(&mut server, NOW).iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0);
                assert!(longest <= length, "{longest} bytes sent for {length} received");
                received += longest;
            }
            let challenge = ClientSecurity::Challenge { cookie: 7, challenge: &[9; 64] };
            for security in [ClientSecurity::None, ClientSecurity::Cookie(7), challenge] {
                server.handle_datagram(NOW, from, &request_2(security, port.into()));
                assert_eq!(answers(&mut server, NOW), []);
            }
        }
        assert!(received > 0 && received < sent);
        assert_eq!(server.connections().count(), 0, "{cookies:?}");
        assert_eq!(server.blocks_available(), server.blocks());
        assert_eq!(server.stats().dropped(DropReason::HandshakeLimit), 0, "{cookies:?}");
    }
}

/// Forged, modified, truncated and replayed datagrams have no effect on a secure connection.
#[test]
fn forged_datagrams_are_counted_and_ignored() {
    let mut net = net(secure_client(None), requiring_server(), Conditions::default(), 5);
    let (client, server) = net.open(&pinned());
    net.run_for(Duration::from_secs(1));
    net.pair.a.send(net.pair.now, client, b"\x86once", Delivery::UNRELIABLE).expect("free memory");
    let mut buffer = [0; 1_500];
    let sealed = net.pair.a.poll_transmit(net.pair.now, &mut buffer).expect("a datagram").payload.to_vec();
    let (now, from) = (net.now(), net.pair.a_address);
    let before = net.pair.b.stats().dropped(DropReason::Unauthentic);
    let mut forged = 0;
    for at in 0..sealed.len() {
        for bit in 0..8 {
            let mut changed = sealed.clone();
            changed[at] ^= 1 << bit;
            if changed[0] & 0x80 == 0 {
                continue;
            }
            net.pair.b.handle_datagram(now, from, &changed);
            forged += 1;
        }
        net.pair.b.handle_datagram(now, from, &sealed[..at]);
        forged += u64::from(at > 2);
    }
    // Unsealed datagrams of plain RakNet are dropped as well.
    for plain in [&[0x84, 0, 0, 0, 0x60, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0x15][..], &[0xC0, 0, 1, 1, 0, 0, 0]] {
        net.pair.b.handle_datagram(now, from, plain);
        forged += 1;
    }
    for control in [&[0x0A, 1][..], &[0x0B], &[0x0C], &[0x15]] {
        net.pair.b.handle_datagram(now, from, control);
        net.pair.a.handle_datagram(now, net.pair.b_address, control);
    }
    assert_eq!(net.pair.b.stats().dropped(DropReason::Unauthentic) - before, forged);
    for _ in 0..3 {
        net.pair.b.handle_datagram(now, from, &sealed);
    }
    assert_eq!(net.pair.b.stats().dropped(DropReason::Unauthentic) - before, forged + 2);
    net.run_for(Duration::from_secs(1));
    assert_eq!(messages(&net.server), [b"\x86once"]);
    net.pair.b.send(net.pair.now, server, b"\x86still", Delivery::RELIABLE).expect("free memory");
    net.run_for(Duration::from_secs(1));
    assert_eq!(messages(&net.client), [b"\x86still"]);
}

/// Only authenticated datagrams restart the idle timeout.
#[test]
fn forged_datagrams_do_not_keep_a_connection_alive() {
    let mut net = net(secure_client(None), requiring_server(), Conditions::default(), 6);
    let (client, _) = net.open(&pinned());
    net.pair.set_conditions(Conditions { loss: 1.0, ..Conditions::default() });
    net.pair.a.send(net.pair.now, client, b"\x86lost", Delivery::RELIABLE).expect("free memory");
    let lost = OwnedEvent::Disconnected(client, DisconnectReason::Lost);
    for _ in 0..200 {
        net.run_for(Duration::from_millis(100));
        let (now, from) = (net.now(), net.pair.b_address);
        net.pair.a.handle_datagram(now, from, &[0x84; 60]);
    }
    assert!(net.client.contains(&lost), "{:?}", net.client);
}

/// The tag of a sealed datagram counts towards the MTU, and no payload is sent in cleartext.
#[test]
fn sealed_datagrams_fit_the_mtu() {
    let mut config = secure_client(None);
    config.mtu = 576;
    let mut net = net(config, requiring_server(), Conditions::default(), 7);
    let (client, _) = net.open(&pinned());
    net.pair.a.send(net.pair.now, client, &[0x86; 9_000], Delivery::RELIABLE).expect("free memory");
    let mut buffer = [0; 1_500];
    let mut lengths = Vec::new();
    while let Some(transmit) = net.pair.a.poll_transmit(net.pair.now, &mut buffer) {
        assert!(transmit.payload.windows(4).all(|part| part != [0x86; 4]), "the payload must be encrypted");
        lengths.push(transmit.payload.len());
        let payload = transmit.payload.to_vec();
        net.pair.b.handle_datagram(net.pair.now, net.pair.a_address, &payload);
    }
    let longest = lengths.iter().max().copied().unwrap_or(0);
    assert!((500..=548).contains(&longest), "{lengths:?}");
    net.run_for(Duration::from_secs(5));
    assert_eq!(messages(&net.server), [[0x86; 9_000]]);
    assert_eq!(OVERHEAD, 19);
}

/// A challenge contains the version that the client offered first. If the server accepts that version, the message
/// "incompatible protocol version" was forged, so the server drops the challenge.
#[test]
fn a_forged_version_packet_causes_no_downgrade() {
    let mut client = peer({
        let mut config = secure_client(None);
        config.protocol_version = 11;
        config
    });
    client.connect_with(NOW, SERVER.into(), &pinned()).expect("a free slot");
    answers(&mut client, NOW);
    let mut server = peer(requiring_server());
    let forged = Offline::IncompatibleProtocol { protocol: 6, guid: server.config().guid };
    client.handle_datagram(NOW, SERVER.into(), &written(&forged));
    for _ in 0..4 {
        for (_, bytes) in answers(&mut client, NOW) {
            server.handle_datagram(NOW, CLIENT.into(), &bytes);
        }
        for (_, bytes) in answers(&mut server, NOW) {
            client.handle_datagram(NOW, SERVER.into(), &bytes);
        }
    }
    assert_eq!(server.stats().dropped(DropReason::Unauthentic), 1);
    assert_eq!(server.connections().count(), 0);

    // The next attempt does not start with the forged version.
    let later = NOW + MINUTE;
    client.handle_timeout(later);
    while client.poll_event().is_some() {}
    client.connect_with(later, SERVER.into(), &pinned()).expect("a free slot");
    let (_, request) = answers(&mut client, later).remove(0);
    let request = Offline::read(&mut Reader::new(&request));
    let Ok(Offline::Request1 { protocol, .. }) = request else { panic!("{request:02x?}") };
    assert_eq!(protocol, 11);
}

/// Each network has its own limit.
#[test]
fn secure_handshakes_are_rate_limited_per_network() {
    let mut config = requiring_server();
    config.max_incoming = 100;
    if let Some(security) = &mut config.security {
        security.handshakes_per_network = 2;
    }
    let mut server =
        Peer::with_capacity(Capacity { connections: 100, blocks: 4_096, block_size: 512 }, config);
    let mut opened = [0; 3];
    for (network, count) in opened.iter_mut().enumerate() {
        for host in 1..6 {
            let from = ([10, network as u8, 0, host], 7_000).into();
            let mut config = secure_client(None);
            config.guid = Guid(1_000 + u64::from(host) + 100 * network as u64);
            let mut client = peer(config);
            client.connect_with(NOW, SERVER.into(), &pinned()).expect("a free slot");
            for _ in 0..3 {
                for (_, bytes) in answers(&mut client, NOW) {
                    server.handle_datagram(NOW, from, &bytes);
                }
                for (_, bytes) in answers(&mut server, NOW) {
                    *count += usize::from(bytes.len() == 163);
                    client.handle_datagram(NOW, SERVER.into(), &bytes);
                }
            }
        }
    }
    assert_eq!(opened, [2; 3]);
    assert_eq!(server.stats().dropped(DropReason::HandshakeLimit), 9);
}

/// Returns the request 2 of a client with this configuration.
fn challenge_of(config: Config) -> Vec<u8> {
    let mut steps = Steps::new(requiring_server());
    steps.client = peer(config);
    steps.client.connect_with(NOW, SERVER.into(), &pinned()).expect("a free slot");
    steps.request_2()
}

/// Two peers with copies of one configuration would generate the same keys, so drivers mix different entropy into each
/// copy. The entropy that remains in the configuration of a peer does not reveal its keys.
#[test]
fn diversified_copies_of_a_configuration_generate_different_keys() {
    use rakwire::endpoint::Protocol;
    use rakwire::raknet::RakNet;

    let challenge = |entropy: Option<[u8; 32]>| {
        let mut config = secure_client(None);
        if let Some(entropy) = entropy {
            RakNet::mix_entropy(&mut config, &entropy);
        }
        challenge_of(config)
    };
    let used = peer(secure_client(None)).config().clone();
    assert_eq!(challenge(None), challenge(None));
    let all = [
        challenge(None),
        challenge(Some([0; 32])),
        challenge(Some([1; 32])),
        challenge(Some([2; 32])),
        challenge_of(used),
    ];
    for (index, one) in all.iter().enumerate() {
        assert!(all[..index].iter().all(|other| other != one));
    }
}

/// `Debug` output of configurations, connection options and peers contains public keys only.
#[test]
fn debug_output_contains_no_secret() {
    let mut security = Security::new([0xA7; 32]);
    security.identity = Some(client_key());
    security.server = Some(ServerIdentity::new(server_key()));
    let mut config = Config::new([0xA7; 32]);
    config.guid = Guid(1);
    config.security = Some(security);
    let key = client_key();
    let options = ConnectOptions { identity: Some(&key), password: &[0xA7; 20], ..pinned() };
    let other = rakwire::game_protocol::Config::new([0xA7; 32]);
    let text = format!("{config:?} {options:?} {other:?}");
    for shown in [server_key().public(), client_key().public()] {
        assert!(text.contains(&shown.to_string()), "{text}");
    }
    for shown in ["handshake_timeout: 10s", "identity_data: []", "challenges_per_second: 10000"] {
        assert!(text.contains(shown), "{text}");
    }
    let mut peer = peer(Config::new([0xA7; 32]));
    peer.set_password(&[0xA7; 20]).expect("a short password");
    let options = ConnectOptions { password: &[0xA7; 20], ..ConnectOptions::default() };
    peer.connect_with(NOW, SERVER.into(), &options).expect("a free slot");
    for text in [text, format!("{peer:?}")] {
        assert!(!text.contains("167") && !text.contains("rakwire-private-key"), "{text}");
    }
}

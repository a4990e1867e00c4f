//! Every reason for dropping received data, with bytes that trigger it or an explanation why none do.
//!
//! `attacks.rs` tests malformed data (attack A10).

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::{
    Capacity, Config, ConnectOptions, CookiePolicy, Delivery, DropReason, Guid, Peer, Reliability,
};
use rakwire::sim::Conditions;
use rakwire::wire::datagram::{CapsuleHeader, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope};
use rakwire::{Instant, U24};

use super::attacks::cookie;
use super::tokens;
use crate::support::forged::{UNKNOWN_SOURCE, answers, capsule, data, missing, request_2, written};
use crate::support::raknet::{Net, client_config, peer, server_config};
use crate::support::secure::{client_key, pinned, requiring_server, secure_client, secure_server};

const NOW: Instant = Instant::from_micros(1_000_000);
/// A number that is greater than all datagram and message numbers of the handshake.
const NEXT: u32 = 20;

/// Returns a source address in network number `network`.
fn source(network: u8, port: u16) -> SocketAddr {
    ([203, 0, network, 1], port).into()
}

/// Returns a server that received these datagrams and has sent no response yet.
fn sent(config: Config, datagrams: &[(SocketAddr, Vec<u8>)]) -> Peer<'static> {
    let mut server = peer(config);
    for (from, datagram) in datagrams {
        server.handle_datagram(NOW, *from, datagram);
    }
    server
}

fn sent_one(datagram: Vec<u8>) -> Peer<'static> {
    sent(server_config(), &[(UNKNOWN_SOURCE.into(), datagram)])
}

/// Returns a server that received these datagrams from the address of its client.
fn sent_in_connection(datagrams: &[Vec<u8>]) -> Peer<'static> {
    let mut net = Net::new(Conditions::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(500));
    deliver(&mut net, datagrams);
    net.pair.b
}

fn deliver(net: &mut Net, datagrams: &[Vec<u8>]) {
    let (now, from) = (net.now(), net.pair.a_address);
    for datagram in datagrams {
        net.pair.b.handle_datagram(now, from, datagram);
    }
}

/// Returns a datagram with a reliable message. Its datagram and message number is [`NEXT`] plus `ahead`.
fn message(ahead: u32, payload: &[u8]) -> Vec<u8> {
    data(NEXT + ahead, capsule(Reliability::Reliable, NEXT + ahead, 0), payload)
}

/// Returns the server after a client has tried to connect with `options`.
fn asked(mut net: Net, options: &ConnectOptions<'_>) -> Peer<'static> {
    net.dial(options);
    net.run_for(Duration::from_secs(1));
    net.pair.b
}

/// Returns a server that received requests 1 and 2 from each of `clients` clients at one IP address.
fn introduced(mut server: Peer<'static>, clients: u16) -> Peer<'static> {
    let request_1 = written(&Offline::Request1 { protocol: 6, mtu: 1_492 });
    for port in 1..=clients {
        server.handle_datagram(NOW, source(0, port), &request_1);
        answers(&mut server, NOW);
    }
    for port in 1..=clients {
        server.handle_datagram(NOW, source(0, port), &request_2(ClientSecurity::None, port.into()));
        answers(&mut server, NOW);
    }
    server
}

fn without_cookies() -> Config {
    let mut config = server_config();
    config.cookies = CookiePolicy::Off;
    config
}

/// Delivers ordered messages behind a missing one until one of them exceeds the server's memory.
fn without_memory() -> Net {
    let mut config = server_config();
    config.connection_blocks = Some(8);
    let mut net = Net::with(peer(client_config()), peer(config), Conditions::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(500));
    let waiting: Vec<_> = (100..120)
        .map(|number| data(number, capsule(Reliability::ReliableOrdered, number, number), &[0x86; 400]))
        .collect();
    deliver(&mut net, &waiting);
    net
}

/// Returns a server that received more secure handshakes from one network than its limit allows.
fn crowded_handshakes() -> Peer<'static> {
    let mut config = requiring_server();
    if let Some(security) = &mut config.security {
        security.handshakes_per_network = 1;
    }
    let mut server = peer(config);
    for number in 1..4 {
        let (from, mut config) = (source(0, number), secure_client(None));
        config.guid = Guid(1_000 + u64::from(number));
        let mut client = peer(config);
        client.connect_with(NOW, UNKNOWN_SOURCE.into(), &pinned()).expect("a free slot");
        for _ in 0..3 {
            for (_, bytes) in answers(&mut client, NOW) {
                server.handle_datagram(NOW, from, &bytes);
            }
            for (_, bytes) in answers(&mut server, NOW) {
                client.handle_datagram(NOW, UNKNOWN_SOURCE.into(), &bytes);
            }
        }
    }
    server
}

/// Returns two peers with so many datagrams in flight that a negative acknowledgement with 200 records of all numbers
/// exceeds the limit of lookups.
fn busy() -> Net {
    let conditions = Conditions { latency: Duration::from_millis(50), ..Conditions::default() };
    let mut net = Net::new(conditions, 1);
    let (_, server) = net.connect();
    net.run_for(Duration::from_millis(500));
    for _ in 0..2_000 {
        // The last messages may be refused for lack of memory.
        let _ = net.pair.b.send(net.pair.now, server, &[0x86; 1_300], Delivery::RELIABLE);
    }
    let wide =
        |net: &mut Net| net.pair.b.connection_stats(server).is_some_and(|stats| stats.in_flight > 60 * 1_300);
    assert!(
        net.run_until(Duration::from_secs(10), wide),
        "the congestion window stayed too small for the test"
    );
    net
}

/// A reason, and a server that dropped data for it.
type Sent = (DropReason, Peer<'static>);

/// Returns servers that received data from sources without a connection.
fn sent_from_outside() -> [Sent; 10] {
    use DropReason as Why;
    let ping = || written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) });
    let request_1 = || written(&Offline::Request1 { protocol: 6, mtu: 576 });
    [
        (Why::TooShort, sent_one(vec![0x84, 0])),
        (Why::BadOffline, sent_one(ping()[..20].to_vec())),
        (Why::UnknownSource, sent_one(message(0, b"\x86"))),
        (Why::Unexpected, sent_one(written(&Offline::Pong { time: 1, guid: Guid(2), data: b"pong" }))),
        (Why::BadCookie, sent_one(request_2(ClientSecurity::Cookie(7), 5))),
        (Why::MissingCookie, sent_one(request_2(ClientSecurity::None, 5))),
        (Why::WouldAmplify, sent_one(request_1()[..20].to_vec())),
        (Why::AnswersFull, {
            let requests: Vec<_> = (0..2_000).map(|number| (source(0, 1 + number), request_1())).collect();
            sent(server_config(), &requests)
        }),
        (Why::PongLimit, sent(server_config(), &vec![(UNKNOWN_SOURCE.into(), ping()); 1_000])),
        (Why::Banned, {
            let mut server = peer(server_config());
            let bans = server.bans_mut().expect("a ban list");
            bans.add("203.0.113.0/24".parse().expect("a pattern"), None).expect("a free entry");
            server.handle_datagram(NOW, UNKNOWN_SOURCE.into(), &request_1());
            server
        }),
    ]
}

/// Returns servers that received data from the address of a client.
fn sent_by_client() -> [Sent; 12] {
    use DropReason as Why;
    let part = |ahead: u32, count, index| {
        let split = Some(Split { count, id: 9, index });
        let header = CapsuleHeader { split, ..capsule(Reliability::Reliable, NEXT + ahead, 0) };
        data(NEXT + ahead, header, b"\x86")
    };
    let sequenced = |ahead: u32, sequence| {
        let header = capsule(Reliability::UnreliableSequenced, 0, 0);
        data(NEXT + ahead, CapsuleHeader { sequence: U24::new(sequence), ..header }, b"\x86")
    };
    [
        (Why::BadDatagram, {
            sent_in_connection(&[[&message(0, b"\x86")[..], &[0, 0xFF, 0xFF, 0x86]].concat()])
        }),
        (Why::DuplicateDatagram, sent_in_connection(&[message(0, b"\x86"), message(0, b"\x86")])),
        (Why::LostInDuplicate, {
            let mut net = without_memory();
            let other = data(100, capsule(Reliability::ReliableOrdered, 200, 200), &[0x86; 400]);
            deliver(&mut net, &[other]);
            net.pair.b
        }),
        (Why::OutsideWindow, sent_in_connection(&[message(60_000, b"\x86")])),
        (Why::DuplicateMessage, {
            let again = data(NEXT + 1, capsule(Reliability::Reliable, NEXT, 0), b"\x86");
            sent_in_connection(&[message(0, b"\x86"), again])
        }),
        (Why::OutOfSequence, sent_in_connection(&[sequenced(0, 5), sequenced(1, 3)])),
        (Why::NoMemory, without_memory().pair.b),
        (Why::BadSplit, sent_in_connection(&[part(0, 3, 0), part(1, 4, 1)])),
        (Why::BadControl, sent_in_connection(&[message(0, b"\x10")])),
        (Why::ReservedId, sent_in_connection(&[message(0, b"\x07")])),
        (Why::TooManyRecords, {
            let mut net = busy();
            deliver(&mut net, &[missing(0, 0xFF_FFFE, 200)]);
            net.pair.b
        }),
        (Why::Unauthentic, {
            let mut net =
                Net::with(peer(secure_client(None)), peer(requiring_server()), Conditions::default(), 1);
            net.open(&pinned());
            deliver(&mut net, &[[&message(0, b"\x86")[..], &[0; 40]].concat()]);
            net.pair.b
        }),
    ]
}

/// Returns servers that received data from new clients.
fn sent_by_newcomers() -> [Sent; 7] {
    use DropReason as Why;
    [
        (Why::CookieRequested, {
            let mut config = Config::new([2; 32]);
            config.max_incoming = 4;
            let capacity = Capacity { connections: 4, blocks: 4_096, block_size: 512 };
            introduced(Peer::with_capacity(capacity, config), 2)
        }),
        (Why::HalfOpenLimit, {
            let mut config = without_cookies();
            config.max_half_open_per_network = 3;
            introduced(peer(config), 4)
        }),
        (Why::AddressLimit, {
            let mut config = server_config();
            config.max_per_address = Some(1);
            let mut server = peer(config);
            for port in [1, 2] {
                let cookie = cookie(&mut server, NOW, source(0, port));
                let request = request_2(ClientSecurity::Cookie(cookie), port.into());
                server.handle_datagram(NOW, source(0, port), &request);
                answers(&mut server, NOW);
            }
            server
        }),
        (Why::HandshakeLimit, crowded_handshakes()),
        (Why::WrongPassword, {
            let mut net = Net::new(Conditions::default(), 1);
            net.pair.b.set_password(b"right").expect("a short password");
            asked(net, &ConnectOptions { password: b"wrong", ..ConnectOptions::default() })
        }),
        (Why::InvalidIdentity, {
            let server = secure_server(|identity| identity.requires_identity = true);
            let net = Net::with(peer(secure_client(None)), peer(server), Conditions::default(), 1);
            asked(net, &pinned())
        }),
        (Why::RefusedToken, {
            let server = tokens::server_with_tokens(&[1], &Default::default());
            let net = tokens::peers(secure_client(Some(client_key())), server);
            asked(net, &ConnectOptions { password: b"no token", ..pinned() })
        }),
    ]
}

/// Reasons that do not apply to received datagrams, and when they apply.
const OTHERS: [(DropReason, &str); 1] =
    [(DropReason::Expired, "applies to outgoing messages that wait too long")];

/// A new drop reason needs a server above that counts it, or an entry in `OTHERS`.
#[test]
fn every_drop_reason_is_counted_or_listed_as_an_exception() {
    let sent = [sent_from_outside().into(), sent_by_client().into(), sent_by_newcomers().into()];
    let sent: Vec<Sent> = sent.into_iter().flat_map(|sent: Vec<Sent>| sent).collect();
    for (reason, server) in &sent {
        assert!(server.stats().dropped(*reason) > 0, "{reason:?}: {:?}", server.stats());
    }
    let others = OTHERS.iter().map(|(reason, _)| *reason);
    let known: Vec<DropReason> = sent.iter().map(|(reason, _)| *reason).chain(others).collect();
    let missing: Vec<_> = DropReason::ALL.iter().filter(|reason| !known.contains(reason)).collect();
    assert!(
        missing.is_empty(),
        "add bytes that trigger {missing:?} to core/tests/it/raknet/drop_reasons.rs, or a reason to OTHERS"
    );
    assert_eq!(known.len(), DropReason::ALL.len());
}

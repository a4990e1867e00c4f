//! The handshakes of both protocols at a front: cookies, their keys, and the published datagrams. Also tests that the
//! front parses server keys as the library writes them.

use std::fmt::Debug;
use std::sync::Mutex;

use rakwire::secure::{KnownServer, PublicKey, ServerIdentity, ServerKeyField, StaticKey};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

#[test]
fn a_front_keeps_no_state_and_sends_the_server_nothing_before_the_cookie_returns() {
    let mut bench = Bench::raknet();
    for number in 0..1_000 {
        let from: SocketAddr = ([10, (number >> 8) as u8, number as u8, 1], 9).into();
        let request = bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 });
        let sent = bench.client(from, &request);
        assert!(sent.iter().all(|(to, reply)| *to == To::Client(from) && reply.len() <= request.len()));
        assert_eq!(bench.client(from, &request_2(number, 1_492)), []);
        assert_eq!(bench.client(from, &[0x84, 0, 0, 0]), []);
    }
    assert_eq!(bench.drops(FrontDropReason::BadCookie), 1_000);
    assert_eq!(bench.drops(FrontDropReason::UnknownSource), 1_000);
    assert_eq!(bench.counters.snapshot().opened, 0);
}

#[test]
fn the_front_repeats_the_handshake_with_the_server() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let sent = bench.client(from, &request_2(cookie, 1_400));
    let [(To::Server(id), request)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(read(request), Offline::Request1 { protocol: 11, mtu: 1_400 });
    assert_eq!(request.len(), 1_372);
    // A server may also require a cookie, and may propose a larger MTU than requested.
    let sent = bench.server(*id, &reply_1(ServerSecurity::Cookie(9), 1_431));
    let expected = Offline::Request2 {
        security: ClientSecurity::Cookie(9),
        server: address(SERVER),
        mtu: 1_400,
        guid: CLIENT,
    };
    assert_eq!(sent, [(To::Server(*id), bytes(&expected))]);
    // Connection datagrams pass only after reply 2.
    assert_eq!(bench.client(from, &[0x84, 0, 0, 0]), []);
    let sent = bench.server(*id, &reply_2(1_431));
    let expected = Offline::Reply2 { guid: SERVER_GUID, client: from, mtu: 1_400, answer: None };
    assert_eq!(sent, [(To::Client(from), bytes(&expected))]);
    assert_eq!(bench.client(from, &[0x84, 0, 0, 0]), [(To::Server(*id), vec![0x84, 0, 0, 0])]);
    assert_eq!(bench.server(*id, &[0xC0, 0, 1]), [(To::Client(from), vec![0xC0, 0, 1])]);
}

#[test]
fn losses_are_recovered_by_repeated_requests() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    // Request 1 of the front, or its reply, was lost.
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), first);
    let (To::Server(id), _) = first[0] else { panic!("{first:?}") };
    // Request 2 of the front, or its reply, was lost.
    let second = bench.server(id, &reply_1(ServerSecurity::None, 1_400));
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), second);
    // Reply 2 was lost in transit to the client.
    bench.server(id, &reply_2(1_400));
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), first);
    assert_eq!(bench.server(id, &reply_1(ServerSecurity::None, 1_400)), second);
    assert_eq!(bench.server(id, &reply_2(1_400)).len(), 1);
    assert_eq!(bench.counters.snapshot().opened, 1);
}

/// A restarted server drops a cookie from before its restart without an answer, and a client repeats request 2 forever.
#[test]
fn request_1_is_repeated_for_a_server_that_restarts_before_request_2() {
    let mut bench = Bench::raknet();
    // The flow has carried a connection, so that only a silent client would end it.
    let id = bench.open(client_address(1));
    let cookie = bench.cookie(client_address(1));
    let ask = |bench: &mut Bench| bench.client(client_address(1), &request_2(cookie, 1_492));
    assert!(matches!(read(&ask(&mut bench)[0].1), Offline::Request1 { .. }));
    bench.server(id, &reply_1(ServerSecurity::Cookie(9), 1_431));
    let repeated = ask(&mut bench);
    assert!(matches!(read(&repeated[0].1), Offline::Request2 { security: ClientSecurity::Cookie(9), .. }));
    assert!(matches!(read(&ask(&mut bench)[0].1), Offline::Request1 { .. }));
    let sent = bench.server(id, &reply_1(ServerSecurity::Cookie(10), 1_431));
    assert!(matches!(read(&sent[0].1), Offline::Request2 { security: ClientSecurity::Cookie(10), .. }));
}

#[test]
fn a_refusal_of_the_server_reaches_the_client_and_ends_the_flow() {
    let refused = bytes(&Offline::Refused { refusal: Refusal::Banned, guid: SERVER_GUID });
    let incompatible = bytes(&Offline::IncompatibleProtocol { protocol: 6, guid: SERVER_GUID });
    let failed = |guid| bytes(&Offline::Refused { refusal: Refusal::AttemptFailed, guid });
    let encrypted = bytes(&Offline::Reply2 {
        guid: SERVER_GUID,
        client: client_address(1),
        mtu: 1_400,
        answer: Some(&[3; 128]),
    });
    let key = reply_1(ServerSecurity::PublicKey { cookie: 9, key: &[1; 64] }, 1_400);
    let cases = [
        (refused.clone(), refused),
        (incompatible.clone(), incompatible),
        (encrypted, failed(SERVER_GUID)),
        (key, failed(raknet::Guid(0xF))),
    ];
    for (said, heard) in cases {
        let mut bench = Bench::raknet();
        let from = client_address(1);
        let cookie = bench.cookie(from);
        let sent = bench.client(from, &request_2(cookie, 1_400));
        let (To::Server(id), _) = sent[0] else { panic!("{sent:?}") };
        assert_eq!(bench.server(id, &said), [(To::Client(from), heard)]);
        assert_eq!(bench.front.poll_closed(), Some(id));
        assert_eq!(bench.counters.snapshot().flows, 0);
    }
}

/// Returns the key of a server of this library: the MTU, the flags, and the suite.
fn server_key(flags: u8) -> [u8; 64] {
    let mut key = [7; 64];
    key[2] = flags;
    key[3..8].copy_from_slice(b"rws01");
    key
}

/// Returns the front's output after reply 1 from a server with this key.
pub(super) fn answer_to(key: &[u8; 64]) -> Vec<u8> {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let sent = bench.client(from, &request_2(cookie, 1_400));
    let (To::Server(id), _) = sent[0] else { panic!("{sent:?}") };
    let sent = bench.server(id, &reply_1(ServerSecurity::PublicKey { cookie: 9, key }, 1_400));
    let [(_, answer)] = &sent[..] else { panic!("{sent:?}") };
    answer.clone()
}

#[test]
fn a_server_with_optional_security_accepts_plain_clients() {
    let plain = bytes(&Offline::Request2 {
        security: ClientSecurity::Cookie(9),
        server: address(SERVER),
        mtu: 1_400,
        guid: CLIENT,
    });
    let guid = raknet::Guid(0xF);
    let refused = bytes(&Offline::Refused { refusal: Refusal::AttemptFailed, guid });
    for flags in 0..=0xFF {
        let expected = if flags & 1 == 0 { &plain } else { &refused };
        assert_eq!(answer_to(&server_key(flags)), *expected, "flags {flags:#x}");
    }
    for at in 3..8 {
        let mut other = server_key(0);
        other[at] ^= 1;
        assert_eq!(answer_to(&other), refused, "byte {at} of another suite");
    }
}

#[test]
fn server_keys_of_the_library_are_parsed() {
    let guid = raknet::Guid(0xF);
    let refused = bytes(&Offline::Refused { refusal: Refusal::AttemptFailed, guid });
    for requires_security in [false, true] {
        for requires_identity in [false, true] {
            let server = KnownServer { key: PublicKey([7; 32]), next: None };
            let field = ServerKeyField { mtu: 1_400, requires_security, requires_identity, server };
            let answer = answer_to(&field.write());
            assert_eq!(answer == refused, requires_security, "{field:?}: {answer:?}");
            assert!(requires_security || matches!(read(&answer), Offline::Request2 { .. }), "{answer:?}");
        }
    }
}

/// The server has the security configuration that the library creates by default.
#[test]
fn a_default_security_configuration_accepts_plain_clients() {
    let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
    for is_required in [false, true] {
        identity.requires_security = is_required;
        let answer = answer_to(&identity.field(1_400));
        assert_eq!(matches!(read(&answer), Offline::Request2 { .. }), !is_required, "{answer:?}");
    }
}

fn bench() -> Bench {
    Bench::new(settings(FrontProtocol::GameProtocol))
}

const SALT: [u8; 4] = [0x49, 0x9E, 0xD2, 0x67];
const END: [u8; 4] = [0x0C, 0, 0, 0];

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}

pub(super) fn seasoning(bench: &mut Bench, from: SocketAddr) -> [u8; 4] {
    let sent = bench.client(from, &SALT);
    assert_eq!(sent[0].0, To::Client(from));
    (word(&SALT) ^ word(&sent[0].1)).to_be_bytes()
}

#[test]
fn a_salt_creates_no_state_and_a_valid_seasoning_opens_a_flow() {
    let mut bench = bench();
    let from = client_address(1);
    let answer = seasoning(&mut bench, from);
    assert_eq!(bench.counters.snapshot().opened, 0);
    assert_eq!(bench.client(client_address(2), &answer)[0].0, To::Client(client_address(2)));
    let sent = bench.client(from, &answer);
    let [(To::Server(id), salt)] = &sent[..] else { panic!("{sent:?}") };
    // In a packet header, this word would mean END.
    let pepper = [0xA8, 0xB2, 0xC3, 0xD4];
    let expected = (word(salt) ^ word(&pepper)).to_be_bytes().to_vec();
    assert_eq!(bench.server(*id, &pepper), [(To::Server(*id), expected)]);
    let packet = [5, 0, 0, 7, b'h', b'i'];
    assert_eq!(bench.client(from, &packet), [(To::Server(*id), packet.to_vec())]);
    assert_eq!(bench.server(*id, &packet), [(To::Client(from), packet.to_vec())]);
    // A repeated answer is ignored.
    assert_eq!(bench.client(from, &answer), []);
}

#[test]
fn a_finished_connection_is_replaced_by_the_next() {
    let mut bench = bench();
    let from = client_address(1);
    let answer = seasoning(&mut bench, from);
    let sent = bench.client(from, &answer);
    let (To::Server(first), _) = sent[0] else { panic!("{sent:?}") };
    bench.server(first, &[0xA1, 0xB2, 0xC3, 0xD4]);
    assert_eq!(bench.client(from, &END), [(To::Server(first), END.to_vec())]);
    let sent = bench.client(from, &answer);
    let (To::Server(second), _) = sent[0] else { panic!("{sent:?}") };
    assert!(second != first);
    assert_eq!(bench.front.poll_closed(), Some(first));
    // A server without a slot refuses immediately.
    assert_eq!(bench.server(second, &END), [(To::Client(from), END.to_vec())]);
    assert_eq!(bench.front.poll_closed(), Some(second));
}

#[test]
fn repeated_handshakes_do_not_flood_the_server() {
    let mut bench = bench();
    let from = client_address(1);
    let answer = seasoning(&mut bench, from);
    let salts: usize = (0..1_000).map(|_| bench.client(from, &answer).len()).sum();
    assert_eq!(salts, Handshake::default().datagrams as usize);
    assert_eq!(bench.counters.snapshot().flows, 1);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.client(from, &answer).len(), 1);
}

#[test]
fn packets_of_unknown_clients_are_dropped() {
    let mut bench = bench();
    for datagram in [&END[..], &[1, 2], &[5, 0, 0, 7, 1]] {
        assert_eq!(bench.client(client_address(1), datagram), []);
    }
    assert_eq!(bench.drops(FrontDropReason::UnknownSource), 3);
    // A salt may look like a header.
    assert_eq!(bench.client(client_address(1), &[5, 0, 0, 7]).len(), 1);
}

#[test]
fn a_cookie_is_bound_to_its_client_and_expires() {
    let mut bench = Bench::raknet();
    let cookie = bench.cookie(client_address(1));
    assert_eq!(bench.client(client_address(2), &request_2(cookie, 1_400)), []);
    bench.wait(Duration::from_secs(10));
    assert_eq!(bench.client(client_address(1), &request_2(cookie, 1_400)), []);
    assert_eq!(bench.drops(FrontDropReason::BadCookie), 2);
}

/// The client may lack cookie support, which is logged once.
#[test]
fn a_missing_cookie_is_counted_separately_and_logged_once() {
    let lines = Lines::default();
    let mut bench = Bench::raknet();
    tracing::subscriber::with_default(lines.clone(), || {
        for number in 1..=3 {
            let from = client_address(number);
            bench.cookie(from);
            let (security, server) = (ClientSecurity::None, address(FRONT));
            let request = Offline::Request2 { security, server, mtu: 1_400, guid: CLIENT };
            assert_eq!(bench.client(from, &bytes(&request)), []);
        }
    });
    assert_eq!(bench.drops(FrontDropReason::MissingCookie), 3);
    assert_eq!(bench.drops(FrontDropReason::BadCookie), 0);
    let lines = lines.0.lock().unwrap();
    assert!(matches!(&lines[..], [line] if line.contains("without returning its cookie")), "{lines:?}");
}

/// The lines of a log. `ops::Lines` does the same in the relay; the fuzz targets include the front and its tests by
/// path, without `ops` and its dependencies.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line with its fields appended.
#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{value:?} "));
    }
}

/// The datagrams of docs/udp-front.md.
#[test]
fn front_datagrams_match_the_published_examples() {
    let keys = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
    let mut bench = Bench::new(Settings { keys, ..settings(FrontProtocol::RakNet) });
    bench.pongs.learn(PingScope::Any, Pong { guid: 5, data: Vec::new(), at: bench.now.at, latency: None });
    let from = address("192.0.2.1:19132");
    let reply = "0600ffff00fefefefefdfdfdfd12345678000000000000000501f41a5c7e05d4";
    let sent = bench.client(from, &bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 }));
    assert_eq!(sent, [(To::Client(from), hex(reply))]);
    let request = "0700ffff00fefefefefdfdfdfd12345678f41a5c7e00043ffffd9b4abc05d4000000000000000c";
    let sent = bench.client(from, &hex(request));
    assert!(matches!(sent[..], [(To::Server(_), _)]), "{sent:?}");
    assert_eq!(hex(request), request_2(0xF41A_5C7E, 1_492));
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn a_clock_jump_costs_one_more_round_trip() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    bench.now.wall -= Duration::from_secs(3_600);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), []);
    let cookie = bench.cookie(from);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)).len(), 1);
}

#[test]
fn clients_connect_during_a_key_rotation() {
    let mut bench = Bench::raknet();
    let cookie = bench.cookie(client_address(1));
    bench
        .front
        .set_keys("11111111111111111111111111111111\n07070707070707070707070707070707".parse().unwrap());
    assert_eq!(bench.client(client_address(1), &request_2(cookie, 1_400)).len(), 1);
    bench.front.set_keys("11111111111111111111111111111111".parse().unwrap());
    assert_eq!(bench.client(client_address(2), &request_2(cookie, 1_400)), []);
}

//! The handshake of RakNet at a front.

use super::*;

#[test]
fn nothing_is_kept_and_nothing_reaches_the_server_before_a_cookie_comes_back() {
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
fn the_handshake_with_the_server_is_that_of_the_client() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let sent = bench.client(from, &request_2(cookie, 1_400));
    let [(To::Server(id), request)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(read(request), Offline::Request1 { protocol: 11, mtu: 1_400 });
    assert_eq!(request.len(), 1_372);
    // A server may want a cookie itself, and may propose more than was asked for.
    let sent = bench.server(*id, &reply_1(ServerSecurity::Cookie(9), 1_431));
    let expected = Offline::Request2 {
        security: ClientSecurity::Cookie(9),
        server: address(SERVER),
        mtu: 1_400,
        guid: CLIENT,
    };
    assert_eq!(sent, [(To::Server(*id), bytes(&expected))]);
    // Datagrams of a connection pass only now.
    assert_eq!(bench.client(from, &[0x84, 0, 0, 0]), []);
    let sent = bench.server(*id, &reply_2(1_431));
    let expected = Offline::Reply2 { guid: SERVER_GUID, client: from, mtu: 1_400, answer: None };
    assert_eq!(sent, [(To::Client(from), bytes(&expected))]);
    assert_eq!(bench.client(from, &[0x84, 0, 0, 0]), [(To::Server(*id), vec![0x84, 0, 0, 0])]);
    assert_eq!(bench.server(*id, &[0xC0, 0, 1]), [(To::Client(from), vec![0xC0, 0, 1])]);
}

#[test]
fn whatever_is_lost_is_made_up_for_by_the_client_that_repeats_its_request() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    // Request 1 of the front, or the reply to it, was lost.
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), first);
    let (To::Server(id), _) = first[0] else { panic!("{first:?}") };
    // Request 2 of the front, or the reply to it, was lost.
    let second = bench.server(id, &reply_1(ServerSecurity::None, 1_400));
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), second);
    // Reply 2 was lost on its way to the client.
    bench.server(id, &reply_2(1_400));
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), first);
    assert_eq!(bench.server(id, &reply_1(ServerSecurity::None, 1_400)), second);
    assert_eq!(bench.server(id, &reply_2(1_400)).len(), 1);
    assert_eq!(bench.counters.snapshot().opened, 1);
}

#[test]
fn what_a_server_refuses_reaches_the_client_and_ends_the_flow() {
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

/// The key of a server of this library: the MTU, the flags, and the suite.
fn server_key(flags: u8) -> [u8; 64] {
    let mut key = [7; 64];
    key[2] = flags;
    key[3..8].copy_from_slice(b"rws01");
    key
}

/// What follows on the reply 1 of a server with this key.
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
fn a_server_that_only_offers_security_lets_plain_clients_in() {
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

//! What a server is told of the address of a client.

use super::*;

/// What a server that reads the PROXY protocol gets before a datagram of this client.
fn header(client: SocketAddr) -> Vec<u8> {
    let mut header = Vec::new();
    ProxyHeader { client, server: address(SERVER) }.write(&mut header);
    header
}

#[test]
fn a_server_is_told_the_address_of_the_client_until_it_has_answered() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    let (To::Server(id), announced) = &first[0] else { panic!("{first:?}") };
    let request = bytes(&Offline::Request1 { protocol: 11, mtu: 1_400 });
    assert_eq!(*announced, [header(from), request.clone()].concat());
    // A server that drops the datagram with the header gets some without it.
    for repetition in 1..=8 {
        let again = bench.client(from, &request_2(cookie, 1_400));
        let expected = if repetition % 4 == 0 { announced } else { &request };
        assert_eq!(again, [(To::Server(*id), expected.clone())], "repetition {repetition}");
    }
    let second = bench.server(*id, &reply_1(ServerSecurity::None, 1_400));
    let (_, request) = &second[0];
    assert!(matches!(read(request), Offline::Request2 { .. }), "no header any more: {request:?}");
}

#[test]
fn a_header_that_was_not_sent_is_before_the_next_datagram() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    let (To::Server(id), _) = first[0] else { panic!("{first:?}") };
    bench.front.handle_unsent(id);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), first);
    assert_ne!(bench.client(from, &request_2(cookie, 1_400)), first);
}

#[test]
fn the_mtu_leaves_room_for_the_header() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    for (from, header, mtu) in [(client_address(1), 28, 1_464), (address("[2001:db8::1]:5"), 52, 1_440)] {
        let sent = bench.client(from, &bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 }));
        let reply = read(&sent[0].1);
        let Offline::Reply1 { security: ServerSecurity::Cookie(cookie), mtu: offered, .. } = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(offered, mtu);
        let sent = bench.client(from, &request_2(cookie, 1_492));
        assert_eq!(sent[0].1.len(), MAX_DATAGRAM, "with a header of {header} bytes");
    }
}

#[test]
fn a_server_of_the_game_protocol_is_told_the_address_of_the_client_too() {
    let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let salt = game_protocol::wire::HandshakeWord(0x4123_4567);
    let challenge = bench.client(from, &salt.0.to_be_bytes());
    let pepper = game_protocol::wire::HandshakeWord::read(&challenge[0].1).unwrap();
    let begun = bench.client(from, &salt.season(pepper).0.to_be_bytes());
    let (To::Server(id), announced) = &begun[0] else { panic!("{begun:?}") };
    assert_eq!((announced.len(), &announced[..28]), (32, &header(from)[..]));
    let seasoned = bench.server(*id, &[0x40, 1, 2, 3]);
    assert_eq!(seasoned[0].1.len(), 4, "no header any more");
}

#[test]
fn a_packet_of_a_client_that_begins_like_a_proxy_header_is_dropped() {
    let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let id = bench.open_game_protocol(from);
    let forged = [&header(address("10.0.0.1:1"))[..], b"payload"].concat();
    assert_eq!(bench.client(from, &forged), []);
    assert_eq!(bench.front.counters.snapshot().drops(FrontDropReason::ForgedHeader), 1);
    assert_eq!(bench.client(from, &forged[1..]), [(To::Server(id), forged[1..].to_vec())]);
}

#[test]
fn a_server_that_may_have_started_again_is_told_the_address_of_a_client_that_begins_anew() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    let (To::Server(id), _) = first[0] else { panic!("{first:?}") };
    bench.server(id, &reply_1(ServerSecurity::None, 1_400));
    bench.server(id, &reply_2(1_400));
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), first);
}

#[test]
fn a_server_that_has_been_silent_is_told_the_address_of_the_client_again() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    let (To::Server(id), _) = first[0] else { panic!("{first:?}") };
    bench.server(id, &reply_1(ServerSecurity::None, 1_400));
    bench.server(id, &reply_2(1_400));
    let connected = b"\x84\0\0\0message";
    assert_eq!(bench.client(from, connected), [(To::Server(id), connected.to_vec())]);
    bench.server(id, connected);
    bench.wait(Duration::from_secs(10));
    // A client that was silent itself gets no answer either.
    for _ in 0..2 {
        assert_eq!(bench.client(from, connected), [(To::Server(id), connected.to_vec())]);
        bench.wait(Duration::from_secs(4));
    }
    bench.wait(Duration::from_secs(1));
    let announced = [&header(from)[..], connected].concat();
    assert_eq!(bench.client(from, connected), [(To::Server(id), announced)]);
    // The MTU was agreed on without a header.
    let longest = [&[0x84; 1][..], &[0; 1_471]].concat();
    assert_eq!(bench.client(from, &longest), [(To::Server(id), longest.clone())]);
    bench.server(id, connected);
    assert_eq!(bench.client(from, connected), [(To::Server(id), connected.to_vec())]);
}

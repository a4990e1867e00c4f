use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::Guid;
use rakwire::wire::offline::{ClientSecurity, Refusal as ServerRefusal, ServerSecurity};
use rakwire::wire::{IP_UDP_OVERHEAD, Writer};

use super::*;
use crate::protocol::PONG_LIFETIME;

const GUID: Guid = Guid(7);
const CONNECTED: [u8; 8] = [0x84, 0, 0, 0, 0, 0, 8, 0xFE];

fn address() -> SocketAddr {
    "192.0.2.1:19132".parse().unwrap()
}

fn bytes(message: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer).unwrap();
    writer.finish().to_vec()
}

fn ping(scope: PingScope, time: u64) -> Vec<u8> {
    bytes(&Offline::Ping { scope, time, guid: Some(GUID) })
}

fn pong(time: u64) -> Vec<u8> {
    bytes(&Offline::Pong { time, guid: GUID, data: b"MCPE;a" })
}

fn request_1(mtu: u16) -> Vec<u8> {
    bytes(&Offline::Request1 { protocol: 11, mtu })
}

fn reply_2() -> Vec<u8> {
    bytes(&Offline::Reply2 { guid: GUID, client: address(), mtu: 1_400, answer: None })
}

fn flow(handshake: Handshake) -> (RakNetFlow, Instant) {
    let now = Instant::now();
    (RakNetFlow::new(&handshake, Arc::default(), now), now)
}

#[test]
fn only_pings_and_requests_pass_until_reply_2() {
    let (mut flow, now) = flow(Handshake::default());
    let request_2 =
        Offline::Request2 { security: ClientSecurity::None, server: address(), mtu: 1_400, guid: GUID };
    for datagram in [ping(PingScope::Any, 1), request_1(1_492), bytes(&request_2)] {
        assert_eq!(flow.handle_client(now, &datagram), Verdict::Pass(Change::None));
    }
    let refused = [
        CONNECTED.to_vec(),
        Vec::new(),
        vec![0x05; 20],
        bytes(&Offline::OutOfBand { guid: GUID, data: b"x" }),
        pong(1),
        reply_2(),
        bytes(&Offline::Refused { refusal: ServerRefusal::Banned, guid: GUID }),
        bytes(&Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_400 }),
    ];
    for datagram in &refused {
        assert_eq!(flow.handle_client(now, datagram), Verdict::Drop(Refusal::NoHandshake), "{datagram:02x?}");
    }
    // Nothing but reply 2 opens the flow.
    let before = [
        bytes(&Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_400 }),
        pong(1),
        CONNECTED.to_vec(),
        bytes(&Offline::Refused { refusal: ServerRefusal::Banned, guid: GUID }),
    ];
    for datagram in &before {
        assert_eq!(flow.handle_server(now, datagram), Change::None);
        assert!(!flow.is_open(), "{datagram:02x?}");
    }
    assert_eq!(flow.handle_server(now, &reply_2()), Change::None);
    for datagram in &refused {
        assert_eq!(flow.handle_client(now, datagram), Verdict::Pass(Change::None), "{datagram:02x?}");
    }
}

#[test]
fn the_handshake_is_held_to_its_budget() {
    let handshake = Handshake { datagrams: 5, bytes: 4_000, ..Handshake::default() };
    let (mut flow, now) = flow(handshake);
    let sent: Vec<_> = (0..4).map(|_| flow.handle_client(now, &request_1(1_492))).collect();
    let (pass, drop) = (Verdict::Pass(Change::None), Verdict::Drop(Refusal::HandshakeBudget));
    assert_eq!(sent, [pass.clone(), pass.clone(), drop.clone(), drop.clone()]);
    let pings = (0..9).filter(|_| flow.handle_client(now, &ping(PingScope::Any, 1)) == pass).count();
    assert_eq!(pings, 3);
    // A budget fills up again, and an open flow has none.
    assert_eq!(flow.handle_client(now + Duration::from_secs(8), &request_1(1_492)), pass);
    let _ = flow.handle_server(now, &reply_2());
    assert!((0..99).all(|_| flow.handle_client(now, &request_1(1_492)) == pass));
}

#[test]
fn a_request_that_is_cut_costs_what_passes_of_it() {
    let handshake = Handshake { payload_max: 1_000, bytes: 4_000, ..Handshake::default() };
    let (mut flow, now) = flow(handshake);
    for _ in 0..4 {
        assert_eq!(flow.handle_client(now, &request_1(1_492)), Verdict::Pass(Change::Cut(1_000)));
    }
    assert_eq!(flow.handle_client(now, &request_1(1_492)), Verdict::Drop(Refusal::HandshakeBudget));
}

#[test]
fn the_mtu_is_clamped_in_both_directions() {
    let (mut flow, now) = flow(Handshake { payload_max: 1_200, ..Handshake::default() });
    let mtu = 1_200 + IP_UDP_OVERHEAD;
    let reply = bytes(&Offline::Reply1 { guid: GUID, security: ServerSecurity::Cookie(1), mtu: 1_431 });
    assert_eq!(flow.handle_server(now, &reply), Change::Mtu { at: 30, mtu });
    let request =
        Offline::Request2 { security: ClientSecurity::Cookie(1), server: address(), mtu: 1_431, guid: GUID };
    assert_eq!(flow.handle_client(now, &bytes(&request)), Verdict::Pass(Change::Mtu { at: 29, mtu }));
    assert_eq!(flow.handle_server(now, &reply_2()), Change::Mtu { at: 32, mtu });
}

#[test]
fn pings_are_answered_from_the_pong_of_another_flow() {
    let pongs = Arc::new(PongCache::default());
    let now = Instant::now();
    let new = || RakNetFlow::new(&Handshake::default(), Arc::clone(&pongs), now);
    let (mut first, mut second) = (new(), new());
    assert_eq!(first.handle_client(now, &ping(PingScope::Any, 5)), Verdict::Pass(Change::None));
    assert_eq!(first.handle_server(now, &pong(5)), Change::None);
    assert_eq!(second.handle_client(now, &ping(PingScope::Any, 6)), Verdict::Answer(pong(6)));
    assert_eq!(second.handle_client(now, &ping(PingScope::OpenConnections, 6)), Verdict::Pass(Change::None));
    let later = now + PONG_LIFETIME;
    assert_eq!(second.handle_client(later, &ping(PingScope::Any, 7)), Verdict::Pass(Change::None));
}

#[test]
fn a_pong_tells_of_room_only_if_it_answers_that_question() {
    for (sent, answered, has_room) in [(5, 5, true), (5, 6, false)] {
        let (mut flow, now) = flow(Handshake::default());
        let open = |time| ping(PingScope::OpenConnections, time);
        assert_eq!(flow.handle_client(now, &open(sent)), Verdict::Pass(Change::None));
        let _ = flow.handle_server(now, &pong(answered));
        let expected = if has_room { Verdict::Answer(pong(9)) } else { Verdict::Pass(Change::None) };
        assert_eq!(flow.handle_client(now, &open(9)), expected);
    }
}

#[test]
fn the_server_is_told_of_a_client_that_has_gone_in_its_next_datagram() {
    let (mut flow, now) = flow(Handshake::default());
    flow.handle_server(now, &reply_2());
    assert_eq!(flow.parting(), None, "the client has sent nothing that the server could follow");
    flow.handle_client(now, &[0x84, 0xFF, 0xFF, 0x00, 0, 0, 8, 0xFE]);
    // An acknowledgement has no number.
    flow.handle_client(now, &[0xC0, 0, 1, 1, 7, 0, 0]);
    assert_eq!(flow.parting().unwrap(), [0x84, 0, 0, 1, 0, 0, 8, 0x15]);
}

#[test]
fn a_server_that_has_accepted_nobody_is_told_nothing() {
    let (mut flow, now) = flow(Handshake::default());
    flow.handle_client(now, &request_1(1_492));
    flow.handle_client(now, &CONNECTED);
    assert_eq!(flow.parting(), None);
}

/// Data channels and WebTransport reorder, and a server drops a number that it has had.
#[test]
fn the_disconnect_for_a_client_has_a_number_of_its_own_behind_reordered_datagrams() {
    let (mut flow, now) = flow(Handshake::default());
    flow.handle_server(now, &reply_2());
    let data = |number: u8| [0x84, number, 0, 0, 0, 0, 8, 0xFE];
    for number in [0, 1, 5, 3, 4, 1] {
        flow.handle_client(now, &data(number));
    }
    assert_eq!(flow.parting().unwrap()[..4], [0x84, 6, 0, 0]);
    // Numbers wrap around.
    flow.handle_server(now, &reply_2());
    for number in [[0xFF, 0xFF, 0xFF], [0xFE, 0xFF, 0xFF], [0, 0, 0], [0xFF, 0xFF, 0xFF]] {
        flow.handle_client(now, &[&[0x84][..], &number, &[0, 0, 8, 0xFE]].concat());
    }
    assert_eq!(flow.parting().unwrap()[..4], [0x84, 1, 0, 0]);
}

/// A client that connects again on its flow begins with another number.
#[test]
fn the_disconnect_for_a_client_follows_its_latest_connection() {
    let (mut flow, now) = flow(Handshake::default());
    flow.handle_server(now, &reply_2());
    flow.handle_client(now, &[0x84, 9, 0, 0, 0, 0, 8, 0xFE]);
    flow.handle_server(now, &reply_2());
    flow.handle_client(now, &[0x84, 0, 0, 0, 0, 0, 8, 0xFE]);
    assert_eq!(flow.parting().unwrap()[..4], [0x84, 1, 0, 0]);
}

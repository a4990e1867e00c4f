//! The handshake of the Game Protocol at a front.

use super::*;

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
fn a_salt_leaves_nothing_and_the_answer_opens_a_flow() {
    let mut bench = bench();
    let from = client_address(1);
    let answer = seasoning(&mut bench, from);
    assert_eq!(bench.counters.snapshot().opened, 0);
    assert_eq!(bench.client(client_address(2), &answer)[0].0, To::Client(client_address(2)));
    let sent = bench.client(from, &answer);
    let [(To::Server(id), salt)] = &sent[..] else { panic!("{sent:?}") };
    // One with the bit that is END in a header.
    let pepper = [0xA8, 0xB2, 0xC3, 0xD4];
    let expected = (word(salt) ^ word(&pepper)).to_be_bytes().to_vec();
    assert_eq!(bench.server(*id, &pepper), [(To::Server(*id), expected)]);
    let packet = [5, 0, 0, 7, b'h', b'i'];
    assert_eq!(bench.client(from, &packet), [(To::Server(*id), packet.to_vec())]);
    assert_eq!(bench.server(*id, &packet), [(To::Client(from), packet.to_vec())]);
    // A repeated answer means nothing.
    assert_eq!(bench.client(from, &answer), []);
}

#[test]
fn a_connection_that_is_over_makes_way_for_the_next_one() {
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
    // A server without a place says so at once.
    assert_eq!(bench.server(second, &END), [(To::Client(from), END.to_vec())]);
    assert_eq!(bench.front.poll_closed(), Some(second));
}

#[test]
fn a_client_that_begins_again_and_again_does_not_make_the_front_flood_the_server() {
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
fn packets_of_unknown_clients_go_nowhere() {
    let mut bench = bench();
    for datagram in [&END[..], &[1, 2], &[5, 0, 0, 7, 1]] {
        assert_eq!(bench.client(client_address(1), datagram), []);
    }
    assert_eq!(bench.drops(FrontDropReason::UnknownSource), 3);
    // A salt may look like a header.
    assert_eq!(bench.client(client_address(1), &[5, 0, 0, 7]).len(), 1);
}

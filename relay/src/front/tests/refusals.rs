//! Servers that refuse, and clients that ask again at once.

use super::bounds::bytes_to_server;
use super::*;

/// What a client makes the front send to a server that refuses it each time: datagrams and bytes.
fn sent_to_refusing_server(
    bench: &mut Bench,
    from: SocketAddr,
    proof: &[u8],
    refusal: &[u8],
) -> (usize, usize) {
    let mut sent_in_all = (0, 0);
    for _ in 0..1_000 {
        let sent = bench.client(from, proof);
        let Some((To::Server(id), _)) = sent.first() else { continue };
        sent_in_all = (sent_in_all.0 + sent.len(), sent_in_all.1 + bytes_to_server(&sent));
        assert_eq!(bench.server(*id, refusal), [(To::Client(from), refusal.to_vec())]);
        assert_eq!(bench.front.poll_closed(), Some(*id));
    }
    assert_eq!(bench.counters.snapshot().flows, 0);
    sent_in_all
}

#[test]
fn a_client_that_is_refused_again_and_again_has_one_budget() {
    let budget = Handshake::default();
    let (all, from) = (budget.bytes as usize, client_address(1));
    let mut bench = Bench::raknet();
    let request = request_2(bench.cookie(from), 1_492);
    let refusal = bytes(&Offline::IncompatibleProtocol { protocol: 6, guid: SERVER_GUID });
    let (_, at_once) = sent_to_refusing_server(&mut bench, from, &request, &refusal);
    assert!((all - 1_464..=all).contains(&at_once), "{at_once} bytes");
    let begun = (at_once / 1_464) as u64;
    assert_eq!(bench.counters.snapshot().opened, begun, "no place without a budget");
    assert_eq!(bench.drops(FrontDropReason::HandshakeBudget), 1_000 - begun);
    // Others have theirs, and what was taken comes back.
    let other = client_address(2);
    let cookie = bench.cookie(other);
    let sent = bench.client(other, &request_2(cookie, 1_492));
    assert!(matches!(sent[..], [(To::Server(_), _)]), "{sent:?}");
    let id = bench.front.flows.find(other).unwrap();
    bench.front.close(id);
    assert_eq!(bench.front.poll_closed(), Some(id));
    bench.wait(budget.refill / 4);
    let (_, later) = sent_to_refusing_server(&mut bench, from, &request, &refusal);
    assert!(later > 0 && later <= all / 4 + 1_464, "{later} bytes");
}

#[test]
fn a_client_that_a_server_of_the_game_protocol_refuses_has_one_budget() {
    let from = client_address(1);
    let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
    let proof = game_protocol_handshake::seasoning(&mut bench, from);
    let (datagrams, _) = sent_to_refusing_server(&mut bench, from, &proof, &[0x0C, 0, 0, 0]);
    assert_eq!(datagrams, Handshake::default().datagrams as usize);
}

/// The flow that makes room was one of the same client.
#[test]
fn a_client_whose_flow_makes_room_has_no_new_budget() {
    let mut bench = Bench::raknet();
    bench.front.admission.max = 1;
    let [one, two] = [1, 2].map(client_address);
    let requests = [one, two].map(|from| (from, request_2(bench.cookie(from), 1_492)));
    let mut sent = 0;
    for _ in 0..1_000 {
        for (from, request) in &requests {
            sent += bytes_to_server(&bench.client(*from, request));
        }
        while bench.front.poll_closed().is_some() {}
    }
    assert!(sent <= 2 * Handshake::default().bytes as usize, "{sent} bytes of two clients");
}

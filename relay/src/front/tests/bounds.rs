//! Limits on the work and state that clients can cause at a front. Also tests servers that refuse, clients that retry
//! immediately, PROXY headers, and the table of marks at the front. The marks use the Game Protocol, because a RakNet
//! front forwards only RakNet.

use super::marks::{MarkOutcome, marks};
use super::*;

#[test]
fn admission_bounds_the_number_of_flows() {
    let mut bench = Bench::raknet();
    let ids: Vec<_> = (0..3).map(|number| bench.open(client_address(number))).collect();
    let cookie = bench.cookie(client_address(9));
    let sent = bench.client(client_address(9), &request_2(cookie, 1_400));
    let full = Offline::Refused { refusal: Refusal::NoFreeIncomingConnections, guid: raknet::Guid(0xF) };
    assert_eq!(sent, [(To::Client(client_address(9)), bytes(&full))]);
    assert_eq!(bench.drops(FrontDropReason::NotAdmitted), 1);
    // A flow that ends releases its permit.
    bench.front.close(ids[0]);
    assert_eq!(bench.front.poll_closed(), Some(ids[0]));
    assert!(matches!(bench.client(client_address(9), &request_2(cookie, 1_400))[..], [(To::Server(_), _)]));
}

#[test]
fn a_client_waiting_for_a_slot_gets_no_answer_and_retries() {
    for protocol in [FrontProtocol::RakNet, FrontProtocol::GameProtocol] {
        let mut bench = Bench::new(settings(protocol));
        (bench.front.admission.max, bench.front.admission.denied) = (0, NotAdmitted::Later);
        let from = client_address(1);
        let proof = match protocol {
            FrontProtocol::RakNet => request_2(bench.cookie(from), 1_400),
            FrontProtocol::GameProtocol => handshakes::seasoning(&mut bench, from).to_vec(),
        };
        assert_eq!(bench.client(from, &proof), []);
        assert_eq!(bench.drops(FrontDropReason::NotAdmitted), 1);
        bench.front.admission.max = 1;
        assert!(matches!(bench.client(from, &proof)[..], [(To::Server(_), _)]));
    }
}

#[test]
fn the_oldest_half_open_flow_is_evicted_for_an_admitted_client() {
    let mut bench = Bench::raknet();
    let open = bench.open(client_address(0));
    let mut begin = |client| {
        let cookie = bench.cookie(client);
        let sent = bench.client(client, &request_2(cookie, 1_400));
        (sent[0].0, bench.front.poll_closed())
    };
    let (oldest, none) = begin(client_address(1));
    assert_eq!((begin(client_address(2)).1, none), (None, None));
    let banned = SocketAddr::from((BANNED, 9));
    assert_eq!(begin(banned), (To::Client(banned), None), "a refused client evicts no flow");
    let (_, closed) = begin(client_address(8));
    assert_eq!(closed.map(To::Server), Some(oldest));
    assert!(bench.front.flows.get(open).is_some());
}

#[test]
fn a_client_of_the_front_is_limited_to_its_rate() {
    let mut bench = Bench::raknet();
    let rate = Rate { datagrams: NonZeroUsize::new(5).unwrap(), bytes: NonZeroUsize::new(1_000).unwrap() };
    bench.front.admission.rate = Some(rate);
    let from = client_address(1);
    let id = bench.open(from);
    let batch = [0x84; 80];
    let passed = bench.client_batch(from, &batch, 10);
    assert_eq!(passed, vec![(To::Server(id), vec![0x84; 10]); 5]);
    assert_eq!(bench.drops(FrontDropReason::RateLimited), 3);
    // Out-of-band messages count, too.
    let ping = bytes(&Offline::OutOfBand { guid: CLIENT, data: b"text" });
    assert_eq!(bench.client(from, &ping), []);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.client(from, &[0x84; 10]).len(), 1);
}

pub(super) fn bytes_to_server(sent: &[(To, Vec<u8>)]) -> usize {
    sent.iter().filter(|(to, _)| matches!(to, To::Server(_))).map(|(_, datagram)| datagram.len()).sum()
}

/// The client's datagrams are shorter than the datagrams that the front sends to the server on the client's behalf.
#[test]
fn repeated_requests_do_not_flood_the_server() {
    let budget = Handshake::default();
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let ask = |bench: &mut Bench| {
        let sent: Vec<Sent> = (0..1_000).map(|_| bench.client(from, &request_2(cookie, 1_492))).collect();
        sent.iter().map(|sent| bytes_to_server(sent)).sum::<usize>()
    };
    let at_once = ask(&mut bench);
    assert!((budget.bytes as usize - 1_464..=budget.bytes as usize).contains(&at_once), "{at_once} bytes");
    assert_eq!(bench.drops(FrontDropReason::HandshakeBudget) as usize, 1_000 - at_once / 1_464);
    assert_eq!(ask(&mut bench), 0);
    // A client that the server has accepted does not flood the server either.
    bench.wait(Duration::from_secs(2));
    let id = bench.front.flows.find(from).unwrap();
    bench.server(id, &reply_1(ServerSecurity::None, 1_492));
    bench.server(id, &reply_2(1_492));
    let later = ask(&mut bench);
    assert!(later > 0 && later <= budget.bytes as usize / 4, "{later} bytes");
}

/// The other datagrams of the batch pass.
#[test]
fn a_datagram_above_the_limit_is_dropped() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let id = bench.open(from);
    assert_eq!(bench.client(from, &[0x84; 1_493]), []);
    assert_eq!(bench.client_batch(from, &[0x84; 2 * 1_493 + 10], 1_493), [(To::Server(id), vec![0x84; 10])]);
    assert_eq!(bench.drops(FrontDropReason::TooBig), 3);
    assert_eq!(bench.client(from, &[0x84; 1_492]).len(), 1);
}

/// Simulates a day in which a client arrives every ten seconds. The server accepts two of three, and all of them
/// eventually stop sending.
#[test]
fn a_day_of_clients_leaves_no_state() {
    let mut bench = Bench::raknet();
    bench.front.admission.max = 100;
    let day = 24 * 60 * 60;
    let mut most = 0;
    for second in 0..day + 120 {
        bench.wait(Duration::from_secs(1));
        if second < day && second % 10 == 0 {
            let from = SocketAddr::from((Ipv4Addr::from_bits(0x0B00_0000 + second), 5));
            if second % 3 == 0 {
                let cookie = bench.cookie(from);
                bench.client(from, &request_2(cookie, 1_400));
            } else {
                let id = bench.open(from);
                bench.server(id, &[0x84, 0, 0, 0]);
            }
        }
        while bench.front.poll_closed().is_some() {}
        most = most.max(bench.counters.snapshot().flows);
    }
    assert!(most < 20, "{most} flows at a time");
    let counts = bench.counters.snapshot();
    assert_eq!((counts.flows, counts.opened), (0, u64::from(day / 10)));
    assert!(bench.front.flows.select(|_, _, _| true).is_empty());
    assert_eq!(bench.front.half_open.pop(|_| true), None);
    assert_eq!(Arc::strong_count(&bench.front.admission.free.0), 1);
}

#[test]
fn replies_to_forged_sources_are_limited_by_rate() {
    let mut bench = Bench::raknet();
    let request = bytes(&Offline::Request1 { protocol: 6, mtu: 1_492 });
    let answers = (0..1_000).filter(|_| !bench.client(client_address(1), &request).is_empty()).count();
    assert_eq!(answers as u32, CHALLENGES.network);
    assert_eq!(bench.drops(FrontDropReason::ChallengeRation), 1_000 - u64::from(CHALLENGES.network));
}

/// Returns the datagrams and bytes that the front sends to a server that always refuses the client.
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
fn a_repeatedly_refused_client_has_one_budget() {
    let budget = Handshake::default();
    let (all, from) = (budget.bytes as usize, client_address(1));
    let mut bench = Bench::raknet();
    let request = request_2(bench.cookie(from), 1_492);
    let refusal = bytes(&Offline::IncompatibleProtocol { protocol: 6, guid: SERVER_GUID });
    let (_, at_once) = sent_to_refusing_server(&mut bench, from, &request, &refusal);
    assert!((all - 1_464..=all).contains(&at_once), "{at_once} bytes");
    let begun = (at_once / 1_464) as u64;
    assert_eq!(bench.counters.snapshot().opened, begun, "no flow begins without a budget");
    assert_eq!(bench.drops(FrontDropReason::HandshakeBudget), 1_000 - begun);
    // Other clients have separate budgets, and budgets are refilled.
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
fn a_client_refused_by_a_game_protocol_server_has_one_budget() {
    let from = client_address(1);
    let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
    let proof = handshakes::seasoning(&mut bench, from);
    let (datagrams, _) = sent_to_refusing_server(&mut bench, from, &proof, &[0x0C, 0, 0, 0]);
    assert_eq!(datagrams, Handshake::default().datagrams as usize);
}

/// Two clients alternately evict the half-open flows of each other.
#[test]
fn an_evicted_client_gets_no_new_budget() {
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

/// Returns the PROXY header of this client.
fn header(client: SocketAddr) -> Vec<u8> {
    let mut header = Vec::new();
    ProxyHeader { client, server: address(SERVER) }.write(&mut header);
    header
}

#[test]
fn the_client_address_precedes_datagrams_until_the_server_answers() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let cookie = bench.cookie(from);
    let first = bench.client(from, &request_2(cookie, 1_400));
    let (To::Server(id), announced) = &first[0] else { panic!("{first:?}") };
    let request = bytes(&Offline::Request1 { protocol: 11, mtu: 1_400 });
    assert_eq!(*announced, [header(from), request.clone()].concat());
    // A server that drops datagrams with a header also gets some without.
    for repetition in 1..=8 {
        let again = bench.client(from, &request_2(cookie, 1_400));
        let expected = if repetition % 4 == 0 { announced } else { &request };
        assert_eq!(again, [(To::Server(*id), expected.clone())], "repetition {repetition}");
    }
    let second = bench.server(*id, &reply_1(ServerSecurity::None, 1_400));
    let (_, request) = &second[0];
    assert!(
        matches!(read(request), Offline::Request2 { .. }),
        "no header after the server has answered: {request:?}"
    );
}

#[test]
fn an_unsent_header_precedes_the_next_datagram() {
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
fn the_mtu_leaves_space_for_the_proxy_header() {
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
fn the_client_address_is_announced_to_game_protocol_servers() {
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
    assert_eq!(seasoned[0].1.len(), 4, "no header after the server has answered");
}

#[test]
fn a_packet_with_a_forged_proxy_header_is_dropped() {
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
fn the_client_address_is_announced_again_when_a_client_restarts() {
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
fn the_client_address_is_announced_again_after_silence() {
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
    // Silence of the server counts only while the client sends.
    for _ in 0..2 {
        assert_eq!(bench.client(from, connected), [(To::Server(id), connected.to_vec())]);
        bench.wait(Duration::from_secs(4));
    }
    bench.wait(Duration::from_secs(1));
    let announced = [&header(from)[..], connected].concat();
    assert_eq!(bench.client(from, connected), [(To::Server(id), announced)]);
    // The negotiated MTU leaves no space for a header.
    let longest = [&[0x84; 1][..], &[0; 1_471]].concat();
    assert_eq!(bench.client(from, &longest), [(To::Server(id), longest.clone())]);
    bench.server(id, connected);
    assert_eq!(bench.client(from, connected), [(To::Server(id), connected.to_vec())]);
}

#[test]
fn marked_datagrams_have_the_outcome_of_the_table() {
    for mark in marks() {
        let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
        bench.front.admission.proxy_protocol = mark.reads_headers;
        let from = client_address(1);
        let id = bench.open_game_protocol(from);
        let passed =
            |to, fate| if fate == MarkOutcome::Passes { vec![(to, mark.datagram.clone())] } else { vec![] };
        let fate = mark.to_server("front");
        assert_eq!(bench.client(from, &mark.datagram), passed(To::Server(id), fate), "{}", mark.name);
        assert_eq!(
            bench.drops(FrontDropReason::ForgedHeader) > 0,
            fate == MarkOutcome::Forged,
            "{}",
            mark.name
        );
        let fate = mark.to_client("front");
        assert_eq!(bench.server(id, &mark.datagram), passed(To::Client(from), fate), "{}", mark.name);
    }
}

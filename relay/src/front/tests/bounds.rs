//! What a client, and all of them together, can have a front do and keep.

use super::*;

#[test]
fn admission_decides_and_the_table_is_bounded() {
    let mut bench = Bench::raknet();
    let ids: Vec<_> = (0..3).map(|number| bench.open(client_address(number))).collect();
    let cookie = bench.cookie(client_address(9));
    let sent = bench.client(client_address(9), &request_2(cookie, 1_400));
    let full = Offline::Refused { refusal: Refusal::NoFreeIncomingConnections, guid: raknet::Guid(0xF) };
    assert_eq!(sent, [(To::Client(client_address(9)), bytes(&full))]);
    assert_eq!(bench.drops(FrontDropReason::NotAdmitted), 1);
    // A flow that ends gives its permit back.
    bench.front.close(ids[0]);
    assert_eq!(bench.front.poll_closed(), Some(ids[0]));
    assert!(matches!(bench.client(client_address(9), &request_2(cookie, 1_400))[..], [(To::Server(_), _)]));
}

#[test]
fn a_client_for_which_another_one_makes_room_is_told_nothing_and_asks_again() {
    for protocol in [FrontProtocol::RakNet, FrontProtocol::GameProtocol] {
        let mut bench = Bench::new(settings(protocol));
        (bench.front.admission.max, bench.front.admission.denied) = (0, NotAdmitted::Later);
        let from = client_address(1);
        let proof = match protocol {
            FrontProtocol::RakNet => request_2(bench.cookie(from), 1_400),
            FrontProtocol::GameProtocol => game_protocol_handshake::seasoning(&mut bench, from).to_vec(),
        };
        assert_eq!(bench.client(from, &proof), []);
        assert_eq!(bench.drops(FrontDropReason::NotAdmitted), 1);
        bench.front.admission.max = 1;
        assert!(matches!(bench.client(from, &proof)[..], [(To::Server(_), _)]));
    }
}

#[test]
fn the_flow_that_waits_longest_for_the_server_makes_way_for_a_client_that_is_admitted() {
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
    assert_eq!(begin(banned), (To::Client(banned), None), "a client without a flow costs nobody one");
    let (_, closed) = begin(client_address(8));
    assert_eq!(closed.map(To::Server), Some(oldest));
    assert!(bench.front.flows.get(open).is_some());
}

#[test]
fn a_client_may_send_as_much_as_its_rate() {
    let mut bench = Bench::raknet();
    let rate = Rate { datagrams: NonZeroUsize::new(5).unwrap(), bytes: NonZeroUsize::new(1_000).unwrap() };
    bench.front.admission.rate = Some(rate);
    let from = client_address(1);
    let id = bench.open(from);
    let batch = [0x84; 80];
    let passed = bench.client_batch(from, &batch, 10);
    assert_eq!(passed, vec![(To::Server(id), vec![0x84; 10]); 5]);
    assert_eq!(bench.drops(FrontDropReason::RateLimited), 3);
    // Messages without a connection count, too.
    let ping = bytes(&Offline::OutOfBand { guid: CLIENT, data: b"text" });
    assert_eq!(bench.client(from, &ping), []);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.client(from, &[0x84; 10]).len(), 1);
}

pub(super) fn bytes_to_server(sent: &[(To, Vec<u8>)]) -> usize {
    sent.iter().filter(|(to, _)| matches!(to, To::Server(_))).map(|(_, datagram)| datagram.len()).sum()
}

/// What a client sends is shorter than what the front sends to the server in its place.
#[test]
fn a_client_that_asks_again_and_again_does_not_make_the_front_flood_the_server() {
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
    // Nor does one whose server has accepted it.
    bench.wait(Duration::from_secs(2));
    let id = bench.front.flows.find(from).unwrap();
    bench.server(id, &reply_1(ServerSecurity::None, 1_492));
    bench.server(id, &reply_2(1_492));
    let later = ask(&mut bench);
    assert!(later > 0 && later <= budget.bytes as usize / 4, "{later} bytes");
}

/// What stands before and behind in a batch passes.
#[test]
fn a_datagram_above_the_limit_goes_nowhere() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let id = bench.open(from);
    assert_eq!(bench.client(from, &[0x84; 1_493]), []);
    assert_eq!(bench.client_batch(from, &[0x84; 2 * 1_493 + 10], 1_493), [(To::Server(id), vec![0x84; 10])]);
    assert_eq!(bench.drops(FrontDropReason::TooBig), 3);
    assert_eq!(bench.client(from, &[0x84; 1_492]).len(), 1);
}

/// A day in which a client comes every ten seconds; the server accepts two of three, and all fall silent some time.
#[test]
fn a_day_of_clients_leaves_nothing_behind() {
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
fn forged_sources_get_no_more_than_their_ration() {
    let mut bench = Bench::raknet();
    let request = bytes(&Offline::Request1 { protocol: 6, mtu: 1_492 });
    let answers = (0..1_000).filter(|_| !bench.client(client_address(1), &request).is_empty()).count();
    assert_eq!(answers as u32, CHALLENGES.network);
    assert_eq!(bench.drops(FrontDropReason::ChallengeRation), 1_000 - u64::from(CHALLENGES.network));
}

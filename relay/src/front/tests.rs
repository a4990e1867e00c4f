use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::time::UNIX_EPOCH;

use rakwire::raknet::{self, CookiePolicy, Delivery};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, Refusal, ServerSecurity};
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire, Writer};
use rakwire::{game_protocol, wire};

use super::*;
use crate::protocol::Pong;

mod refusals;
mod server_keys;

const FRONT: &str = "192.0.2.100:19132";
const SERVER: &str = "10.0.0.1:19133";
const UNIX_SECONDS: u64 = 1_700_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn client_address(number: u16) -> SocketAddr {
    ([198, 51, 100, 7], 10_000 + number).into()
}

/// An address that gets no flow.
const BANNED: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));

/// Lets in as many as it has places; a permit counts while it is held.
struct Places {
    free: Arc<()>,
    max: usize,
    server: SocketAddr,
    proxy_protocol: bool,
    idle_timeout: Duration,
    rate: Option<Rate>,
    /// What is said when all places are taken.
    denied: NotAdmitted,
    pongs: Arc<PongCache>,
}

impl Admit for Places {
    type Permit = Arc<()>;

    fn admit(
        &mut self,
        _now: Now,
        client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<Arc<()>>, NotAdmitted> {
        if client.ip() == BANNED {
            return Err(NotAdmitted::Refused);
        }
        let is_full = Arc::strong_count(&self.free) > self.max;
        let Self { server, proxy_protocol, idle_timeout, rate, .. } = *self;
        let permit = (!is_full || make_room()).then(|| Arc::clone(&self.free));
        let source = Source::Shared;
        permit.ok_or(self.denied).map(|permit| Admitted {
            server,
            source,
            proxy_protocol,
            idle_timeout,
            max_datagram: 1_472,
            rate,
            permit,
        })
    }

    fn offer(&self) -> Option<Offer> {
        let announced_to = self.proxy_protocol.then_some(self.server);
        Some(Offer { pongs: Arc::clone(&self.pongs), payload_max: 1_464, announced_to })
    }
}

fn settings(protocol: FrontProtocol) -> Settings {
    Settings { protocol, guid: 0xF, keys: CookieKeys::single(CookieKey::new([7; 16])) }
}

/// What a front sent, by where it went.
type Sent = Vec<(To, Vec<u8>)>;

struct Bench {
    front: Front<Places>,
    counters: Arc<FrontCounters>,
    pongs: Arc<PongCache>,
    now: Now,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let now = Now { at: Instant::now(), wall: UNIX_EPOCH + Duration::from_secs(UNIX_SECONDS) };
        let counters = Arc::<FrontCounters>::default();
        let pongs = Arc::<PongCache>::default();
        let places = Places {
            free: Arc::new(()),
            max: 3,
            server: address(SERVER),
            proxy_protocol: false,
            idle_timeout: Duration::from_secs(60),
            rate: None,
            denied: NotAdmitted::Refused,
            pongs: Arc::clone(&pongs),
        };
        let front = Front::new(settings, places, Arc::clone(&counters), now.at);
        Self { front, counters, pongs, now }
    }

    fn raknet() -> Self {
        Self::new(settings(FrontProtocol::RakNet))
    }

    fn wait(&mut self, time: Duration) {
        self.now.at += time;
        self.now.wall += time;
        self.front.handle_timeout(self.now.at);
    }

    fn client(&mut self, from: SocketAddr, datagram: &[u8]) -> Sent {
        self.client_batch(from, datagram, datagram.len())
    }

    fn client_batch(&mut self, from: SocketAddr, bytes: &[u8], stride: usize) -> Sent {
        let mut out = Transmits::default();
        self.front.handle_client(self.now, from, bytes, stride, &mut out);
        sent(&out)
    }

    fn server(&mut self, id: FlowId, datagram: &[u8]) -> Sent {
        let mut out = Transmits::default();
        self.front.handle_server(id, datagram, datagram.len(), &mut out);
        sent(&out)
    }

    /// The server of a flow.
    fn route_to(&mut self, id: FlowId) -> Option<SocketAddr> {
        self.front.route(id).map(|route| route.server)
    }

    fn drops(&self, reason: FrontDropReason) -> u64 {
        self.counters.snapshot().drops(reason)
    }

    /// The cookie that a client gets.
    fn cookie(&mut self, from: SocketAddr) -> u32 {
        let sent = self.client(from, &bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 }));
        let [(To::Client(to), reply)] = &sent[..] else { panic!("no reply: {sent:?}") };
        assert_eq!(*to, from);
        let reply = read(reply);
        let Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. } = reply else {
            panic!("{reply:?}")
        };
        cookie
    }

    /// A client whose server has accepted it.
    fn open(&mut self, from: SocketAddr) -> FlowId {
        let cookie = self.cookie(from);
        let sent = self.client(from, &request_2(cookie, 1_492));
        let [(To::Server(id), _)] = &sent[..] else { panic!("no flow: {sent:?}") };
        let id = *id;
        self.server(id, &reply_1(ServerSecurity::None, 1_492));
        self.server(id, &reply_2(1_492));
        id
    }
}

fn sent(out: &Transmits<'_>) -> Sent {
    let all = out
        .iter()
        .flat_map(|(to, bytes, stride)| bytes.chunks(stride).map(move |datagram| (to, datagram.to_vec())));
    all.collect()
}

fn bytes(message: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer).unwrap();
    writer.finish().to_vec()
}

fn read(bytes: &[u8]) -> Offline<'_> {
    Offline::read(&mut Reader::new(bytes)).unwrap()
}

const CLIENT: raknet::Guid = raknet::Guid(0xC);
const SERVER_GUID: raknet::Guid = raknet::Guid(0x5);

fn request_2(cookie: u32, mtu: u16) -> Vec<u8> {
    let security = ClientSecurity::Cookie(cookie);
    bytes(&Offline::Request2 { security, server: address(FRONT), mtu, guid: CLIENT })
}

fn reply_1(security: ServerSecurity<'_>, mtu: u16) -> Vec<u8> {
    bytes(&Offline::Reply1 { guid: SERVER_GUID, security, mtu })
}

fn reply_2(mtu: u16) -> Vec<u8> {
    bytes(&Offline::Reply2 { guid: SERVER_GUID, client: address("10.0.0.9:5"), mtu, answer: None })
}

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
fn answer_to(key: &[u8; 64]) -> Vec<u8> {
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

#[test]
fn a_cookie_is_of_no_use_to_others_and_not_for_long() {
    let mut bench = Bench::raknet();
    let cookie = bench.cookie(client_address(1));
    assert_eq!(bench.client(client_address(2), &request_2(cookie, 1_400)), []);
    bench.wait(Duration::from_secs(10));
    assert_eq!(bench.client(client_address(1), &request_2(cookie, 1_400)), []);
    assert_eq!(bench.drops(FrontDropReason::BadCookie), 2);
}

/// The datagrams of docs/udp-front.md.
#[test]
fn the_published_datagrams_hold() {
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
fn a_clock_that_jumps_costs_one_more_round_trip() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let cookie = bench.cookie(from);
    bench.now.wall -= Duration::from_secs(3_600);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)), []);
    let cookie = bench.cookie(from);
    assert_eq!(bench.client(from, &request_2(cookie, 1_400)).len(), 1);
}

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
            FrontProtocol::GameProtocol => game_protocol_at_a_front::seasoning(&mut bench, from).to_vec(),
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

fn bytes_to_server(sent: &[(To, Vec<u8>)]) -> usize {
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

/// The limit of browsers is that of clients with UDP of their own too; what stands before and behind in a batch passes.
#[test]
fn a_datagram_above_the_limit_goes_nowhere() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let id = bench.open(from);
    assert_eq!(bench.client(from, &[0x84; 1_473]), []);
    assert_eq!(bench.client_batch(from, &[0x84; 2 * 1_473 + 10], 1_473), [(To::Server(id), vec![0x84; 10])]);
    assert_eq!(bench.drops(FrontDropReason::TooBig), 3);
    assert_eq!(bench.client(from, &[0x84; 1_472]).len(), 1);
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
    assert_eq!(Arc::strong_count(&bench.front.admission.free), 1);
}

#[test]
fn empty_datagrams_are_counted_in_both_directions() {
    let mut bench = Bench::raknet();
    let id = bench.open(client_address(1));
    assert_eq!((bench.client(client_address(1), &[]), bench.server(id, &[])), (vec![], vec![]));
    assert_eq!(bench.drops(FrontDropReason::Empty), 2);
}

#[test]
fn new_flows_go_to_where_the_server_is_now() {
    let mut bench = Bench::raknet();
    let old = bench.open(client_address(1));
    let moved = address("10.0.0.2:19133");
    bench.front.admission.server = moved;
    bench.front.admission.idle_timeout = Duration::from_secs(5);
    let new = bench.open(client_address(2));
    assert_eq!((bench.route_to(old), bench.route_to(new)), (Some(address(SERVER)), Some(moved)));
    bench.wait(Duration::from_secs(5));
    assert_eq!((bench.front.poll_closed(), bench.front.poll_closed()), (Some(new), None));
    // The pongs are those of now as well.
    let pongs = Arc::<PongCache>::default();
    pongs.learn(PingScope::Any, Pong { guid: 7, data: Vec::new(), at: bench.now.at, latency: None });
    bench.front.admission.pongs = pongs;
    let sent = bench.client(client_address(3), &bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 }));
    assert!(matches!(read(&sent[0].1), Offline::Reply1 { guid: raknet::Guid(7), .. }), "{sent:?}");
}

#[test]
fn flows_end_when_the_client_is_silent_or_the_server_does_not_answer() {
    let mut bench = Bench::raknet();
    let open = bench.open(client_address(1));
    let cookie = bench.cookie(client_address(2));
    let sent = bench.client(client_address(2), &request_2(cookie, 1_400));
    let (To::Server(waits), _) = sent[0] else { panic!("{sent:?}") };
    bench.wait(HANDSHAKE_TIMEOUT - Duration::from_millis(1));
    assert_eq!(bench.front.poll_closed(), None);
    bench.wait(Duration::from_millis(1));
    assert_eq!(bench.front.poll_closed(), Some(waits));
    // What the server says keeps no flow: it may talk to a client that has gone.
    bench.wait(Duration::from_secs(45));
    bench.server(open, &[0x84, 0, 0, 0]);
    bench.client(client_address(1), &[0xC0, 0, 0]);
    bench.wait(Duration::from_secs(59));
    assert_eq!(bench.front.poll_closed(), None);
    bench.server(open, &[0x84, 0, 0, 0]);
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.front.poll_closed(), Some(open));
    assert_eq!(bench.server(open, &[0x84, 0, 0, 0]), []);
}

#[test]
fn pings_are_answered_from_the_cache_a_few_for_each_network() {
    let mut bench = Bench::raknet();
    let ping = |guid| bytes(&Offline::Ping { scope: PingScope::Any, time: 5, guid });
    assert_eq!(bench.client(client_address(1), &ping(Some(CLIENT))), []);
    assert_eq!(bench.drops(FrontDropReason::NoPong), 1);
    let pong = Pong { guid: 5, data: b"MCPE;a".to_vec(), at: bench.now.at, latency: None };
    bench.pongs.learn(PingScope::Any, pong);
    let answers =
        (0..100).filter(|_| !bench.client(client_address(1), &ping(Some(CLIENT))).is_empty()).count();
    assert_eq!(answers as u32, PONGS.network - 1);
    assert_eq!(bench.client(client_address(1), &ping(None)), []);
    assert_eq!(bench.drops(FrontDropReason::WouldAmplify), 1);
    // The GUID of the server is known now.
    let sent = bench.client(client_address(1), &bytes(&Offline::Request1 { protocol: 6, mtu: 576 }));
    assert!(matches!(read(&sent[0].1), Offline::Reply1 { guid: raknet::Guid(5), mtu: 576, .. }));
}

#[test]
fn forged_sources_get_no_more_than_their_ration() {
    let mut bench = Bench::raknet();
    let request = bytes(&Offline::Request1 { protocol: 6, mtu: 1_492 });
    let answers = (0..1_000).filter(|_| !bench.client(client_address(1), &request).is_empty()).count();
    assert_eq!(answers as u32, CHALLENGES.network);
    assert_eq!(bench.drops(FrontDropReason::ChallengeRation), 1_000 - u64::from(CHALLENGES.network));
}

#[test]
fn datagrams_that_arrive_together_leave_together() {
    let mut bench = Bench::raknet();
    let from = client_address(1);
    let id = bench.open(from);
    let connected = [0x84, 1, 0, 0];
    let mut batch = connected.repeat(3);
    batch.extend([0x0D, 1, 2, 3]);
    batch.extend(connected.repeat(2));
    batch.extend([0x84, 9]);
    let mut out = Transmits::default();
    bench.front.handle_client(bench.now, from, &batch, 4, &mut out);
    let lengths: Vec<_> = out.iter().map(|(to, bytes, stride)| (to, bytes.len(), stride)).collect();
    assert_eq!(lengths, [(To::Server(id), 12, 4), (To::Server(id), 10, 4)]);
    assert_eq!(bench.drops(FrontDropReason::Unreadable), 1);
    let mut out = Transmits::default();
    bench.front.handle_server(id, &batch, 4, &mut out);
    let lengths: Vec<_> = out.iter().map(|(to, bytes, _)| (to, bytes.len())).collect();
    assert_eq!(lengths, [(To::Client(from), 12), (To::Client(from), 4), (To::Client(from), 10)]);
    assert_eq!(bench.counters.snapshot().to_server, (6, 22));
}

#[test]
fn keys_are_replaced_while_clients_come() {
    let mut bench = Bench::raknet();
    let cookie = bench.cookie(client_address(1));
    bench
        .front
        .set_keys("11111111111111111111111111111111\n07070707070707070707070707070707".parse().unwrap());
    assert_eq!(bench.client(client_address(1), &request_2(cookie, 1_400)).len(), 1);
    bench.front.set_keys("11111111111111111111111111111111".parse().unwrap());
    assert_eq!(bench.client(client_address(2), &request_2(cookie, 1_400)), []);
}

/// Moves datagrams between two peers and the front until nobody has any.
macro_rules! exchange {
    ($bench:ident, $client:ident, $server:ident, $time:expr, $buffer:ident) => {{
        let from = client_address(1);
        let mut addresses = BTreeMap::new();
        loop {
            let mut to_front: Vec<(Option<SocketAddr>, Vec<u8>)> = Vec::new();
            while let Some(transmit) = $client.poll_transmit($time, &mut $buffer) {
                to_front.push((None, transmit.payload.to_vec()));
            }
            while let Some(transmit) = $server.poll_transmit($time, &mut $buffer) {
                to_front.push((Some(transmit.to), transmit.payload.to_vec()));
            }
            if to_front.is_empty() {
                break;
            }
            for (flow, datagram) in to_front {
                let sent = match flow {
                    None => $bench.client(from, &datagram),
                    Some(flow) => $bench.server(addresses[&flow], &datagram),
                };
                let mut waiting = std::collections::VecDeque::from(sent);
                while let Some((to, datagram)) = waiting.pop_front() {
                    match to {
                        To::Client(_) => $client.handle_datagram($time, address(FRONT), &datagram),
                        To::Server(id) => {
                            let flow = address("10.0.0.9:500");
                            addresses.insert(flow, id);
                            $server.handle_datagram($time, flow, &datagram);
                        }
                    }
                }
            }
        }
    }};
}

#[test]
fn peers_of_raknet_connect_through_a_front() {
    for cookies in [CookiePolicy::Off, CookiePolicy::Required] {
        let (mut a, mut b) = (raknet::Resources::<1, 64, 256>::new(), raknet::Resources::<1, 64, 256>::new());
        let mut server_config = raknet::Config::new([2; 32]);
        server_config.max_incoming = 1;
        server_config.cookies = cookies;
        let mut client = raknet::Peer::new(&mut a, raknet::Config::new([1; 32]));
        let mut server = raknet::Peer::new(&mut b, server_config);
        let mut bench = Bench::raknet();
        let mut buffer = [0; MAX_DATAGRAM];
        let time = rakwire::Instant::ZERO;
        let id = client.connect(time, address(FRONT)).unwrap();
        exchange!(bench, client, server, time, buffer);
        assert!(client.poll_event().is_some_and(|event| matches!(event, raknet::Event::Connected { .. })));
        client.send(time, id, b"\xFEhello", Delivery::RELIABLE_ORDERED).unwrap();
        exchange!(bench, client, server, time, buffer);
        let mut heard = Vec::new();
        while let Some(event) = server.poll_event() {
            if let raknet::Event::Message { message, .. } = event {
                heard = message.chunks().flatten().copied().collect();
            }
        }
        assert_eq!(heard, b"\xFEhello");
    }
}

#[test]
fn peers_of_the_game_protocol_connect_through_a_front() {
    let (mut a, mut b) =
        (game_protocol::Resources::<1, 64, 256>::new(), game_protocol::Resources::<1, 64, 256>::new());
    let mut server_config = game_protocol::Config::new([2; 32]);
    server_config.max_incoming = 1;
    let mut client = game_protocol::Peer::new(&mut a, game_protocol::Config::new([1; 32]));
    let mut server = game_protocol::Peer::new(&mut b, server_config);
    let mut bench = Bench::new(settings(FrontProtocol::GameProtocol));
    let mut buffer = [0; MAX_DATAGRAM];
    let mut time = rakwire::Instant::ZERO;
    let id = client.connect(time, address(FRONT)).unwrap();
    exchange!(bench, client, server, time, buffer);
    let connected = client.poll_event();
    assert!(connected.is_some_and(|event| matches!(event, game_protocol::Event::Connected { .. })));
    let reliability = game_protocol::Reliability::Reliable;
    client.send(time, id, b"hello", reliability).unwrap();
    let mut heard = Vec::new();
    for _ in 0..10 {
        exchange!(bench, client, server, time, buffer);
        while let Some(event) = server.poll_event() {
            if let game_protocol::Event::Message { message, .. } = event {
                heard = message.chunks().flatten().copied().collect();
            }
        }
        // What came before the front was done with the server is sent again.
        time = time + Duration::from_millis(500);
        client.handle_timeout(time);
        server.handle_timeout(time);
    }
    assert_eq!(heard, b"hello");
    assert_eq!(bench.counters.snapshot().flows, 1);
}

mod game_protocol_at_a_front {
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
}

#[test]
fn the_longest_message_of_a_front_has_room() {
    let mut out = Transmits::default();
    let request = Offline::Request1 { protocol: 11, mtu: wire::MAX_MTU };
    out.write(To::Client(client_address(1)), |writer| request.write(writer));
    assert_eq!(out.iter().map(|(_, bytes, _)| bytes.len()).collect::<Vec<_>>(), [MAX_DATAGRAM]);
}

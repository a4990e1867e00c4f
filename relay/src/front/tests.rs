//! A front in a simulated environment, and peers of both protocols that connect through it.

mod bounds;
mod handshakes;
#[path = "../../tests/marks/mod.rs"]
pub(crate) mod marks;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use rakwire::game_protocol;
use rakwire::raknet::{self, CookiePolicy, Delivery};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope, Refusal, ServerSecurity};
use rakwire::wire::{self, MAX_DATAGRAM, Reader, Wire, Writer};

use super::*;
use crate::protocol::Pong;

const FRONT: &str = "192.0.2.100:19132";
const SERVER: &str = "10.0.0.1:19133";
const UNIX_SECONDS: u64 = 1_700_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn client_address(number: u16) -> SocketAddr {
    ([198, 51, 100, 7], 10_000 + number).into()
}

/// An address that admission refuses.
const BANNED: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1));

/// A held slot, and the bytes that its flow has charged to the total rate.
#[derive(Debug, Clone, Default)]
struct Place(Arc<AtomicUsize>);

impl Permit for Place {
    fn admits(&mut self, _: Direction, bytes: usize) -> bool {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        true
    }
}

/// Admits as many clients as there are slots.
struct Places {
    free: Place,
    max: usize,
    server: SocketAddr,
    proxy_protocol: bool,
    idle_timeout: Duration,
    rate: Option<Rate>,
    /// The refusal when all slots are taken.
    denied: NotAdmitted,
    pongs: Arc<PongCache>,
}

impl Admit for Places {
    type Permit = Place;

    fn admit(
        &mut self,
        _now: Now,
        client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<Place>, NotAdmitted> {
        if client.ip() == BANNED {
            return Err(NotAdmitted::Refused);
        }
        let is_full = Arc::strong_count(&self.free.0) > self.max;
        let Self { server, proxy_protocol, idle_timeout, rate, .. } = *self;
        let permit = (!is_full || make_room()).then(|| self.free.clone());
        let source = Source::Shared;
        permit.ok_or(self.denied).map(|permit| Admitted {
            server,
            source,
            proxy_protocol,
            idle_timeout,
            max_datagram: 1_492,
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

/// The output of a front with its destinations.
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
            free: Place::default(),
            max: 3,
            server: address(SERVER),
            proxy_protocol: false,
            idle_timeout: Duration::from_secs(60),
            rate: None,
            denied: NotAdmitted::Refused,
            pongs: Arc::clone(&pongs),
        };
        let front = Front::new(settings, places, Arc::clone(&counters));
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

    /// Returns the server of a flow.
    fn route_to(&mut self, id: FlowId) -> Option<SocketAddr> {
        self.front.route(id).map(|route| route.server)
    }

    fn drops(&self, reason: FrontDropReason) -> u64 {
        self.counters.snapshot().drops(reason)
    }

    /// Returns the cookie issued to a client.
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

    /// Opens the flow of a client that the server has accepted.
    fn open(&mut self, from: SocketAddr) -> FlowId {
        let cookie = self.cookie(from);
        let sent = self.client(from, &request_2(cookie, 1_492));
        let [(To::Server(id), _)] = &sent[..] else { panic!("no flow: {sent:?}") };
        let id = *id;
        self.server(id, &reply_1(ServerSecurity::None, 1_492));
        self.server(id, &reply_2(1_492));
        id
    }

    /// Opens a flow of the Game Protocol.
    fn open_game_protocol(&mut self, from: SocketAddr) -> FlowId {
        let salt = game_protocol::wire::HandshakeWord(0x4123_4567);
        let challenge = self.client(from, &salt.0.to_be_bytes());
        let pepper = game_protocol::wire::HandshakeWord::read(&challenge[0].1).unwrap();
        let begun = self.client(from, &salt.season(pepper).0.to_be_bytes());
        let (To::Server(id), _) = begun[0] else { panic!("{begun:?}") };
        self.server(id, &[0x40, 1, 2, 3]);
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
fn empty_datagrams_are_counted_in_both_directions() {
    let mut bench = Bench::raknet();
    let id = bench.open(client_address(1));
    assert_eq!((bench.client(client_address(1), &[]), bench.server(id, &[])), (vec![], vec![]));
    assert_eq!(bench.drops(FrontDropReason::Empty), 2);
}

#[test]
fn new_flows_use_the_current_server_address() {
    let mut bench = Bench::raknet();
    let old = bench.open(client_address(1));
    let moved = address("10.0.0.2:19133");
    bench.front.admission.server = moved;
    bench.front.admission.idle_timeout = Duration::from_secs(5);
    let new = bench.open(client_address(2));
    assert_eq!((bench.route_to(old), bench.route_to(new)), (Some(address(SERVER)), Some(moved)));
    bench.wait(Duration::from_secs(5));
    assert_eq!((bench.front.poll_closed(), bench.front.poll_closed()), (Some(new), None));
    // Pongs come from the current server too.
    let pongs = Arc::<PongCache>::default();
    pongs.learn(PingScope::Any, Pong { guid: 7, data: Vec::new(), at: bench.now.at, latency: None });
    bench.front.admission.pongs = pongs;
    let sent = bench.client(client_address(3), &bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 }));
    assert!(matches!(read(&sent[0].1), Offline::Reply1 { guid: raknet::Guid(7), .. }), "{sent:?}");
}

#[test]
fn flows_end_if_either_side_is_silent() {
    let mut bench = Bench::raknet();
    let open = bench.open(client_address(1));
    let cookie = bench.cookie(client_address(2));
    let sent = bench.client(client_address(2), &request_2(cookie, 1_400));
    let (To::Server(waits), _) = sent[0] else { panic!("{sent:?}") };
    bench.wait(HANDSHAKE_TIMEOUT - Duration::from_millis(1));
    assert_eq!(bench.front.poll_closed(), None);
    bench.wait(Duration::from_millis(1));
    assert_eq!(bench.front.poll_closed(), Some(waits));
    // Datagrams from the server do not keep a flow open, because the client may have left.
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
fn pings_are_answered_from_the_cache_at_a_limited_rate() {
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
    // After the pong the front knows the GUID of the server.
    let sent = bench.client(client_address(1), &bytes(&Offline::Request1 { protocol: 6, mtu: 576 }));
    assert!(matches!(read(&sent[0].1), Offline::Reply1 { guid: raknet::Guid(5), mtu: 576, .. }));
}

/// Bytes are charged to the rate of all clients only when they pass, so that dropped or answered datagrams cannot
/// exhaust it.
#[test]
fn blocked_datagrams_are_not_charged_to_the_total_rate() {
    let mut bench = Bench::raknet();
    bench.front.admission.proxy_protocol = true;
    let from = client_address(1);
    let id = bench.open(from);
    let taken = |bench: &Bench| bench.front.admission.free.0.load(Ordering::Relaxed);
    assert_eq!(taken(&bench), 0, "handshakes are charged to a separate budget");
    let ping = bytes(&Offline::Ping { scope: PingScope::Any, time: 5, guid: Some(CLIENT) });
    let request = bytes(&Offline::Request1 { protocol: 11, mtu: 1_492 });
    let (long, mut header) = ([0x84; 1_493], Vec::new());
    ProxyHeader { client: from, server: address(SERVER) }.write(&mut header);
    for datagram in [&ping[..], &request, &[0x0D, 1, 2, 3], &long, &header, &[]] {
        bench.client(from, datagram);
    }
    assert_eq!(taken(&bench), 0);
    bench.client(from, &[0x84, 1, 0, 0]);
    bench.server(id, &[0x84, 1, 0]);
    assert_eq!(taken(&bench), 7);
    bench.server(id, &reply_1(ServerSecurity::None, 1_492));
    assert_eq!(taken(&bench), 7, "a reply to the front itself is not charged");
    let other = client_address(2);
    bench.client(other, &[0x84, 1, 0, 0]);
    let pong = bytes(&Offline::Pong { time: 5, guid: SERVER_GUID, data: b"" });
    let passed = pong.len();
    assert_eq!(bench.client(from, &pong), [(To::Server(id), pong.clone())]);
    assert_eq!(bench.server(id, &pong), [(To::Client(from), pong)]);
    assert_eq!(taken(&bench), 7 + 2 * passed);
}

#[test]
fn batched_datagrams_are_forwarded_as_a_batch() {
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
fn the_longest_message_of_a_front_fits_its_buffer() {
    let mut out = Transmits::default();
    let request = Offline::Request1 { protocol: 11, mtu: wire::MAX_MTU };
    out.write(To::Client(client_address(1)), |writer| request.write(writer));
    assert_eq!(out.iter().map(|(_, bytes, _)| bytes.len()).collect::<Vec<_>>(), [MAX_DATAGRAM]);
}

/// Exchanges datagrams between two peers and the front until none is left.
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
        // Datagrams that arrived before the front had completed its handshake with the server are resent.
        time = time + Duration::from_millis(500);
        client.handle_timeout(time);
        server.handle_timeout(time);
    }
    assert_eq!(heard, b"hello");
    assert_eq!(bench.counters.snapshot().flows, 1);
}

//! Fuzzes a UDP front of the relay with arbitrary datagrams from clients and the server.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rakwire::game_protocol::wire::HandshakeWord;
use rakwire::raknet::Guid;
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{Reader, Wire, Writer};

use crate::flow::{Rate, Source};
use crate::front::{
    Admit, Admitted, CookieKey, CookieKeys, FlowId, Front, FrontCounters, FrontProtocol, NotAdmitted, Offer,
    Permit, Settings, To, Transmits,
};
use crate::steps::{Step, steps};
use crate::time::Now;

/// The maximum number of clients.
const PLACES: usize = 2;
/// The idle timeout of a flow: the time without a datagram from its client.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The length to which a datagram is padded if the input requests it.
const PADDED: usize = 1_464;

/// An admission that accepts clients while slots are free.
struct Places {
    /// Each occupied slot holds a clone.
    free: Arc<()>,
    proxy_protocol: bool,
}

fn server() -> SocketAddr {
    ([10, 0, 0, 1], 19_133).into()
}

/// An occupied slot, freed on drop.
#[derive(Debug)]
struct Place {
    _held: Arc<()>,
}

impl Permit for Place {}

impl Admit for Places {
    type Permit = Place;

    fn admit(
        &mut self,
        _now: Now,
        _client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<Place>, NotAdmitted> {
        let number = |number| NonZeroUsize::new(number).expect("a rate above 0");
        let is_full = Arc::strong_count(&self.free) > PLACES;
        if is_full && !make_room() {
            return Err(NotAdmitted::Refused);
        }
        Ok(Admitted {
            server: server(),
            source: Source::Shared,
            proxy_protocol: self.proxy_protocol,
            idle_timeout: IDLE_TIMEOUT,
            max_datagram: 1_492,
            rate: Some(Rate { datagrams: number(10), bytes: number(10_000) }),
            permit: Place { _held: Arc::clone(&self.free) },
        })
    }

    fn offer(&self) -> Option<Offer> {
        Some(Offer {
            pongs: Arc::default(),
            payload_max: 1_400,
            announced_to: self.proxy_protocol.then(server),
        })
    }
}

/// The expected state of a client.
#[derive(Default)]
struct Client {
    /// The cookie or pepper that the front has sent to the client, or `None` if it has sent none yet.
    challenge: Option<u32>,
    /// The number of bytes that the front has sent to the client.
    sent: usize,
}

struct World {
    front: Front<Places>,
    protocol: FrontProtocol,
    counters: Arc<FrontCounters>,
    /// The same as in [`Places`].
    free: Arc<()>,
    now: Now,
    clients: HashMap<SocketAddr, Client>,
    /// The flow of the last datagram that the front has forwarded to the server.
    flow: Option<FlowId>,
}

fn message(message: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer).expect("space in the buffer");
    writer.finish().to_vec()
}

impl World {
    /// Creates a front. Its cookie key depends on the input, so that no input can contain a valid cookie.
    fn new(options: u8, input: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let key = CookieKey::new((u128::from(hasher.finish()) << 64).to_be_bytes());
        let protocol = if options & 1 == 0 { FrontProtocol::RakNet } else { FrontProtocol::GameProtocol };
        let (counters, free) = (Arc::<FrontCounters>::default(), Arc::default());
        let places = Places { free: Arc::clone(&free), proxy_protocol: options & 2 != 0 };
        let now = Now { at: Instant::now(), wall: UNIX_EPOCH + Duration::from_secs(1_700_000_000) };
        let settings = Settings { protocol, guid: 0xF, keys: CookieKeys::single(key) };
        let front = Front::new(settings, places, Arc::clone(&counters));
        Self { front, protocol, counters, free, now, clients: HashMap::new(), flow: None }
    }

    fn wait(&mut self, time: Duration) {
        self.now.at += time;
        self.now.wall += time;
        self.front.handle_timeout(self.now.at);
        while self.front.poll_closed().is_some() {}
    }

    /// Returns the next handshake datagram from a client that follows the protocol.
    fn honest_client(&self, from: SocketAddr) -> Vec<u8> {
        let challenge = self.clients.get(&from).and_then(|client| client.challenge);
        match (self.protocol, challenge) {
            (FrontProtocol::RakNet, None) => message(&Offline::Request1 { protocol: 11, mtu: 1_492 }),
            (FrontProtocol::RakNet, Some(cookie)) => message(&Offline::Request2 {
                security: ClientSecurity::Cookie(cookie),
                server: server(),
                mtu: 1_400,
                guid: Guid(0xC),
            }),
            (FrontProtocol::GameProtocol, None) => 0x4123_4567_u32.to_be_bytes().to_vec(),
            (FrontProtocol::GameProtocol, Some(pepper)) => {
                HandshakeWord(0x4123_4567).season(HandshakeWord(pepper)).0.to_be_bytes().to_vec()
            }
        }
    }

    /// Returns a datagram from a server that follows the protocol.
    fn honest_server(&self, is_second: bool) -> Vec<u8> {
        match (self.protocol, is_second) {
            (FrontProtocol::RakNet, false) => {
                message(&Offline::Reply1 { guid: Guid(5), security: ServerSecurity::None, mtu: 1_400 })
            }
            (FrontProtocol::RakNet, true) => message(&Offline::Reply2 {
                guid: Guid(5),
                client: ([10, 0, 0, 9], 5).into(),
                mtu: 1_400,
                answer: None,
            }),
            (FrontProtocol::GameProtocol, _) => vec![0x40, 1, 2, 3],
        }
    }

    /// Checks the datagrams that the front sends, and the number of its flows.
    fn check(&mut self, out: &Transmits<'_>) {
        for (to, bytes, stride) in out.iter() {
            assert!(!bytes.is_empty() && stride > 0);
            match to {
                To::Server(id) => {
                    let route = self.front.route(id);
                    let client = route.and_then(|route| self.clients.get(&route.client));
                    // The front has no route if the flow has closed in the meantime.
                    assert!(
                        client.is_none_or(|client| client.challenge.is_some()),
                        "the server received a datagram of a client that was not challenged"
                    );
                    self.flow = Some(id);
                }
                To::Client(client) => self.check_answer(client, bytes),
            }
        }
        let snapshot = self.counters.snapshot();
        assert_eq!(
            snapshot.flows as usize,
            Arc::strong_count(&self.free) - 2,
            "the number of flows differs from the number of occupied slots"
        );
        assert!(snapshot.flows as usize <= PLACES);
    }

    fn check_answer(&mut self, client: SocketAddr, bytes: &[u8]) {
        let known =
            self.clients.get_mut(&client).expect("the front sent only to addresses that had sent before");
        known.sent += bytes.len();
        match self.protocol {
            FrontProtocol::RakNet => {
                if let Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) =
                    Offline::read(&mut Reader::new(bytes))
                {
                    known.challenge = Some(cookie);
                }
            }
            FrontProtocol::GameProtocol => {
                known.challenge = HandshakeWord::read(bytes).map_or(known.challenge, |word| Some(word.0));
            }
        }
    }

    fn client(&mut self, step: &Step<'_>) {
        let from: SocketAddr = ([198, 51, 100, 7], 10_000 + u16::from(step.flags & 3)).into();
        let bytes = if step.flags & 8 != 0 { self.honest_client(from) } else { padded(step) };
        let client = self.clients.entry(from).or_default();
        let (is_challenged, before) = (client.challenge.is_some(), client.sent);
        let mut out = Transmits::default();
        let stride = if step.flags & 16 != 0 { bytes.len().div_ceil(2) } else { bytes.len() };
        self.front.handle_client(self.now, from, &bytes, stride, &mut out);
        self.check(&out);
        let client = &self.clients[&from];
        if !is_challenged {
            assert!(
                client.sent - before <= bytes.len(),
                "an unvalidated source received more bytes than it sent"
            );
        }
    }

    fn server(&mut self, step: &Step<'_>) {
        let Some(id) = self.flow else { return };
        let bytes = if step.flags & 8 != 0 { self.honest_server(step.flags & 1 != 0) } else { padded(step) };
        let mut out = Transmits::default();
        let stride = if step.flags & 16 != 0 { bytes.len().div_ceil(2) } else { bytes.len() };
        self.front.handle_server(id, &bytes, stride, &mut out);
        self.check(&out);
    }
}

fn padded(step: &Step<'_>) -> Vec<u8> {
    let mut bytes = step.bytes.to_vec();
    if step.flags & 128 != 0 {
        bytes.resize(PADDED, 0);
    }
    bytes
}

/// Checks the guarantees of the front.
///
/// - Datagrams from a client reach the server only after the front has challenged the client.
/// - A source that was not challenged before receives no more bytes than it sent.
/// - No flow outlives its idle timeout.
pub fn datagrams(input: &[u8]) {
    let Some((&options, rest)) = input.split_first() else { return };
    let mut world = World::new(options, input);
    for step in steps(rest) {
        match (step.flags >> 5) & 3 {
            0 => {}
            1 => world.wait(Duration::from_millis(500)),
            2 => world.wait(Duration::from_secs(4)),
            _ => world.wait(Duration::from_secs(11)),
        }
        if step.flags & 4 == 0 { world.client(&step) } else { world.server(&step) }
    }
    world.wait(IDLE_TIMEOUT);
    assert_eq!(
        (world.counters.snapshot().flows, Arc::strong_count(&world.free)),
        (0, 2),
        "a flow outlived its idle timeout, or its slot was not freed"
    );
}

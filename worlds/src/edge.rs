//! The relay and the front: the real code of flows, resume table and front, with simulated sockets.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rakwire::Instant;

use crate::Kept;
use crate::client::Ticket;
use crate::flow::{
    Flow, FlowLimits, FromClient, FromServer, ResumeTable, Secret, Sending, Setup, Source, TargetCounters,
    ToClient, TransportLimits,
};
use crate::front::{
    Admit, Admitted, CookieKey, CookieKeys, FlowId, Front, FrontCounters, FrontProtocol, NotAdmitted, Offer,
    Permit, Settings, To, Transmits,
};
use crate::protocol::{FlowInspector, Handshake, PongCache, ProtocolKind};
use crate::random::Random;
use crate::time::Now;

const TARGET: &str = "game";
/// The maximum number of datagrams that the relay sends with one system call.
const BATCH: usize = 16;
/// The time without a datagram from its client after which the front closes a flow.
const FRONT_IDLE: Duration = Duration::from_secs(20);
/// The interval of the front's timeouts.
const FRONT_TICK: Duration = Duration::from_secs(1);

/// The first ports that the relay and the front use towards the server.
const RELAY_PORTS: u16 = 30_000;
const FRONT_PORTS: u16 = 40_000;

/// Returns the next port that is not in use; 65,535 is followed by `first`.
fn next_port(next: &mut u16, first: u16, is_used: impl Fn(u16) -> bool) -> u16 {
    loop {
        let port = *next;
        *next = port.checked_add(1).unwrap_or(first);
        if !is_used(port) {
            return port;
        }
    }
}

/// Converts the world's time to the clocks of the relay and the front, and back.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }

    fn at(self, now: Instant) -> std::time::Instant {
        self.start + Duration::from_micros(now.as_micros())
    }

    fn wall(now: Instant) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000) + Duration::from_micros(now.as_micros())
    }

    /// Converts a time of the relay to the world's time, rounded up to microseconds.
    fn back(self, at: std::time::Instant) -> Instant {
        let micros = at.saturating_duration_since(self.start).as_nanos().div_ceil(1_000);
        Instant::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// A frame to the page of a flow.
pub(crate) struct Frame {
    pub(crate) client: usize,
    pub(crate) generation: u8,
    pub(crate) frame: ToClient,
}

struct RelayFlow {
    flow: Flow,
    /// The client and the generation of its connection to the relay. `None` while the page is not connected.
    page: Option<(usize, u8)>,
    secret: Secret,
    is_detached: bool,
}

/// The flows of a relay.
pub(crate) struct Relay {
    clock: Clock,
    flows: BTreeMap<u16, RelayFlow>,
    table: ResumeTable<u16>,
    counters: Arc<TargetCounters>,
    limits: FlowLimits,
    next_port: u16,
    /// The number of restarts.
    pub(crate) starts: u32,
    random: Random,
    /// False if a planted fault keeps the relay from handling timeouts.
    pub(crate) handles_timeouts: bool,
}

impl Relay {
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        Self {
            clock,
            flows: BTreeMap::new(),
            table: ResumeTable::new(),
            counters: Arc::default(),
            limits: FlowLimits::default(),
            next_port: RELAY_PORTS,
            starts: 0,
            random: Random::new(seed),
            handles_timeouts: true,
        }
    }

    /// Restarts without flows. The ports of the lost flows are the last to be reused.
    pub(crate) fn restart(&mut self) {
        self.flows.clear();
        self.table = ResumeTable::new();
        self.starts += 1;
    }

    /// Resumes the flow of a page's ticket, or opens a new flow. Returns the flow's port and ticket.
    ///
    /// # Errors
    /// The ticket was issued since the last restart, but its flow no longer exists.
    pub(crate) fn attach(
        &mut self,
        now: Instant,
        page: (usize, u8),
        ticket: Option<Ticket>,
        limits: TransportLimits,
    ) -> Result<(u16, Ticket), String> {
        let at = self.clock.at(now);
        let known = ticket.filter(|ticket| ticket.relay == self.starts);
        let found = known.and_then(|ticket| self.table.find(&ticket.secret, TARGET).copied());
        if known.is_some() && found.is_none() {
            return Err(format!("the relay has forgotten the flow of client {}", page.0));
        }
        let relay = self.starts;
        if let Some((port, flow)) = found.and_then(|port| Some((port, self.flows.get_mut(&port)?))) {
            flow.flow.handle_attached(at);
            flow.flow.set_transport_limits(limits);
            flow.page = Some(page);
            flow.is_detached = false;
            self.table.set_attached(&flow.secret);
            return Ok((port, Ticket { secret: flow.secret, relay }));
        }
        let port = next_port(&mut self.next_port, RELAY_PORTS, |port| self.flows.contains_key(&port));
        let secret = Secret::new(self.random.bytes(16).try_into().unwrap_or_default());
        let pongs = Arc::<PongCache>::default();
        let inspect = FlowInspector::new(ProtocolKind::RakNet, Handshake::default(), pongs, at);
        let setup = Setup { secret: Some(secret), inspect: Some(Box::new(inspect)), ..Setup::default() };
        let mut flow = Flow::new(self.limits, Arc::clone(&self.counters), setup, at);
        flow.set_transport_limits(limits);
        self.table.insert(secret, TARGET, port);
        self.flows.insert(port, RelayFlow { flow, page: Some(page), secret, is_detached: false });
        Ok((port, Ticket { secret, relay }))
    }

    /// Makes a flow impossible to resume, as a planted fault.
    pub(crate) fn forget(&mut self, secret: &Secret) {
        self.table.remove(secret);
    }

    pub(crate) fn handle_client(&mut self, now: Instant, port: u16, input: FromClient) {
        let at = self.clock.at(now);
        if let Some(flow) = self.flows.get_mut(&port) {
            flow.flow.handle_client(at, input);
        }
    }

    pub(crate) fn handle_server(&mut self, now: Instant, port: u16, datagram: &[u8]) {
        let at = self.clock.at(now);
        if let Some(flow) = self.flows.get_mut(&port) {
            flow.flow.handle_server(at, FromServer::Datagram(datagram));
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let at = self.clock.at(now);
        if self.handles_timeouts {
            let due = self.flows.values_mut().filter(|flow| flow.flow.poll_timeout() <= at);
            due.for_each(|flow| flow.flow.handle_timeout(at));
        }
    }

    /// Returns the datagrams to the server, each with the port of its flow.
    pub(crate) fn poll_to_server(&mut self, now: Instant) -> Vec<(u16, Vec<u8>)> {
        let (at, mut buffer, mut datagrams) = (self.clock.at(now), Vec::new(), Vec::new());
        for (port, flow) in &mut self.flows {
            while let Some(batch) = flow.flow.poll_to_server(at, BATCH, &mut buffer) {
                let count = batch.count;
                datagrams.extend(batch.contents.chunks(batch.segment).map(|part| (*port, part.to_vec())));
                flow.flow.handle_sent(count, Sending::Sent);
            }
        }
        datagrams
    }

    /// Returns the frames to the pages for which `has_room` returns true.
    pub(crate) fn poll_to_client(&mut self, now: Instant, has_room: impl Fn(usize) -> bool) -> Vec<Frame> {
        let (at, mut frames) = (self.clock.at(now), Vec::new());
        for flow in self.flows.values_mut() {
            let Some((client, generation)) = flow.page.filter(|(client, _)| has_room(*client)) else {
                continue;
            };
            while let Some(frame) = flow.flow.poll_to_client(at) {
                if let ToClient::Datagram(datagram) = &frame {
                    flow.flow.handle_sent_to_client(datagram.len());
                }
                frames.push(Frame { client, generation, frame });
            }
        }
        frames
    }

    /// Detaches the flows of lost pages and removes closed flows; returns the pages of the closed flows.
    pub(crate) fn settle(&mut self) -> Vec<(usize, u8)> {
        let mut closed = Vec::new();
        for flow in self.flows.values_mut() {
            if flow.flow.lost().is_some() && !flow.is_detached {
                flow.is_detached = true;
                flow.page = None;
                self.table.set_detached(&flow.secret);
            }
        }
        let table = &mut self.table;
        self.flows.retain(|_, flow| {
            let is_over = flow.flow.end().is_some() && !flow.flow.has_queued_to_server();
            if is_over {
                table.remove(&flow.secret);
                closed.extend(flow.page);
            }
            !is_over
        });
        closed
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        let due = self.flows.values().filter(|_| self.handles_timeouts).map(|flow| flow.flow.poll_timeout());
        due.min().map(|at| self.clock.back(at))
    }

    /// Returns the number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Checks that the queues of each flow respect their limit.
    pub(crate) fn check(&self) -> Kept {
        // In each direction, one datagram may exceed the limit.
        let most = 2 * (self.limits.queue_bytes.get() + self.limits.max_datagram);
        match self.flows.values().map(|flow| flow.flow.bytes_queued()).max() {
            Some(bytes) if bytes > most => {
                Err(format!("a flow of the relay queues {bytes} bytes, at most {most} allowed"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that no flow is left after all pages have disconnected.
    pub(crate) fn check_empty(&self) -> Kept {
        if self.flows.is_empty() && self.table.is_empty() {
            return Ok(());
        }
        Err(format!("{} flows of the relay are left, {} can be resumed", self.flows.len(), self.table.len()))
    }
}

/// Admits clients of the front while there are slots.
struct Gate {
    server: SocketAddr,
    places: Arc<()>,
    most: usize,
    pongs: Arc<PongCache>,
}

/// A permit that occupies a slot until it is dropped.
#[derive(Debug)]
struct Place {
    _held: Arc<()>,
}

impl Permit for Place {}

impl Admit for Gate {
    type Permit = Place;

    fn admit(
        &mut self,
        _now: Now,
        _client: SocketAddr,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Admitted<Place>, NotAdmitted> {
        if Arc::strong_count(&self.places) > self.most && !make_room() {
            return Err(NotAdmitted::Refused);
        }
        Ok(Admitted {
            server: self.server,
            source: Source::Shared,
            proxy_protocol: false,
            idle_timeout: FRONT_IDLE,
            max_datagram: 1_492,
            rate: None,
            permit: Place { _held: Arc::clone(&self.places) },
        })
    }

    fn offer(&self) -> Option<Offer> {
        Some(Offer { pongs: Arc::clone(&self.pongs), payload_max: 1_464, announced_to: None })
    }
}

/// The destination of a datagram from the front.
pub(crate) enum FromFront {
    Client(SocketAddr),
    /// To the server, with this port of the front as the source.
    Server(u16),
}

/// A front that uses another port towards the server for each flow.
pub(crate) struct SimulatedFront {
    clock: Clock,
    front: Front<Gate>,
    counters: Arc<FrontCounters>,
    ports: HashMap<FlowId, u16>,
    flows: HashMap<u16, FlowId>,
    next_port: u16,
    next_tick: Instant,
    server: SocketAddr,
    most: usize,
    key: u8,
}

impl SimulatedFront {
    pub(crate) fn new(clock: Clock, server: SocketAddr, most: usize) -> Self {
        let (front, counters) = make_front(server, most, 1);
        Self {
            clock,
            front,
            counters,
            ports: HashMap::new(),
            flows: HashMap::new(),
            next_port: FRONT_PORTS,
            next_tick: Instant::ZERO,
            server,
            most,
            key: 1,
        }
    }

    /// Restarts without flows, and with another cookie key if `has_new_key` is true.
    pub(crate) fn restart(&mut self, has_new_key: bool) {
        self.key = self.key.wrapping_add(u8::from(has_new_key));
        (self.front, self.counters) = make_front(self.server, self.most, self.key);
        self.ports.clear();
        self.flows.clear();
    }

    fn now(&self, now: Instant) -> Now {
        Now { at: self.clock.at(now), wall: Clock::wall(now) }
    }

    pub(crate) fn handle_client(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Vec<(FromFront, Vec<u8>)> {
        let (now, mut out) = (self.now(now), Transmits::default());
        self.front.handle_client(now, from, datagram, datagram.len(), &mut out);
        self.route(&out)
    }

    pub(crate) fn handle_server(&mut self, port: u16, datagram: &[u8]) -> Vec<(FromFront, Vec<u8>)> {
        let Some(id) = self.flows.get(&port).copied() else { return Vec::new() };
        let mut out = Transmits::default();
        self.front.handle_server(id, datagram, datagram.len(), &mut out);
        self.route(&out)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.next_tick {
            self.next_tick = now + FRONT_TICK;
            let at = self.clock.at(now);
            self.front.handle_timeout(at);
        }
        while let Some(id) = self.front.poll_closed() {
            if let Some(port) = self.ports.remove(&id) {
                self.flows.remove(&port);
            }
        }
    }

    pub(crate) const fn next(&self) -> Instant {
        self.next_tick
    }

    fn route(&mut self, out: &Transmits<'_>) -> Vec<(FromFront, Vec<u8>)> {
        let mut routed = Vec::new();
        for (to, bytes, stride) in out.iter() {
            let to = match to {
                To::Client(client) => FromFront::Client(client),
                To::Server(id) => FromFront::Server(self.port_of(id)),
            };
            routed.extend(bytes.chunks(stride.max(1)).map(|part| match to {
                FromFront::Client(client) => (FromFront::Client(client), part.to_vec()),
                FromFront::Server(port) => (FromFront::Server(port), part.to_vec()),
            }));
        }
        routed
    }

    fn port_of(&mut self, id: FlowId) -> u16 {
        if let Some(port) = self.ports.get(&id) {
            return *port;
        }
        let port = next_port(&mut self.next_port, FRONT_PORTS, |port| self.flows.contains_key(&port));
        self.ports.insert(id, port);
        self.flows.insert(port, id);
        port
    }

    /// Returns the number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.counters.snapshot().flows as usize
    }

    /// Checks that the number of flows does not exceed the number of slots.
    pub(crate) fn check(&self) -> Kept {
        let flows = self.flows();
        if flows <= self.most {
            Ok(())
        } else {
            Err(format!("the front has {flows} flows in {} slots", self.most))
        }
    }

    pub(crate) fn check_empty(&self) -> Kept {
        let flows = self.flows();
        if flows == 0 { Ok(()) } else { Err(format!("{flows} flows of the front are left")) }
    }
}

fn make_front(server: SocketAddr, most: usize, key: u8) -> (Front<Gate>, Arc<FrontCounters>) {
    let counters = Arc::<FrontCounters>::default();
    let gate = Gate { server, places: Arc::default(), most, pongs: Arc::default() };
    let keys = CookieKeys::single(CookieKey::new([key; 16]));
    let settings = Settings { protocol: FrontProtocol::RakNet, guid: 0xF, keys };
    (Front::new(settings, gate, Arc::clone(&counters)), counters)
}

/// Converts a frame from a page to the relay's input; `None` is a pong.
pub(crate) fn from_page(datagram: Option<Vec<u8>>) -> FromClient {
    datagram.map_or(FromClient::Control, |datagram| FromClient::Datagram(Bytes::from(datagram)))
}

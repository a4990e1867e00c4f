//! A seeded game behind the relay, with a client and a server of one protocol. The path between the relay and the
//! server is lossy, and the connection to the client is cut repeatedly. Every reliable message must arrive exactly
//! once, and neither side may notice more than a pause.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant as SystemInstant};

use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectionId, Event, Peer, Protocol, SendError};
use rakwire::game_protocol::{GameProtocol, Redial};
use rakwire::raknet::RakNet;
use rakwire::sim::{Conditions, Link};

use super::Broken;
use super::random::Random;
use crate::flow::{
    Flow, FlowLimits, FromClient, FromServer, ResumeTable, Secret, Sending, Setup, TargetCounters, ToClient,
};

const TARGET: &str = "game";
/// An upper limit for the number of steps of a run.
const STEPS: usize = 200_000;
/// The maximum duration of a run in simulated time.
const LIMIT: Duration = Duration::from_secs(120);
/// RakNet reserves lower values for itself.
pub const FIRST_BYTE: u8 = 0xFE;
/// The maximum total duration of all interruptions in a run in milliseconds, which is below the timeout of either
/// protocol.
const INTERRUPTION: u64 = 6_000;
/// The maximum time that the relay adds to a client's return, in addition to the round trip of the request.
const RESUME_TIME: Duration = Duration::from_millis(50);
/// The number of datagrams per call.
const BATCH_MAX: usize = 16;

/// A protocol as used in a run.
pub trait Game: Protocol {
    /// Returns a configuration that survives losses during the handshake.
    fn configure(entropy: [u8; 32]) -> Self::Config;
}

impl Game for RakNet {
    fn configure(entropy: [u8; 32]) -> Self::Config {
        Self::config(entropy)
    }
}

impl Game for GameProtocol {
    fn configure(entropy: [u8; 32]) -> Self::Config {
        let mut config = Self::config(entropy);
        config.redial = Redial::SamePort(Duration::from_millis(300));
        config
    }
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Messages that arrived, in both directions.
    pub delivered: usize,
    /// The number of resumptions.
    pub resumed: usize,
    /// The longest time between the resume request of a client and the first message of its flow.
    pub longest_return: Duration,
    /// Datagrams that the relay dropped because of their age.
    pub too_old: u64,
}

/// One side of the game.
struct Side<P: Protocol> {
    peer: Peer<'static, P>,
    id: Option<ConnectionId>,
    connections: usize,
    /// The number of messages left to send.
    left: u32,
    next_send: Instant,
    sent: u32,
    /// The number of times that each message of the other side has arrived.
    arrived: Vec<u32>,
}

/// One direction of a WebSocket: in order and without loss until it is cut.
type Pipe<T> = VecDeque<(Instant, T)>;

/// The connection between the client and the relay.
enum Connection {
    Open,
    /// The connection is cut. The relay notices the cut at one time, if at all, and the client returns at another.
    Cut {
        noticed_at: Option<Instant>,
        back_at: Instant,
    },
}

struct World<P: Protocol> {
    now: Instant,
    start: (SystemInstant, Instant),
    random: Random,
    client: Side<P>,
    server: Side<P>,
    server_address: SocketAddr,
    relay_address: SocketAddr,
    flow: Flow,
    counters: Arc<TargetCounters>,
    table: ResumeTable<u8>,
    secret: Option<Secret>,
    to_server: Link,
    from_server: Link,
    /// The latency of a frame between the client and the relay.
    latency: Duration,
    up: Pipe<Vec<u8>>,
    down: Pipe<ToClient>,
    connection: Connection,
    next_cut: Instant,
    cuts: u64,
    cuts_left: u64,
    /// True if the first frame of the current connection has arrived.
    is_greeted: bool,
    /// The time at which the client sent its resume request, or `None` while it is connected.
    asked_at: Option<Instant>,
    outcome: Outcome,
}

/// Plays one game.
///
/// # Errors
/// The violated guarantee.
pub fn run<P: Game>(seed: u64) -> Result<Outcome, Broken> {
    World::<P>::new(seed).play().map_err(|broken| format!("seed {seed}: {broken}"))
}

impl<P: Game> Side<P> {
    fn new(entropy: [u8; 32], max_incoming: u16, messages: u32, now: Instant) -> Self {
        let mut config = P::configure(entropy);
        *P::max_incoming(&mut config) = max_incoming;
        let capacity = Capacity { connections: 1, blocks: 256, block_size: 256 };
        Self {
            peer: Peer::with_capacity(capacity, config),
            id: None,
            connections: 0,
            left: messages,
            next_send: now,
            sent: 0,
            arrived: Vec::new(),
        }
    }

    /// Sends a message if one is due, and returns the time of the next one.
    fn send(&mut self, now: Instant, random: &mut Random) -> Result<(), Broken> {
        let Some(id) = self.id else { return Ok(()) };
        while self.left > 0 && self.next_send <= now {
            let length = if random.one_in(8) { 2_000 } else { 60 };
            let fill = (4..4 + random.below(length)).map(|index| index as u8);
            let message: Vec<u8> =
                [FIRST_BYTE].into_iter().chain(self.sent.to_be_bytes()).chain(fill).collect();
            self.next_send = now + Duration::from_millis(1 + random.below(150));
            match self.peer.send(now, id, &message, P::Delivery::default()) {
                Ok(_) => {
                    self.sent += 1;
                    self.left -= 1;
                }
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {}
                Err(error) => return Err(format!("a message cannot be sent: {error}")),
            }
        }
        Ok(())
    }

    /// Handles events. Received messages are counted for the other side.
    fn poll(&mut self, name: &str) -> Result<usize, Broken> {
        let mut delivered = 0;
        while let Some(event) = self.peer.poll_event() {
            match event {
                Event::Connected { id, .. } => {
                    self.connections += 1;
                    self.id.get_or_insert(id);
                }
                Event::Message { message, .. } => {
                    let bytes = message.to_vec();
                    let number = bytes.get(1..).and_then(<[u8]>::first_chunk);
                    let number = u32::from_be_bytes(*number.ok_or("a message without a number")?) as usize;
                    if bytes[5..].iter().enumerate().any(|(index, byte)| *byte != (index + 4) as u8) {
                        return Err(format!("message {number} arrived changed at the {name}"));
                    }
                    self.arrived.resize(self.arrived.len().max(number + 1), 0);
                    self.arrived[number] += 1;
                    if self.arrived[number] > 1 {
                        return Err(format!("message {number} arrived twice at the {name}"));
                    }
                    delivered += 1;
                }
                Event::ConnectFailed { reason, .. } => {
                    return Err(format!("the connection failed: {reason}"));
                }
                Event::Disconnected { reason, .. } => {
                    return Err(format!("the {name} lost its connection: {reason}"));
                }
                Event::Receipt { .. } | _ => {}
            }
        }
        if self.connections > 1 {
            return Err(format!("the {name} has {} connections", self.connections));
        }
        Ok(delivered)
    }

    fn has_all(&self, other: &Self) -> bool {
        self.left == 0
            && other.arrived.len() == self.sent as usize
            && other.arrived.iter().all(|count| *count == 1)
    }

    /// Returns the time at which this side must be called next.
    fn due(&self) -> Option<Instant> {
        let send = (self.id.is_some() && self.left > 0).then_some(self.next_send);
        self.peer.poll_timeout().into_iter().chain(send).min()
    }

    fn wake(&mut self, now: Instant) {
        if self.peer.poll_timeout().is_some_and(|at| at <= now) {
            self.peer.handle_timeout(now);
        }
    }
}

/// Returns the next item that has arrived by `now`.
fn arrived<T>(pipe: &mut Pipe<T>, now: Instant) -> Option<T> {
    pipe.front().is_some_and(|(at, _)| *at <= now).then(|| pipe.pop_front()).flatten().map(|(_, item)| item)
}

fn conditions(random: &mut Random) -> Conditions {
    Conditions {
        loss: random.below(11) as f64 / 100.0,
        duplication: random.below(3) as f64 / 100.0,
        reordering: random.below(10) as f64 / 100.0,
        latency: Duration::from_millis(random.below(20)),
        jitter: Duration::from_millis(random.below(10)),
        bottleneck: None,
        bursts: None,
    }
}

impl<P: Game> World<P> {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let now = Instant::from_micros(1_000_000);
        let [client, server] = [(); 2].map(|()| std::array::from_fn(|_| random.draw() as u8));
        let secret = Secret::new(std::array::from_fn(|_| random.draw() as u8));
        let counters = Arc::new(TargetCounters::default());
        let start = SystemInstant::now();
        let setup = Setup { secret: Some(secret), ..Setup::default() };
        let mut table = ResumeTable::new();
        table.insert(secret, TARGET, 0);
        let messages = 10 + random.below(30) as u32;
        let cuts = 1 + random.below(4);
        Self {
            now,
            start: (start, now),
            client: Side::new(client, 0, messages, now),
            server: Side::new(server, 1, messages, now),
            server_address: SocketAddr::from(([192, 0, 2, 1], 19132)),
            relay_address: SocketAddr::from(([192, 0, 2, 2], 40000)),
            flow: Flow::new(FlowLimits::default(), Arc::clone(&counters), setup, start),
            counters,
            table,
            secret: None,
            to_server: Link::new(conditions(&mut random), random.draw()),
            from_server: Link::new(conditions(&mut random), random.draw()),
            latency: Duration::from_millis(1 + random.below(60)),
            up: Pipe::new(),
            down: Pipe::new(),
            connection: Connection::Open,
            next_cut: now + Duration::from_millis(random.below(2_000)),
            cuts,
            cuts_left: cuts,
            is_greeted: false,
            asked_at: None,
            outcome: Outcome::default(),
            random,
        }
    }

    /// Returns the current time for the relay.
    fn system_now(&self) -> SystemInstant {
        self.start.0 + self.now.saturating_since(self.start.1)
    }

    fn time_of(&self, at: SystemInstant) -> Instant {
        self.start.1 + at.saturating_duration_since(self.start.0)
    }

    fn play(mut self) -> Result<Outcome, Broken> {
        self.client.peer.connect(self.now, self.server_address).map_err(|error| error.to_string())?;
        let end = self.now + LIMIT;
        for _ in 0..STEPS {
            self.act()?;
            if self.is_over() {
                return self.finish();
            }
            let next = self.next().ok_or("nothing is due before the end of the game")?;
            self.now = self.now.max(next);
            if self.now > end {
                break;
            }
        }
        Err(format!(
            "the game does not end: {} and {} messages sent, {} and {} arrived",
            self.client.sent,
            self.server.sent,
            self.server.arrived.len(),
            self.client.arrived.len()
        ))
    }

    fn is_over(&self) -> bool {
        let is_quiet = self.cuts_left == 0 && matches!(self.connection, Connection::Open) && self.is_greeted;
        is_quiet && self.client.has_all(&self.server) && self.server.has_all(&self.client)
    }

    fn finish(mut self) -> Result<Outcome, Broken> {
        let snapshot = self.counters.snapshot();
        if snapshot.resumed as usize != self.outcome.resumed || snapshot.flows != 1 {
            return Err(format!(
                "the relay counts {} resumptions of {} flows",
                snapshot.resumed, snapshot.flows
            ));
        }
        self.outcome.too_old = snapshot.drops(crate::flow::DropReason::ClientTooOld);
        Ok(self.outcome)
    }

    /// Performs everything that is due.
    fn act(&mut self) -> Result<(), Broken> {
        let now = self.now;
        self.change_connection()?;
        self.deliver()?;
        self.client.wake(now);
        self.server.wake(now);
        let system_now = self.system_now();
        if self.flow.poll_timeout() <= system_now {
            self.flow.handle_timeout(system_now);
        }
        self.client.send(now, &mut self.random)?;
        self.server.send(now, &mut self.random)?;
        self.outcome.delivered += self.client.poll("client")? + self.server.poll("server")?;
        self.transmit();
        match self.flow.end() {
            Some(end) => Err(format!("the flow ended: {end:?}")),
            None => Ok(()),
        }
    }

    /// Cuts the connection, lets the relay notice, and reconnects the client.
    fn change_connection(&mut self) -> Result<(), Broken> {
        let can_be_cut = self.can_be_cut();
        match &mut self.connection {
            Connection::Open if self.now >= self.next_cut && can_be_cut => {
                self.cuts_left -= 1;
                // Data in flight is lost.
                self.up.clear();
                self.down.clear();
                let away = Duration::from_millis(self.random.below(INTERRUPTION / self.cuts));
                let asked_at = self.now + away + self.latency;
                self.asked_at = Some(asked_at);
                let back_at = asked_at + self.latency;
                let notices = !self.random.one_in(3);
                let noticed_at = notices.then(|| self.now + Duration::from_millis(self.random.below(1_000)));
                self.connection = Connection::Cut { noticed_at, back_at };
            }
            Connection::Open => {}
            Connection::Cut { back_at, .. } if self.now >= *back_at => return self.come_back(),
            Connection::Cut { noticed_at, .. } => {
                if noticed_at.is_some_and(|at| self.now >= at) {
                    *noticed_at = None;
                    let now = self.system_now();
                    self.flow.handle_client(now, FromClient::Vanished);
                    self.secret.inspect(|secret| self.table.set_detached(secret));
                }
            }
        }
        Ok(())
    }

    /// Returns true outside of handshakes. In a handshake, neither protocol tolerates a pause as long as on a
    /// connection.
    fn can_be_cut(&self) -> bool {
        let is_connected = self.client.id.is_some() && self.server.id.is_some();
        is_connected && self.is_greeted && self.cuts_left > 0
    }

    fn come_back(&mut self) -> Result<(), Broken> {
        let secret = self.secret.ok_or("the client has no secret to resume with")?;
        if self.table.find(&secret, TARGET).is_none() || self.table.find(&secret, "other").is_some() {
            return Err("the flow is not found by its secret and its target".into());
        }
        self.table.set_attached(&secret);
        let now = self.system_now();
        // Output that the relay had written to the lost connection is also lost.
        self.down.clear();
        self.flow.handle_attached(now);
        self.outcome.resumed += 1;
        self.is_greeted = false;
        self.connection = Connection::Open;
        self.next_cut = self.now + Duration::from_millis(self.random.below(2_500));
        Ok(())
    }

    fn deliver(&mut self) -> Result<(), Broken> {
        let (now, system_now) = (self.now, self.system_now());
        while let Some(datagram) = arrived(&mut self.up, now) {
            self.flow.handle_client(system_now, FromClient::Datagram(datagram.into()));
        }
        while let Some(frame) = arrived(&mut self.down, now) {
            self.receive_frame(frame)?;
        }
        while let Some(datagram) = self.to_server.receive(now) {
            self.server.peer.handle_datagram(now, self.relay_address, &datagram);
        }
        while let Some(datagram) = self.from_server.receive(now) {
            self.flow.handle_server(system_now, FromServer::Datagram(&datagram));
        }
        Ok(())
    }

    fn receive_frame(&mut self, frame: ToClient) -> Result<(), Broken> {
        match frame {
            ToClient::Datagram(_) if !self.is_greeted => Err("a datagram preceded the flow message".into()),
            ToClient::Datagram(datagram) => {
                self.client.peer.handle_datagram(self.now, self.server_address, &datagram);
                Ok(())
            }
            ToClient::Control(text) if text.contains(r#""type":"flow""#) => {
                let resumed = text.contains(r#""resumed":true"#);
                if self.is_greeted || resumed != self.secret.is_some() {
                    return Err(format!("the flow message is wrong: {text}"));
                }
                let (_, rest) = text.split_once(r#""resume":""#).ok_or("the flow message has no secret")?;
                let secret = rest
                    .get(..22)
                    .and_then(|secret| secret.parse().ok())
                    .ok_or("the flow message has no secret")?;
                if *self.secret.get_or_insert(secret) != secret {
                    return Err("the secret has changed".into());
                }
                self.is_greeted = true;
                self.check_resumption()
            }
            ToClient::Control(_) | ToClient::Ping => Ok(()),
        }
    }

    /// Checks that a returning client has its flow again after one round trip and at most [`RESUME_TIME`].
    fn check_resumption(&mut self) -> Result<(), Broken> {
        let Some(asked_at) = self.asked_at.take() else { return Ok(()) };
        let (taken, longest) = (self.now.saturating_since(asked_at), 2 * self.latency + RESUME_TIME);
        if taken > longest {
            return Err(format!("the resumption took {taken:?}, more than {longest:?}"));
        }
        self.outcome.longest_return = self.outcome.longest_return.max(taken);
        Ok(())
    }

    fn transmit(&mut self) {
        let (now, system_now) = (self.now, self.system_now());
        let mut buffer = [0; 2_048];
        let is_open = matches!(self.connection, Connection::Open);
        while let Some(transmit) = self.client.peer.poll_transmit(now, &mut buffer) {
            if is_open {
                self.up.push_back((now + self.latency, transmit.payload.to_vec()));
            }
        }
        while let Some(transmit) = self.server.peer.poll_transmit(now, &mut buffer) {
            self.from_server.send(now, transmit.payload);
        }
        let mut batch_buffer = Vec::new();
        while let Some(batch) = self.flow.poll_to_server(system_now, BATCH_MAX, &mut batch_buffer) {
            batch.contents.chunks(batch.segment).for_each(|datagram| self.to_server.send(now, datagram));
            let count = batch.count;
            self.flow.handle_sent(count, Sending::Sent);
        }
        // The relay has not noticed the loss yet, and writes to the lost connection.
        while let Some(frame) = self.flow.poll_to_client(system_now) {
            if is_open {
                self.down.push_back((now + self.latency, frame));
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        let connection = match &self.connection {
            Connection::Open => self.can_be_cut().then_some(self.next_cut),
            Connection::Cut { noticed_at, back_at } => {
                Some(noticed_at.map_or(*back_at, |at| at.min(*back_at)))
            }
        };
        let times = [
            connection,
            self.client.due(),
            self.server.due(),
            self.up.front().map(|(at, _)| *at),
            self.down.front().map(|(at, _)| *at),
            self.to_server.next_arrival(),
            self.from_server.next_arrival(),
            Some(self.time_of(self.flow.poll_timeout())),
        ];
        times.into_iter().flatten().min()
    }
}

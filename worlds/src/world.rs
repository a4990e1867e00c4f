//! A running world: its parts, its clock, and the checks of its guarantees.

use core::time::Duration;
use std::collections::HashMap;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::raknet::ConnectionId;
use rakwire::sim::{Conditions, Link};

use crate::client::Client;
use crate::edge::{Clock, Relay, SimulatedFront};
use crate::host::Host;
use crate::plan::{Plan, Route};
use crate::plant::Plant;
use crate::random::Random;
use crate::traffic::{Attempt, Received};
use crate::usage::Usage;
use crate::{Broken, Kept, peers};

/// The addresses of the server, the front and the relay. The server does not apply its limits per address to private
/// addresses, so the front and the relay use such addresses towards the server.
pub(crate) const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)), 19_132);
pub(crate) const FRONT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 2)), 19_132);
pub(crate) const FRONT_INSIDE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 2);
pub(crate) const RELAY_INSIDE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 3);

/// The interval at which the use of memory is sampled, and the records of closed connections are freed.
const REVIEW: Duration = Duration::from_secs(1);
/// The interval at which applications send.
const TICK: Duration = Duration::from_millis(25);
/// The time limit for the delivery of all messages after the faults have stopped.
const SETTLE: Duration = Duration::from_secs(120);
/// The time limit for freeing all connections and flows after all clients have disconnected.
const CLOSE: Duration = Duration::from_secs(90);
/// The number of consecutive steps without an advance of the clock after which a world counts as stuck.
const STEPS_AT_ONCE: u32 = 20_000;
/// The conditions of the network between relay, front and server.
pub(crate) const INSIDE: Conditions = Conditions {
    loss: 0.0,
    bursts: None,
    duplication: 0.0,
    reordering: 0.0,
    latency: Duration::from_millis(1),
    jitter: Duration::ZERO,
    bottleneck: None,
};

/// The statistics of a world that has kept its guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The number of delivered messages.
    pub messages: usize,
    /// The number of connections on which the server received a message.
    pub connections: usize,
    /// The number of faults that began.
    pub faults: usize,
    /// The virtual time in seconds.
    pub seconds: u64,
}

impl Outcome {
    /// Adds another outcome.
    pub(crate) const fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.connections += other.connections;
        self.faults += other.faults;
        self.seconds += other.seconds;
    }
}

/// A phase of a world.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Faults begin and all applications send.
    Active,
    /// No faults begin. Each connection sends a last message. Clients that send much continue until the others have
    /// received everything.
    Settling { others_are_done: bool },
    /// All clients have disconnected.
    Closing,
}

/// The restoration at the end of a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Restores the access network of this client.
    Client(usize),
    /// Restores the network between relay, front and server.
    Inside,
    /// Starts the server again.
    Server,
}

/// A running world.
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) plant: Option<Plant>,
    pub(crate) now: Instant,
    pub(crate) start: Instant,
    pub(crate) phase: Phase,
    pub(crate) random: Random,
    pub(crate) clients: Vec<Option<Client>>,
    pub(crate) attempts: Vec<Attempt>,
    /// The number of the first attempt in `attempts`.
    pub(crate) first_attempt: usize,
    pub(crate) server: Host,
    /// The time at which a stopped server starts again.
    pub(crate) server_is_down_until: Option<Instant>,
    /// The server's connections, each with the index of its attempt, which is known after the first message.
    pub(crate) server_connections: HashMap<ConnectionId, Option<usize>>,
    pub(crate) relay: Relay,
    pub(crate) front: SimulatedFront,
    /// The network from relay and front to the server.
    pub(crate) to_server: Link,
    /// The network from the server to relay and front.
    pub(crate) from_server: Link,
    pub(crate) next_fault: usize,
    pub(crate) endings: Vec<(Instant, Ending)>,
    pub(crate) next_tick: Instant,
    /// A message that the planted fault `SwapsMessages` holds back.
    pub(crate) held: Option<(ConnectionId, Received)>,
    /// The number of messages that the server has received; planted faults affect every 40th.
    pub(crate) received: u64,
    /// The memory, connections and flows in use.
    pub(crate) usage: Usage,
    next_review: Instant,
}

impl World {
    /// Creates the world of a plan, optionally with a planted fault.
    #[must_use]
    pub fn new(plan: Plan, plant: Option<Plant>) -> Self {
        let mut random = Random::new(plan.seed ^ 0x0BAD_5EED);
        let start = Instant::from_micros(1_000_000);
        let clock = Clock::new();
        let places = plan.clients.len() + 2;
        let clients = plan.clients.iter().zip(0..);
        let clients =
            clients.map(|(client, number)| client.as_ref().map(|client| Client::new(&plan, client, number)));
        let mut world = Self {
            clients: clients.collect(),
            server: Host::new(peers::server(&plan, &mut random)),
            relay: Relay::new(clock, random.draw()),
            front: SimulatedFront::new(clock, SERVER, places),
            to_server: Link::new(INSIDE, random.draw()),
            from_server: Link::new(INSIDE, random.draw()),
            plan,
            plant,
            now: start,
            start,
            phase: Phase::Active,
            random,
            attempts: Vec::new(),
            first_attempt: 0,
            server_is_down_until: None,
            server_connections: HashMap::new(),
            next_fault: 0,
            endings: Vec::new(),
            next_tick: start,
            held: None,
            received: 0,
            usage: Usage::default(),
            next_review: start,
        };
        world.relay.handles_timeouts = plant != Some(Plant::KeepsFlow);
        if plant == Some(Plant::MissesTimeouts) {
            world.clients.iter_mut().flatten().for_each(|client| client.host.handles_timeouts = false);
        }
        world
    }

    /// Runs the world to its end.
    ///
    /// # Errors
    /// The violated guarantee, with the virtual time.
    pub fn run(mut self) -> Result<Outcome, Broken> {
        self.live().map_err(|broken| {
            let millis = self.now.saturating_since(self.start).as_millis();
            format!("after {millis} ms: {broken}")
        })
    }

    /// Runs all phases: the faults of the plan, the delivery of all messages, and the disconnection of all clients.
    pub(crate) fn live(&mut self) -> Result<Outcome, Broken> {
        self.run_until(self.start + self.plan.active, |_| false)?;
        self.stop_faults();
        self.phase = Phase::Settling { others_are_done: false };
        self.settle(|client| !client.sends_much())?;
        self.phase = Phase::Settling { others_are_done: true };
        self.settle(|_| true)?;
        self.phase = Phase::Closing;
        self.disconnect_all();
        if !self.run_until(self.now + CLOSE, Self::is_empty)? {
            return Err(self.describe_rest());
        }
        self.check_memory()?;
        Ok(Outcome {
            messages: self.attempts.iter().map(Attempt::arrived).sum(),
            connections: self.attempts.iter().filter(|attempt| attempt.was_reached).count(),
            faults: self.next_fault,
            seconds: self.now.saturating_since(self.start).as_secs(),
        })
    }

    /// Runs until the clients selected by `which` are connected and all their messages have arrived.
    fn settle(&mut self, which: impl Fn(&Client) -> bool) -> Kept {
        let is_done = |world: &Self| {
            let mut clients = world.clients.iter().flatten().filter(|client| which(client));
            clients.all(|client| world.is_settled(client))
        };
        if self.run_until(self.now + SETTLE, is_done)? {
            return Ok(());
        }
        let late =
            self.clients.iter().zip(0..).filter_map(|(client, number)| Some((client.as_ref()?, number)));
        let late = late.filter(|(client, _)| which(client) && !self.is_settled(client));
        let late: Vec<String> = late.map(|(client, number)| self.describe_client(client, number)).collect();
        Err(format!(
            "not everything was delivered {} s after the last fault: {}",
            SETTLE.as_secs(),
            late.join("; ")
        ))
    }

    fn is_settled(&self, client: &Client) -> bool {
        let attempt = client.current.filter(|current| current.is_open).map(|current| current.attempt);
        attempt.and_then(|attempt| self.attempts.get(attempt)).is_some_and(|attempt| {
            attempt.server_side.is_some() && attempt.up.is_settled() && attempt.down.is_settled()
        })
    }

    fn describe_client(&self, client: &Client, number: usize) -> String {
        let (route, last) = (client.plan.route, &client.last_end);
        let Some(current) = client.current else {
            return format!("client {number} ({route:?}) has no connection, last reason: {last}");
        };
        let attempt = &self.attempts[current.attempt];
        let (up, down) = (attempt.up.describe(), attempt.down.describe());
        let (open, known) = (current.is_open, attempt.server_side.is_some());
        format!(
            "client {number} ({route:?}), attempt {}, open: {open}, message at server: {known}, last reason: {last}, up: {up}, down: {down}",
            attempt.number()
        )
    }

    /// Runs until `is_done` returns true, but at most until `end`. Returns its last result.
    pub(crate) fn run_until(
        &mut self,
        end: Instant,
        is_done: impl Fn(&Self) -> bool,
    ) -> Result<bool, Broken> {
        let mut steps = 0;
        while self.now < end {
            if is_done(self) {
                return Ok(true);
            }
            let before = self.now;
            self.step(end)?;
            steps = if self.now == before { steps + 1 } else { 0 };
            if steps > STEPS_AT_ONCE {
                return Err("events occur endlessly without an advance of the clock".to_owned());
            }
        }
        Ok(is_done(self))
    }

    /// Handles everything that is due and advances the clock to the next event.
    fn step(&mut self, end: Instant) -> Kept {
        self.apply_faults();
        self.receive();
        self.handle_timeouts();
        self.handle_events()?;
        if self.now >= self.next_tick {
            self.next_tick = self.now + TICK;
            self.open_carriers()?;
            self.close_carriers();
            self.connect();
            self.send()?;
        }
        if self.now >= self.next_review {
            self.next_review = self.now + REVIEW;
            self.review();
        }
        self.transmit();
        self.check()?;
        let next = self.next().unwrap_or(end).min(end);
        self.now = self.now.max(next);
        Ok(())
    }

    fn next(&self) -> Option<Instant> {
        let clients = self.clients.iter().flatten();
        let of_clients = clients.flat_map(|client| {
            // A client that waits for capacity in its stream continues when the stream delivers data.
            let host = client.host.next(self.now).filter(|_| client.up.has_room());
            [host, client.up.next_arrival(), client.down.next_arrival()]
        });
        let fault = self.plan.faults.get(self.next_fault).filter(|_| self.phase == Phase::Active);
        let others = [
            self.server.next(self.now).filter(|_| self.server_is_down_until.is_none()),
            self.to_server.next_arrival(),
            self.from_server.next_arrival(),
            self.relay.next(),
            Some(self.front.next()),
            Some(self.next_tick),
            fault.map(|fault| self.start + fault.at),
            self.endings.iter().map(|(at, _)| *at).min(),
        ];
        of_clients.chain(others).flatten().min()
    }

    /// Samples the blocks, connections and flows in use, and frees the records of closed connections.
    fn review(&mut self) {
        let peers = self.clients.iter().flatten().map(|client| &client.host.peer).chain([&self.server.peer]);
        let blocks = peers.map(|peer| peer.blocks() - peer.blocks_available()).sum();
        let connections = self.server.peer.connections().count();
        self.usage.note(blocks, connections, self.relay.flows() + self.front.flows());
        let current: Vec<usize> =
            self.clients.iter().flatten().filter_map(|client| Some(client.current?.attempt)).collect();
        let now = self.now;
        let ended = self
            .attempts
            .iter_mut()
            .enumerate()
            .filter(|(number, attempt)| attempt.server_side.is_none() && !current.contains(number));
        ended.for_each(|(_, attempt)| attempt.handle_end(now));
    }

    fn check(&self) -> Kept {
        let (free, all) = (self.server.peer.blocks_available(), self.server.peer.blocks());
        if free > all {
            return Err(format!("more blocks are free than exist: {free} of {all}"));
        }
        self.relay.check()?;
        self.front.check()
    }

    fn check_memory(&self) -> Kept {
        let peers = self.clients.iter().flatten().map(|client| &client.host.peer).chain([&self.server.peer]);
        for peer in peers {
            let (free, all) = (peer.blocks_available(), peer.blocks());
            if free != all {
                return Err(format!(
                    "only {free} of {all} blocks are free after all connections have closed"
                ));
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        let mut peers =
            self.clients.iter().flatten().map(|client| &client.host.peer).chain([&self.server.peer]);
        peers.all(|peer| peer.connections().next().is_none())
            && self.relay.check_empty().is_ok()
            && self.front.check_empty().is_ok()
    }

    fn describe_rest(&self) -> Broken {
        let of_server = self.server.peer.connections().count();
        let of_clients: usize =
            self.clients.iter().flatten().map(|client| client.host.peer.connections().count()).sum();
        let rest = [self.relay.check_empty(), self.front.check_empty()].into_iter().filter_map(Result::err);
        let mut rest: Vec<String> = rest.collect();
        rest.push(format!("{of_server} connections of the server and {of_clients} of clients are left"));
        rest.join("; ")
    }
}

impl Client {
    /// Returns true if the client sends more than ten messages per tick, which fills its memory.
    pub(crate) const fn sends_much(&self) -> bool {
        self.plan.messages > 10
    }

    pub(crate) fn is_relayed(&self) -> bool {
        self.plan.route.is_relayed()
    }

    /// Returns the address to which the client's peer connects.
    pub(crate) fn remote(&self) -> SocketAddr {
        if self.plan.route == Route::Front { FRONT } else { SERVER }
    }
}

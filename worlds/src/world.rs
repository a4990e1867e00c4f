//! A world that runs: its parts, its clock, and the guarantees that are checked.

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

/// The addresses of the server, the front and the relay. Those that the server sees of front and relay are private, so
/// that it does not limit their clients as those of one household.
pub(crate) const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)), 19_132);
pub(crate) const FRONT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 2)), 19_132);
pub(crate) const FRONT_INSIDE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 2);
pub(crate) const RELAY_INSIDE: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 3);

/// The interval at which the use of memory is noted, and connections that have ended are forgotten.
const REVIEW: Duration = Duration::from_secs(1);
/// The interval at which applications send.
const TICK: Duration = Duration::from_millis(25);
/// The time within which everything is delivered once the faults have stopped.
const SETTLE: Duration = Duration::from_secs(120);
/// The time within which nothing is left once all clients have disconnected.
const CLOSE: Duration = Duration::from_secs(90);
/// The number of steps at one time after which a world counts as stuck.
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

/// The numbers of a world that has kept its guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Messages that arrived.
    pub messages: usize,
    /// Connections that were opened.
    pub connections: usize,
    /// Faults that began.
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

/// A part of a world's life.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Faults begin and all applications send.
    Active,
    /// There are no faults. Each connection sends a last message, and those that send much continue, until the others
    /// have everything.
    Settling { others_are_done: bool },
    /// All clients have disconnected.
    Closing,
}

/// The end of a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The access network of this client is as before.
    Client(usize),
    /// The network between relay, front and server is as before.
    Inside,
    /// The server restarts.
    Server,
}

/// A world.
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) plant: Option<Plant>,
    pub(crate) now: Instant,
    pub(crate) start: Instant,
    pub(crate) phase: Phase,
    pub(crate) random: Random,
    pub(crate) clients: Vec<Option<Client>>,
    pub(crate) attempts: Vec<Attempt>,
    /// The number of the first of them.
    pub(crate) first_attempt: usize,
    pub(crate) server: Host,
    /// The time until which the server does not run, if it is about to restart.
    pub(crate) server_is_down_until: Option<Instant>,
    /// The server's connections, and the index of the attempt that each belongs to, once a message has arrived.
    pub(crate) server_connections: HashMap<ConnectionId, Option<usize>>,
    pub(crate) relay: Relay,
    pub(crate) front: SimulatedFront,
    /// From relay and front to the server, and back.
    pub(crate) to_server: Link,
    pub(crate) from_server: Link,
    pub(crate) next_fault: usize,
    pub(crate) endings: Vec<(Instant, Ending)>,
    pub(crate) next_tick: Instant,
    /// A message that a plant holds back.
    pub(crate) held: Option<(ConnectionId, Received)>,
    /// Messages at the server, by which plants choose.
    pub(crate) received: u64,
    /// The memory, connections and flows in use.
    pub(crate) usage: Usage,
    next_review: Instant,
}

impl World {
    /// Creates the world of a plan, with a planted fault or none.
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
    /// The guarantee that was broken, with the virtual time.
    pub fn run(mut self) -> Result<Outcome, Broken> {
        self.live().map_err(|broken| {
            let millis = self.now.saturating_since(self.start).as_millis();
            format!("after {millis} ms: {broken}")
        })
    }

    /// Runs the faults of the plan, and until everything is delivered and nothing is left.
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

    /// Runs until these clients are connected and everything has arrived.
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
        Err(format!("not settled {} s after the last fault: {}", SETTLE.as_secs(), late.join("; ")))
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
            return format!("client {number} ({route:?}) has no connection: {last}");
        };
        let attempt = &self.attempts[current.attempt];
        let (up, down) = (attempt.up.describe(), attempt.down.describe());
        let (open, known) = (current.is_open, attempt.server_side.is_some());
        format!(
            "client {number} ({route:?}), attempt {}, open {open}, known to the server {known}, before: {last}, up: {up}, down: {down}",
            attempt.number()
        )
    }

    /// Runs until `end`, or until `is_done`; returns true if so.
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
                return Err("the clock stands still: something is due for ever".to_owned());
            }
        }
        Ok(is_done(self))
    }

    /// Does everything that is due, and advances the clock.
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
            // A client that waits for its stream continues when the stream has delivered something.
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

    /// Notes what is in use, and forgets connections that have ended.
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
            return Err(format!("{free} of {all} blocks are free"));
        }
        self.relay.check()?;
        self.front.check()
    }

    fn check_memory(&self) -> Kept {
        let peers = self.clients.iter().flatten().map(|client| &client.host.peer).chain([&self.server.peer]);
        for peer in peers {
            let (free, all) = (peer.blocks_available(), peer.blocks());
            if free != all {
                return Err(format!("{free} of {all} blocks are free after the last connection"));
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
    /// Returns true if the client uses all of its memory.
    pub(crate) const fn sends_much(&self) -> bool {
        self.plan.messages > 10
    }

    pub(crate) fn is_relayed(&self) -> bool {
        self.plan.route.is_relayed()
    }

    /// Returns the address to which it connects.
    pub(crate) fn remote(&self) -> SocketAddr {
        if self.plan.route == Route::Front { FRONT } else { SERVER }
    }
}

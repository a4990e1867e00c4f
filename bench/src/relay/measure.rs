//! One measurement each, with programs of its own.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};

use super::client::{Client, UdpClient, WebSocketClient};
use super::game_server::GameServer;
use super::load::{Load, Outcome, Pace};
use super::programs::{self, Listening};
use super::socket::Calls;
use crate::core_only::Effort;
use crate::many_connections::allow_sockets;
use crate::process::{Cores, Program};
use crate::udp_baseline;

/// Clients in all measurements but those of idle clients and of players.
const CLIENTS: usize = 16;
/// Packets on their way, for each of them: all together fit into the buffer of a UDP socket.
const WINDOW: u32 = 8;
/// The same where they leave in bursts.
const BURST: u32 = 32;
/// Packets that a player sends in a second.
const PLAYER_RATE: f64 = 60.0;

/// What is on the way of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Relay,
    WebSocketEcho,
    /// No program, only the system's UDP.
    PlainUdp,
}

/// What a program did under a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    /// CPU seconds.
    cpu: f64,
}

impl Measured {
    /// Packets in both directions together, for each second of CPU time.
    pub(super) fn per_core(&self) -> f64 {
        2.0 * self.outcome.echoed as f64 / self.cpu.max(1e-6)
    }

    /// Packets that came back, per second.
    pub(super) fn echoes(&self) -> f64 {
        self.outcome.echoed as f64 / self.outcome.seconds.max(1e-6)
    }
}

/// How to measure.
#[derive(Debug)]
pub(super) struct Measure {
    cores: Cores,
    effort: Effort,
}

impl Measure {
    pub(super) fn new(cores: Cores, effort: Effort) -> Result<Self> {
        let measure = Self { cores, effort };
        allow_sockets(measure.idle_clients() as u64 + 64)?;
        Ok(measure)
    }

    fn duration(&self) -> Duration {
        Duration::from_millis(if self.effort == Effort::Quick { 100 } else { 1_000 })
    }

    pub(super) const fn idle_clients(&self) -> usize {
        if matches!(self.effort, Effort::Quick) { 160 } else { 8_000 }
    }

    pub(super) const fn players(&self) -> usize {
        if matches!(self.effort, Effort::Quick) { 20 } else { 200 }
    }

    /// How many packets of `size` bytes go through.
    pub(super) fn throughput(&self, way: Way, size: usize) -> Result<Measured> {
        let (program, mut load) = self.start(way, CLIENTS, size)?;
        self.under_load(program.as_ref(), &mut load, Pace::Window(WINDOW))
    }

    /// Round trips of packets of 100 bytes at `rate` echoes a second.
    pub(super) fn round_trips(&self, way: Way, rate: f64) -> Result<Outcome> {
        let (program, mut load) = self.start(way, CLIENTS, 100)?;
        Ok(self.under_load(program.as_ref(), &mut load, Pace::Rate(rate))?.outcome)
    }

    /// How many packets of 100 bytes go through the front, from UDP to UDP.
    pub(super) fn front(&self, calls: Calls) -> Result<Measured> {
        let mut server = GameServer::bind(calls)?;
        let front = programs::front(self.cores.receiver, server.local_addr()?)?;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let client = UdpClient::through_front(front.address, calls, &mut server)?;
            clients.push(Box::new(client) as Box<dyn Client>);
        }
        let window = if calls == Calls::Bursts { BURST } else { WINDOW };
        let mut load = Load::new(clients, Some(server), 100);
        self.under_load(Some(&front.program), &mut load, Pace::Window(window))
    }

    /// Datagrams of `size` bytes that arrive per second where one core sends and another receives, each by a call.
    pub(super) fn plain_udp(&self, size: usize) -> Result<f64> {
        let (millis, size) = (self.duration().as_millis().to_string(), size.to_string());
        udp_baseline::flood(self.cores, programs::LONGEST, &["--millis", &millis, "--size", &size])
    }

    /// Bytes that each idle client takes.
    pub(super) fn idle_memory(&self, way: Way) -> Result<f64> {
        let count = self.idle_clients();
        let (server, program) = self.program(way, count)?;
        let Some(Listening { program, address }) = program else { bail!("plain UDP keeps no clients") };
        let before = program.memory()?;
        let mut load = Load::new(websockets(address, count)?, server, 100);
        // A packet of each, and then silence: a client that has never played is not yet one.
        load.run(Pace::Rate(count as f64), Duration::from_secs(1))?;
        load.run(Pace::Rate(0.0), self.duration())?;
        Ok(program.memory()?.saturating_sub(before) as f64 / count as f64)
    }

    /// The share of a core that 1,000 players take, computed from fewer.
    pub(super) fn players_cpu(&self, way: Way) -> Result<f64> {
        let count = self.players();
        let (program, mut load) = self.start(way, count, 100)?;
        let rate = count as f64 * PLAYER_RATE;
        let measured = self.under_load(program.as_ref(), &mut load, Pace::Rate(rate))?;
        Ok(measured.cpu / measured.outcome.seconds * 1_000.0 / count as f64)
    }

    /// Starts what is on the way, and connects clients.
    fn start(&self, way: Way, count: usize, size: usize) -> Result<(Option<Program>, Load)> {
        let (server, listening) = self.program(way, count)?;
        let clients = match (&listening, &server) {
            (Some(listening), _) => websockets(listening.address, count)?,
            (None, Some(server)) => direct(server.local_addr()?, count)?,
            (None, None) => bail!("there is nobody to send to"),
        };
        Ok((listening.map(|listening| listening.program), Load::new(clients, server, size)))
    }

    /// The game server and the program of a way.
    fn program(&self, way: Way, clients: usize) -> Result<(Option<GameServer>, Option<Listening>)> {
        if way == Way::WebSocketEcho {
            return Ok((None, Some(programs::websocket_echo(self.cores.receiver)?)));
        }
        let server = GameServer::bind(Calls::Single)?;
        let target = server.local_addr()?;
        let relay = (way == Way::Relay).then(|| programs::relay(self.cores.receiver, target, clients));
        Ok((Some(server), relay.transpose()?))
    }

    fn under_load(&self, program: Option<&Program>, load: &mut Load, pace: Pace) -> Result<Measured> {
        let cpu = || program.map_or(Ok(Duration::ZERO), Program::cpu);
        // Buffers grow and caches fill first.
        load.run(pace, self.duration() / 4)?;
        let before = cpu()?;
        let outcome = load.run(pace, self.duration())?;
        let cpu = cpu()?.saturating_sub(before).as_secs_f64();
        if outcome.echoed == 0 {
            bail!("not one of {} packets came back", outcome.sent);
        }
        Ok(Measured { outcome, cpu })
    }
}

fn websockets(address: SocketAddr, count: usize) -> Result<Vec<Box<dyn Client>>> {
    let client = |_| Ok(Box::new(WebSocketClient::connect(address)?) as Box<dyn Client>);
    (0..count).map(client).collect()
}

fn direct(address: SocketAddr, count: usize) -> Result<Vec<Box<dyn Client>>> {
    let client = |_| Ok(Box::new(UdpClient::direct(address, Calls::Single)?) as Box<dyn Client>);
    (0..count).map(client).collect()
}

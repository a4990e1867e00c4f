//! Individual measurements. Each starts its own programs.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};

use super::client::{Client, UdpClient, WebSocketClient};
use super::game_server::GameServer;
use super::load::{Load, Outcome, Pace};
use super::programs::{self, Listening};
use super::returning::ReturningClient;
use super::socket::Calls;
use super::websockify::{self, StreamClient, TcpEcho};
use crate::core_only::Effort;
use crate::many_connections::allow_sockets;
use crate::process::{Cores, Program};
use crate::udp_baseline;

/// The number of clients, except for idle clients and players.
const CLIENTS: usize = 16;
/// The packets in flight per client. Those of all clients fit into the buffer of a UDP socket.
const WINDOW: u32 = 8;
/// The packets in flight per client if several are sent with one call.
const BURST: u32 = 32;
/// The default packet size in bytes.
const SIZE: usize = 100;
/// The number of times that a client resumes its flow in one measurement.
const RETURNS: usize = 20;
/// The packet rate of a player, per second.
const PLAYER_RATE: f64 = 60.0;

/// The measured program between the clients and the echo of their packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Relay,
    WebSocketEcho,
    /// websockify in front of a TCP server that echoes everything.
    Websockify,
    /// A UDP server that echoes each datagram with its own call.
    UdpEcho,
    /// No program: the clients send UDP directly to the game server.
    Direct,
}

/// The servers and programs that a `Way` needs.
struct Path {
    server: Option<GameServer>,
    /// Kept alive because dropping it stops the server.
    _tcp: Option<TcpEcho>,
    listening: Option<Listening>,
}

impl Path {
    const fn to(listening: Listening) -> Self {
        Self { server: None, _tcp: None, listening: Some(listening) }
    }

    fn program(&self) -> Option<&Program> {
        self.listening.as_ref().map(|listening| &listening.program)
    }
}

/// The result of a load, and the CPU time that the measured program took for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    /// The CPU time in seconds.
    cpu: f64,
}

impl Measured {
    /// Returns the packets per second of CPU time, the sum of both directions.
    pub(super) fn per_core(&self) -> f64 {
        2.0 * self.outcome.echoed as f64 / self.cpu.max(1e-6)
    }

    /// Returns the number of echoed packets per second.
    pub(super) fn echoes(&self) -> f64 {
        self.outcome.echoed as f64 / self.outcome.seconds.max(1e-6)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.cpu / self.outcome.seconds.max(1e-6);
        write!(f, "{:.0} echoed packets per second; the relay used {share:.0} % of its core", self.echoes())
    }
}

/// The settings of the measurements.
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

    /// Measures the throughput of packets of `size` bytes.
    pub(super) fn throughput(&self, way: Way, size: usize) -> Result<Measured> {
        self.measured(way, CLIENTS, size, Pace::Window(WINDOW))
    }

    /// Measures round trips of packets of 100 bytes at `rate` echoes per second.
    pub(super) fn round_trips(&self, way: Way, rate: f64) -> Result<Outcome> {
        Ok(self.measured(way, CLIENTS, SIZE, Pace::Rate(rate))?.outcome)
    }

    /// Measures the throughput of packets of 100 bytes from UDP clients through the relay's UDP front.
    pub(super) fn front(&self, calls: Calls) -> Result<Measured> {
        let mut server = GameServer::bind(calls)?;
        let front = programs::front(self.cores.receiver, server.local_addr()?)?;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let client = UdpClient::through_front(front.address, calls, &mut server)?;
            clients.push(Box::new(client) as Box<dyn Client>);
        }
        let window = if calls == Calls::Bursts { BURST } else { WINDOW };
        let mut load = Load::new(clients, Some(server), SIZE);
        self.under_load(Some(&front.program), &mut load, Pace::Window(window))
    }

    /// Measures how long it takes to resume a flow. Returns the longest of several attempts in microseconds.
    ///
    /// The time starts before the new connection is opened and ends when a packet has been echoed over it. The
    /// round-trip time of a packet is subtracted.
    pub(super) fn resumption(&self) -> Result<f64> {
        let mut server = GameServer::bind(Calls::Single)?;
        let relay = programs::relay(self.cores.receiver, server.local_addr()?, 1)?;
        let mut client = ReturningClient::connect(relay.address, &mut server)?;
        let mut longest = 0.0_f64;
        for _ in 0..RETURNS {
            let round_trip = client.round_trip(&[7; SIZE], &mut server)?;
            let time = client.come_back(&[7; SIZE], &mut server)?;
            longest = longest.max(time.saturating_sub(round_trip).as_secs_f64() * 1e6);
        }
        Ok(longest)
    }

    /// Measures how many datagrams of `size` bytes one core sends to another per second, with one call each.
    pub(super) fn udp_flood(&self, size: usize) -> Result<f64> {
        let (millis, size) = (self.duration().as_millis().to_string(), size.to_string());
        udp_baseline::flood(self.cores, programs::LONGEST, &["--millis", &millis, "--size", &size])
    }

    /// Measures the memory that the program needs per idle WebSocket client, in bytes.
    pub(super) fn idle_memory(&self, way: Way) -> Result<f64> {
        let count = self.idle_clients();
        let mut path = self.path(way, count)?;
        let server = path.server.take();
        let Some(Listening { program, address }) = path.listening else {
            bail!("there is no program whose memory could be measured")
        };
        let before = program.memory()?;
        let mut load = Load::new(websockets(address, count)?, server, SIZE);
        // Every client sends one packet first, because the program allocates some memory only for active clients.
        load.run(Pace::Rate(count as f64), Duration::from_secs(1))?;
        load.run(Pace::Rate(0.0), self.duration())?;
        Ok(program.memory()?.saturating_sub(before) as f64 / count as f64)
    }

    /// Measures the CPU time of a few players and returns the number of cores that 1,000 players would need.
    pub(super) fn players_cpu(&self, way: Way) -> Result<f64> {
        let count = self.players();
        let measured = self.measured(way, count, SIZE, Pace::Rate(count as f64 * PLAYER_RATE))?;
        Ok(measured.cpu / measured.outcome.seconds * 1_000.0 / count as f64)
    }

    fn measured(&self, way: Way, count: usize, size: usize, pace: Pace) -> Result<Measured> {
        let mut path = self.path(way, count)?;
        let server = path.server.take();
        let listening = path.listening.as_ref().map(|listening| listening.address);
        let clients = match (way, listening, &server) {
            (Way::Relay | Way::WebSocketEcho, Some(address), _) => websockets(address, count)?,
            (Way::Websockify, Some(address), _) => streams(address, count, size)?,
            (Way::UdpEcho, Some(address), _) => direct(address, count)?,
            (_, _, Some(server)) => direct(server.local_addr()?, count)?,
            (_, _, None) => bail!("{way:?} has no address to send to"),
        };
        self.under_load(path.program(), &mut Load::new(clients, server, size), pace)
    }

    /// Starts the servers and programs that `way` needs, for up to `count` clients.
    fn path(&self, way: Way, count: usize) -> Result<Path> {
        let core = self.cores.receiver;
        Ok(match way {
            Way::WebSocketEcho => Path::to(programs::websocket_echo(core)?),
            Way::UdpEcho => Path::to(programs::udp_echo(core)?),
            Way::Websockify => {
                let server = TcpEcho::start()?;
                let listening = websockify::start(core, server.address)?;
                Path { _tcp: Some(server), ..Path::to(listening) }
            }
            Way::Direct => {
                Path { server: Some(GameServer::bind(Calls::Single)?), _tcp: None, listening: None }
            }
            Way::Relay => {
                let server = GameServer::bind(Calls::Single)?;
                let relay = programs::relay(core, server.local_addr()?, count)?;
                Path { server: Some(server), ..Path::to(relay) }
            }
        })
    }

    fn under_load(&self, program: Option<&Program>, load: &mut Load, pace: Pace) -> Result<Measured> {
        let cpu = || program.map_or(Ok(Duration::ZERO), Program::cpu);
        // A warm-up run, in which buffers grow and caches fill.
        load.run(pace, self.duration() / 4)?;
        let before = cpu()?;
        let outcome = load.run(pace, self.duration())?;
        let cpu = cpu()?.saturating_sub(before).as_secs_f64();
        if outcome.echoed == 0 {
            bail!("none of {} packets was echoed", outcome.sent);
        }
        Ok(Measured { outcome, cpu })
    }
}

fn websockets(address: SocketAddr, count: usize) -> Result<Vec<Box<dyn Client>>> {
    let client = |_| Ok(Box::new(WebSocketClient::connect(address)?) as Box<dyn Client>);
    (0..count).map(client).collect()
}

fn streams(address: SocketAddr, count: usize, size: usize) -> Result<Vec<Box<dyn Client>>> {
    let client = |_| Ok(Box::new(StreamClient::connect(address, size)?) as Box<dyn Client>);
    (0..count).map(client).collect()
}

fn direct(address: SocketAddr, count: usize) -> Result<Vec<Box<dyn Client>>> {
    let client = |_| Ok(Box::new(UdpClient::direct(address, Calls::Single)?) as Box<dyn Client>);
    (0..count).map(client).collect()
}

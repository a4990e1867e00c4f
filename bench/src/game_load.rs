//! A load generator for game servers: many players of the snowball fight in one process, each with its own socket.
//!
//! The players join and walk about. They ignore the snapshots, because only the server is measured.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use rakwire::game_protocol::{Capacity, Config, ConnectionId, Event, Peer, Reliability};
use snowfight::client::{Client, Input};
use snowfight::message::{Delivery, Direction, Scope};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::many_connections::allow_sockets;
use crate::role;

const FRAME: Duration = Duration::from_micros(16_667);
/// The number of frames that a player walks in one direction.
const FRAMES_PER_DIRECTION: u32 = 45;
/// The flag bits of the Game Protocol for packets that are reliable or carry an acknowledgement.
const RELIABLE_OR_ACK: u8 = 0x03;
const DIRECTIONS: [Direction; 4] = [Direction::NORTH, Direction::EAST, Direction::SOUTH, Direction::WEST];

/// Make many players join a server of the snowball fight and walk about.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    server: SocketAddr,
    #[arg(long)]
    players: u32,
    /// Request snapshots that contain only changes
    #[arg(long)]
    changes: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    allow_sockets(u64::from(arguments.players) + 64)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(play(arguments));
    runtime.shutdown_background();
    result
}

async fn play(arguments: &Arguments) -> Result<()> {
    let (joined, mut notifications) = mpsc::unbounded_channel();
    for number in 0..arguments.players {
        let player = Player::new(number, arguments).await?;
        let joined = joined.clone();
        tokio::spawn(async move {
            // A player that fails drops its sender, so the loop below ends before all players have joined.
            let _ = player.run(joined).await;
        });
        // The server limits the rate of handshakes from one network.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(joined);
    for number in 0..arguments.players {
        notifications.recv().await.with_context(|| format!("only {number} of the players joined"))?;
    }
    role::print_line("connected").map_err(anyhow::Error::msg)?;
    role::wait_for_line().await.map_err(anyhow::Error::msg)
}

struct Player {
    number: u32,
    server: SocketAddr,
    socket: UdpSocket,
    peer: Peer<'static>,
    connection: Option<ConnectionId>,
    client: Client,
    start: Instant,
    frames: u32,
}

impl Player {
    async fn new(number: u32, arguments: &Arguments) -> Result<Self> {
        let mut entropy = [7; 32];
        entropy[16..20].copy_from_slice(&number.to_be_bytes());
        let capacity = Capacity { connections: 1, blocks: 128, block_size: 512 };
        let mut peer = Peer::with_capacity(capacity, Config::new(entropy));
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        socket.connect(arguments.server).await?;
        peer.connect(rakwire::Instant::ZERO, arguments.server)?;
        let scope = if arguments.changes { Scope::Changes } else { Scope::Whole };
        let (client, start) = (Client::with_scope(scope), Instant::now());
        let server = arguments.server;
        Ok(Self { number, server, socket, peer, connection: None, client, start, frames: 0 })
    }

    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(0))
    }

    async fn run(mut self, joined: mpsc::UnboundedSender<()>) -> Result<()> {
        let mut joined = Some(joined);
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = frames.tick() => self.frame(),
                ready = self.socket.readable() => {
                    ready?;
                    self.receive();
                }
            }
            self.handle_events()?;
            self.send();
            if self.client.player().is_some()
                && let Some(joined) = joined.take()
            {
                joined.send(())?;
            }
        }
    }

    fn frame(&mut self) {
        self.frames += 1;
        let now = self.now();
        self.peer.handle_timeout(now);
        let stretch =
            (self.frames / FRAMES_PER_DIRECTION).wrapping_mul(7).wrapping_add(self.number.wrapping_mul(13));
        let movement = DIRECTIONS[(stretch % 4) as usize];
        self.client.handle_frame(now, Input { movement, ..Input::default() });
    }

    /// Handles the received datagrams. Once the player has joined, ignores unreliable datagrams, which carry snapshots.
    fn receive(&mut self) {
        let mut buffer = [0; 2_048];
        while let Ok(length) = self.socket.try_recv(&mut buffer) {
            let datagram = buffer.get(..length).unwrap_or_default();
            let is_snapshot =
                length > 4 && datagram.first().is_some_and(|flags| flags & RELIABLE_OR_ACK == 0);
            if !(is_snapshot && self.client.player().is_some()) {
                let now = self.now();
                self.peer.handle_datagram(now, self.server, datagram);
            }
        }
    }

    fn handle_events(&mut self) -> Result<()> {
        let now = self.now();
        while let Some(event) = self.peer.poll_event() {
            match event {
                Event::Connected { id, .. } => {
                    self.connection = Some(id);
                    self.client.handle_connected();
                }
                Event::Message { message, .. } => {
                    // The load generator does not check the messages from the server.
                    let _ = self.client.handle_message(now, &message);
                }
                Event::ConnectFailed { .. } | Event::Disconnected { .. } => bail!("the connection is closed"),
                Event::Receipt { .. }
                | Event::Progress { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => {}
            }
        }
        Ok(())
    }

    fn send(&mut self) {
        let now = self.now();
        let mut buffer = [0; 64];
        if let Some(id) = self.connection {
            while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
                let reliability = match delivery {
                    Delivery::Reliable => Reliability::Reliable,
                    Delivery::Unreliable => Reliability::Unreliable,
                };
                // The client repeats a message for which the peer had no free memory.
                let _ = self.peer.send(now, id, message, reliability);
            }
        }
        let mut buffer = [0; 1_024];
        while let Some(transmit) = self.peer.poll_transmit(now, &mut buffer) {
            // A full send buffer counts as a loss.
            let _ = self.socket.try_send(transmit.payload);
        }
    }
}

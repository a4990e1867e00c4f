//! The server program: sockets, tasks and a clock around the state machine.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rakwire_native::endpoint::{self, Connection, Endpoint};
use rakwire_native::secure::ServerIdentity;
use rakwire_native::{BindError, Capacity, KeyFileError, Simulation, game_protocol, raknet, read_key_file};
use snowfight::advertisement::Advertisement;
use snowfight::message::Delivery;
use snowfight::server::{MAX_MESSAGE, MAX_SESSIONS, Output, Pacing, Server, Stats};
use snowfight::world::{MAX_PLAYERS, TICKS_PER_SECOND};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::bots::Bots;
use crate::connection::{AnyConnection, Backlog, Protocol};
use crate::key::Key;
use crate::meter::{Meter, Report};
use crate::replication::Replication;

/// The maximum time that a tick waits for its datagrams to be sent, so that a busy driver does not delay the next
/// tick.
const FLUSH_TIMEOUT: Duration = Duration::from_micros(1_000_000 / TICKS_PER_SECOND as u64);
/// The maximum time that a snapshot waits for the congestion window before it is dropped; a newer one replaces it.
/// Fragmented RakNet snapshots are reliable and are kept until they are acknowledged.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_millis(250);
/// The length of the queue of connection events.
const EVENT_QUEUE: usize = 1_024;
/// The maximum number of events handled before the resulting messages are sent.
const BATCH: usize = 64;
/// The maximum number of received bytes per connection that the server has not yet read.
const RECEIVE_QUEUE: usize = 256 << 10;
/// The average number of memory blocks per connection, which determines the size of the pool.
const BLOCKS: usize = 128;
/// The maximum number of memory blocks per connection and direction.
///
/// The value is the sum of three parts: the backlog at which snapshots stop, one more snapshot, and the same amount
/// again for reliable messages. The pool is exhausted only if hundreds of connections acknowledge nothing.
const CONNECTION_BLOCKS: u32 = 256;

/// The options of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The address of the Game Protocol.
    pub game: SocketAddr,
    /// The address of RakNet.
    pub raknet: SocketAddr,
    /// The seed of the world.
    pub seed: u64,
    /// The number of bots, at most half of [`MAX_PLAYERS`].
    pub bots: u16,
    /// A simulated network between the server and its sockets.
    pub simulate: Option<Simulation>,
    /// The rule for sending fewer snapshots to slow clients.
    pub pacing: Pacing,
    /// The file with the key for secure connections over RakNet. Plain connections remain possible.
    pub secure: Option<PathBuf>,
}

impl Options {
    /// Creates options with free ports on loopback, no bots and no key.
    #[must_use]
    pub fn on_loopback() -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            game: any,
            raknet: any,
            seed: 0,
            bots: 0,
            simulate: None,
            pacing: Pacing::default(),
            secure: None,
        }
    }
}

/// The reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Binding a socket failed.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system has no random bytes for keys.
    #[error("the system provides no random bytes: {0}")]
    Random(#[source] std::io::Error),
    /// The key for secure connections could not be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// There are too many bots.
    #[error("{0} bots exceed the maximum of {most}", most = MAX_PLAYERS / 2)]
    TooManyBots(u16),
}

/// An event from a connection's task.
enum ConnectionEvent {
    Opened(AnyConnection),
    Message(Key, Vec<u8>),
    Ended(Key),
}

/// Counters since the start of the server.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    datagrams: u64,
    bytes: u64,
    snapshots: u64,
    thinned: u64,
    backlogged: u64,
}

/// A server that is bound to its sockets.
#[derive(Debug)]
pub struct Host {
    game_protocol: Arc<game_protocol::Endpoint>,
    raknet: Arc<raknet::Endpoint>,
    server: Box<Server<Key>>,
    bots: Bots,
    replication: Replication,
    connections: HashMap<Key, Arc<AnyConnection>>,
    next_key: u64,
    start: Instant,
    meter: Meter,
    /// The counters at the last report.
    reported: Counts,
    buffer: Box<[u8]>,
}

impl Host {
    /// Binds both sockets.
    ///
    /// # Errors
    /// Returns an [`OptionsError`] with a message that names the setting to change.
    pub async fn bind(options: &Options) -> Result<Self, OptionsError> {
        if usize::from(options.bots) > MAX_PLAYERS / 2 {
            return Err(OptionsError::TooManyBots(options.bots));
        }
        let game_protocol = Endpoint::bind(options.game, game_protocol_options(options.simulate)?).await?;
        let replication = Replication::start().map_err(OptionsError::Thread)?;
        let raknet = replication.bind(options.raknet, raknet_options(options)?).await?;
        let mut server = Box::new(Server::new(options.seed));
        server.set_pacing(options.pacing);
        let advertisement = Advertisement { port: game_protocol.local_addr().port() };
        // This cannot fail: the advertisement is far below the maximum length.
        let _ = raknet.set_advertisement(advertisement.to_string().as_bytes());
        Ok(Self {
            game_protocol: Arc::new(game_protocol),
            raknet: Arc::new(raknet),
            server,
            bots: Bots::new(options.bots),
            replication,
            connections: HashMap::new(),
            next_key: 0,
            start: Instant::now(),
            meter: Meter::new(),
            reported: Counts::default(),
            buffer: vec![0; MAX_MESSAGE].into(),
        })
    }

    /// Returns the address on which the server listens for a protocol.
    #[must_use]
    pub fn address(&self, protocol: Protocol) -> SocketAddr {
        match protocol {
            Protocol::GameProtocol => self.game_protocol.local_addr(),
            Protocol::RakNet => self.raknet.local_addr(),
        }
    }

    /// Serves until the future is dropped.
    pub async fn run(self) {
        self.run_reporting(Duration::MAX, |_| {}).await;
    }

    /// Serves until the future is dropped, and passes a [`Report`] to `report` at the interval `every`.
    pub async fn run_reporting(mut self, every: Duration, mut report: impl FnMut(Report)) {
        let (sender, mut events) = mpsc::channel(EVENT_QUEUE);
        tokio::spawn(accept(Arc::clone(&self.game_protocol), AnyConnection::GameProtocol, sender.clone()));
        tokio::spawn(accept(Arc::clone(&self.raknet), AnyConnection::RakNet, sender.clone()));
        let mut reported = Instant::now();
        loop {
            let first = tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.next_tick()) => {
                    self.tick().await;
                    None
                }
                first = events.recv() => first,
            };
            // Handle events after a tick too. If all ticks are late, no messages would be handled otherwise.
            let more = std::iter::from_fn(|| events.try_recv().ok());
            for event in first.into_iter().chain(more).take(BATCH) {
                self.handle_event(event, &sender);
            }
            self.send();
            if reported.elapsed() >= every {
                reported = Instant::now();
                report(self.report());
            }
        }
    }

    /// Returns the report for the time since the previous report.
    fn report(&mut self) -> Report {
        let (game, raknet) = (self.game_protocol.stats().peer, self.raknet.stats().peer);
        let Stats { snapshots, thinned, backlogged, .. } = self.server.stats();
        let counts = Counts {
            datagrams: game.datagrams_sent + raknet.datagrams_sent,
            bytes: game.bytes_sent + raknet.bytes_sent,
            snapshots,
            thinned,
            backlogged,
        };
        let before = std::mem::replace(&mut self.reported, counts);
        Report {
            players: self.server.world().players().count(),
            datagrams: counts.datagrams - before.datagrams,
            bytes: counts.bytes - before.bytes,
            snapshots: counts.snapshots - before.snapshots,
            thinned: counts.thinned - before.thinned,
            backlogged: counts.backlogged - before.backlogged,
            ..self.meter.take()
        }
    }

    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    fn next_tick(&self) -> Instant {
        self.start + Duration::from_micros(self.server.poll_timeout().as_micros())
    }

    async fn tick(&mut self) {
        let (began, due) = (Instant::now(), self.next_tick());
        self.bots.act(self.now(), &mut self.server);
        let connections = &self.connections;
        let is_congested =
            |key| connections.get(&key).is_some_and(|connection| connection.backlog() != Backlog::Low);
        self.server.handle_congestion(is_congested);
        self.server.handle_timeout(self.now());
        if self.replication.record(&self.server) {
            self.raknet.wake();
        }
        self.send();
        for key in self.server.leaving().collect::<Vec<_>>() {
            if self.connections.get(&key).is_none_or(|connection| connection.is_drained()) {
                self.server.handle_drained(key);
            }
        }
        self.send();
        within_a_tick(async { tokio::join!(self.game_protocol.flush(), self.raknet.flush()) }).await;
        self.meter.record(began.elapsed(), began.saturating_duration_since(due));
    }

    /// Sends the messages of the state machine, and closes connections at its request.
    fn send(&mut self) {
        let now = self.now();
        while let Some(output) = self.server.poll_output(&mut self.buffer) {
            match output {
                Output::Send { to: bot @ Key::Bot(_), payload, .. } => {
                    self.bots.handle_message(now, bot, payload)
                }
                Output::Send { to, delivery, payload } => {
                    let result =
                        self.connections.get(&to).map(|connection| send_to(connection, payload, delivery));
                    if result == Some(SendResult::Failed) {
                        self.server.handle_disconnected(to);
                        self.close(to);
                    }
                }
                Output::Close { connection: bot @ Key::Bot(_) } => self.bots.handle_disconnected(bot),
                Output::Close { connection } => self.close(connection),
            }
        }
    }

    fn close(&mut self, connection: Key) {
        self.replication.close(connection);
        if let Some(connection) = self.connections.remove(&connection) {
            tokio::spawn(async move { connection.close().await });
        }
    }

    fn handle_event(&mut self, event: ConnectionEvent, sender: &mpsc::Sender<ConnectionEvent>) {
        match event {
            ConnectionEvent::Opened(connection) => self.open(connection, sender),
            ConnectionEvent::Message(key, message) => self.server.handle_message(key, &message.as_slice()),
            ConnectionEvent::Ended(key) => {
                self.connections.remove(&key);
                self.replication.close(key);
                self.server.handle_disconnected(key);
            }
        }
    }

    /// Registers a connection. If the server is full, the connection is dropped, which closes it.
    fn open(&mut self, connection: AnyConnection, sender: &mpsc::Sender<ConnectionEvent>) {
        let key = Key::Peer(self.next_key);
        self.next_key += 1;
        if self.server.handle_connected(key).is_err() {
            return;
        }
        if let AnyConnection::RakNet(connection) = &connection {
            self.replication.open(key, connection.id());
            self.server.offer_replication(key);
        }
        let connection = Arc::new(connection);
        self.connections.insert(key, Arc::clone(&connection));
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(message) = connection.recv().await {
                if sender.send(ConnectionEvent::Message(key, message)).await.is_err() {
                    return;
                }
            }
            // The send fails only if the server has stopped.
            let _ = sender.send(ConnectionEvent::Ended(key)).await;
        });
    }
}

/// Sends every new connection of an endpoint to the server.
async fn accept<P: endpoint::Protocol>(
    endpoint: Arc<Endpoint<P>>,
    wrap: fn(Connection<P>) -> AnyConnection,
    sender: mpsc::Sender<ConnectionEvent>,
) {
    while let Some(connection) = endpoint.accept().await {
        if sender.send(ConnectionEvent::Opened(wrap(connection))).await.is_err() {
            return;
        }
    }
}

/// Waits until the datagrams are sent, but at most for the length of a tick.
async fn within_a_tick(flushed: impl Future) {
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, flushed).await;
}

/// The result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendResult {
    /// The message was queued, or skipped because a newer one will replace it.
    Handled,
    /// A reliable message could not be queued, so the connection must be closed.
    Failed,
}

/// Sends a message on a connection. Snapshots are skipped while the connection's backlog is high.
fn send_to(connection: &AnyConnection, payload: &[u8], delivery: Delivery) -> SendResult {
    match (delivery, connection.backlog()) {
        (Delivery::Reliable, Backlog::Low | Backlog::High) if connection.send(payload, delivery) => {
            SendResult::Handled
        }
        (Delivery::Reliable, Backlog::Low | Backlog::High | Backlog::Excessive) => SendResult::Failed,
        (Delivery::Unreliable, Backlog::Low) => {
            // The result is irrelevant: newer snapshots replace this one, and clients repeat pings.
            let _ = connection.send(payload, delivery);
            SendResult::Handled
        }
        (Delivery::Unreliable, Backlog::High | Backlog::Excessive) => SendResult::Handled,
    }
}

fn game_protocol_options(simulate: Option<Simulation>) -> Result<game_protocol::Options, OptionsError> {
    let mut options: game_protocol::Options = options(simulate)?;
    options.capacity.blocks = options.capacity.blocks.max(MAX_SESSIONS * BLOCKS);
    options.config.connection_blocks = Some(CONNECTION_BLOCKS);
    options.config.unreliable_timeout = SNAPSHOT_TIMEOUT;
    Ok(options)
}

fn raknet_options(of_server: &Options) -> Result<raknet::Options, OptionsError> {
    let mut options: raknet::Options = options(of_server.simulate)?;
    if let Some(file) = &of_server.secure {
        let identity = ServerIdentity::new(read_key_file(file)?);
        options.secure().map_err(OptionsError::Random)?.server = Some(identity);
    }
    options.capacity = Capacity { connections: MAX_SESSIONS, blocks: MAX_SESSIONS * BLOCKS, block_size: 512 };
    options.config.connection_blocks = Some(CONNECTION_BLOCKS);
    options.config.unreliable_timeout = SNAPSHOT_TIMEOUT;
    Ok(options)
}

/// Returns the endpoint options for a protocol; they are the same for both.
fn options<P: endpoint::Protocol>(
    simulate: Option<Simulation>,
) -> Result<endpoint::Options<P>, OptionsError> {
    let mut options = endpoint::Options::server(MAX_SESSIONS as u16).map_err(OptionsError::Random)?;
    options.receive_queue = RECEIVE_QUEUE;
    options.simulate = simulate;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that never becomes idle does not delay ticks.
    #[tokio::test]
    async fn busy_driver_does_not_delay_ticks() {
        let limit = Duration::from_secs(10);
        tokio::time::timeout(limit, within_a_tick(std::future::pending::<()>())).await.unwrap();
    }
}

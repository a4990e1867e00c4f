//! The server: sockets, tasks and the clock around its state machine.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rakwire_native::endpoint::{self, Connection, Endpoint};
use rakwire_native::{BindError, Capacity, Simulation, game_protocol, raknet};
use snowfight::advertisement::Advertisement;
use snowfight::message::Delivery;
use snowfight::server::{MAX_MESSAGE, MAX_SESSIONS, Output, Server};
use snowfight::world::{MAX_PLAYERS, TICKS_PER_SECOND};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::bots::Bots;
use crate::key::Key;
use crate::link::{Backlog, Link, Protocol};
use crate::meter::{Meter, Report};

/// How long a tick may wait for its datagrams to leave; a driver that somebody keeps busy holds up no further ones.
const LONGEST_FLUSH: Duration = Duration::from_micros(1_000_000 / TICKS_PER_SECOND as u64);
/// News of connections that wait for the server; whoever has more to say waits.
const NEWS: usize = 1_024;
/// News that are taken in a row before what they led to is sent.
const BATCH: usize = 64;
/// Bytes of one connection that wait for the server.
const RECEIVE_QUEUE: usize = 256 << 10;
/// Blocks of memory for each connection, in the mean.
const BLOCKS: usize = 128;
/// Blocks that one connection may hold in each direction: all that waits until it is behind, a whole snapshot more, and
/// as much again for what is reliable. So it takes hundreds that acknowledge nothing to take the memory of all.
const SHARE: u32 = 256;

/// What a server is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where to listen with the Game Protocol.
    pub game: SocketAddr,
    /// Where to listen with RakNet.
    pub raknet: SocketAddr,
    /// Which world.
    pub seed: u64,
    /// How many bots play along, at most half of [`MAX_PLAYERS`].
    pub bots: u16,
    /// A bad network to simulate between the server and both of its sockets; none unless set.
    pub simulate: Option<Simulation>,
}

impl Options {
    /// Free ports on loopback, no bots.
    #[must_use]
    pub fn on_loopback() -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { game: any, raknet: any, seed: 0, bots: 0, simulate: None }
    }
}

/// Why a server could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The socket.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The keys.
    #[error("the system gives no random bytes: {0}")]
    Random(#[source] std::io::Error),
    /// The bots.
    #[error("there is room for {room} bots, not for {0}", room = MAX_PLAYERS / 2)]
    TooManyBots(u16),
}

/// What a task tells the server.
enum News {
    Opened(Link),
    Said(Key, Vec<u8>),
    Ended(Key),
}

/// A server that is bound to its sockets.
#[derive(Debug)]
pub struct Host {
    game_protocol: Arc<game_protocol::Endpoint>,
    raknet: Arc<raknet::Endpoint>,
    server: Box<Server<Key>>,
    bots: Bots,
    links: HashMap<Key, Arc<Link>>,
    next_key: u64,
    start: Instant,
    meter: Meter,
    /// Datagrams and bytes that were sent before the last report.
    sent: (u64, u64),
    buffer: Box<[u8]>,
}

impl Host {
    /// Binds both sockets.
    ///
    /// # Errors
    /// An [`OptionsError`] that says what to change.
    pub async fn bind(options: &Options) -> Result<Self, OptionsError> {
        if usize::from(options.bots) > MAX_PLAYERS / 2 {
            return Err(OptionsError::TooManyBots(options.bots));
        }
        let game_protocol = Endpoint::bind(options.game, game_protocol_options(options.simulate)?).await?;
        let raknet = Endpoint::bind(options.raknet, raknet_options(options.simulate)?).await?;
        let advertisement = Advertisement { port: game_protocol.local_addr().port() };
        // It is far shorter than one may be.
        let _ = raknet.set_advertisement(advertisement.to_string().as_bytes());
        Ok(Self {
            game_protocol: Arc::new(game_protocol),
            raknet: Arc::new(raknet),
            server: Box::new(Server::new(options.seed)),
            bots: Bots::new(options.bots),
            links: HashMap::new(),
            next_key: 0,
            start: Instant::now(),
            meter: Meter::new(),
            sent: (0, 0),
            buffer: vec![0; MAX_MESSAGE].into(),
        })
    }

    /// Where it listens.
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

    /// Serves until the future is dropped, and tells from time to time how long the ticks took.
    pub async fn run_reporting(mut self, every: Duration, mut tell: impl FnMut(Report)) {
        let (sender, mut news) = mpsc::channel(NEWS);
        tokio::spawn(accept(Arc::clone(&self.game_protocol), Link::GameProtocol, sender.clone()));
        tokio::spawn(accept(Arc::clone(&self.raknet), Link::RakNet, sender.clone()));
        let mut reported = Instant::now();
        loop {
            let first = tokio::select! {
                biased;
                () = tokio::time::sleep_until(self.next_tick()) => {
                    self.tick().await;
                    None
                }
                first = news.recv() => first,
            };
            // After a tick too: a server whose ticks are always late must still hear.
            let more = std::iter::from_fn(|| news.try_recv().ok());
            for news in first.into_iter().chain(more).take(BATCH) {
                self.hear(news, &sender);
            }
            self.send();
            if reported.elapsed() >= every {
                reported = Instant::now();
                tell(self.report());
            }
        }
    }

    /// What there was since the last report.
    fn report(&mut self) -> Report {
        let (game, raknet) = (self.game_protocol.stats().peer, self.raknet.stats().peer);
        let sent = (game.datagrams_sent + raknet.datagrams_sent, game.bytes_sent + raknet.bytes_sent);
        let before = std::mem::replace(&mut self.sent, sent);
        Report {
            players: self.server.world().players().count(),
            datagrams: sent.0 - before.0,
            bytes: sent.1 - before.1,
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
        self.server.handle_timeout(self.now());
        self.send();
        for key in self.server.leaving().collect::<Vec<_>>() {
            if self.links.get(&key).is_none_or(|link| link.is_drained()) {
                self.server.handle_drained(key);
            }
        }
        self.send();
        within_a_tick(async { tokio::join!(self.game_protocol.flush(), self.raknet.flush()) }).await;
        self.meter.note(began.elapsed(), began.saturating_duration_since(due));
    }

    /// Sends what the server has to say, and ends what it wants to end.
    fn send(&mut self) {
        let now = self.now();
        while let Some(output) = self.server.poll_output(&mut self.buffer) {
            match output {
                Output::Send { to: bot @ Key::Bot(_), payload, .. } => self.bots.hear(now, bot, payload),
                Output::Send { to, delivery, payload } => {
                    let told = self.links.get(&to).map(|link| tell(link, payload, delivery));
                    if told == Some(Told::Never) {
                        self.server.handle_disconnected(to);
                        self.close(to);
                    }
                }
                Output::Close { connection: bot @ Key::Bot(_) } => self.bots.leave(bot),
                Output::Close { connection } => self.close(connection),
            }
        }
    }

    fn close(&mut self, connection: Key) {
        if let Some(link) = self.links.remove(&connection) {
            tokio::spawn(async move { link.close().await });
        }
    }

    fn hear(&mut self, news: News, sender: &mpsc::Sender<News>) {
        match news {
            News::Opened(link) => self.open(link, sender),
            News::Said(key, message) => self.server.handle_message(key, &message.as_slice()),
            News::Ended(key) => {
                self.links.remove(&key);
                self.server.handle_disconnected(key);
            }
        }
    }

    /// A connection without room is dropped, which ends it.
    fn open(&mut self, link: Link, sender: &mpsc::Sender<News>) {
        let key = Key::Peer(self.next_key);
        self.next_key += 1;
        if self.server.handle_connected(key).is_err() {
            return;
        }
        let link = Arc::new(link);
        self.links.insert(key, Arc::clone(&link));
        let sender = sender.clone();
        tokio::spawn(async move {
            while let Some(message) = link.recv().await {
                if sender.send(News::Said(key, message)).await.is_err() {
                    return;
                }
            }
            // A server that is gone need not know.
            let _ = sender.send(News::Ended(key)).await;
        });
    }
}

/// Tells the server of every connection of an endpoint.
async fn accept<P: endpoint::Protocol>(
    endpoint: Arc<Endpoint<P>>,
    link: fn(Connection<P>) -> Link,
    sender: mpsc::Sender<News>,
) {
    while let Some(connection) = endpoint.accept().await {
        if sender.send(News::Opened(link(connection))).await.is_err() {
            return;
        }
    }
}

/// Waits for datagrams to leave; what has not left in time leaves during the next tick.
async fn within_a_tick(flushed: impl Future) {
    let _ = tokio::time::timeout(LONGEST_FLUSH, flushed).await;
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It is on its way, or a newer one will do as well.
    Enough,
    /// It has no room, and is said only once: without it the connection is of no use.
    Never,
}

/// Gives a message to a connection, snapshots only while it keeps up.
fn tell(link: &Link, payload: &[u8], delivery: Delivery) -> Told {
    match (delivery, link.backlog()) {
        (Delivery::Reliable, Backlog::Short | Backlog::Long) if link.send(payload, delivery) => Told::Enough,
        (Delivery::Reliable, Backlog::Short | Backlog::Long | Backlog::Hopeless) => Told::Never,
        (Delivery::Unreliable, Backlog::Short) => {
            // The next snapshot is newer, and a ping is asked again.
            let _ = link.send(payload, delivery);
            Told::Enough
        }
        (Delivery::Unreliable, Backlog::Long | Backlog::Hopeless) => Told::Enough,
    }
}

fn game_protocol_options(simulate: Option<Simulation>) -> Result<game_protocol::Options, OptionsError> {
    let mut options: game_protocol::Options = options(simulate)?;
    options.capacity.blocks = options.capacity.blocks.max(MAX_SESSIONS * BLOCKS);
    options.config.connection_blocks = Some(SHARE);
    Ok(options)
}

fn raknet_options(simulate: Option<Simulation>) -> Result<raknet::Options, OptionsError> {
    let mut options: raknet::Options = options(simulate)?;
    options.capacity = Capacity { connections: MAX_SESSIONS, blocks: MAX_SESSIONS * BLOCKS, block_size: 512 };
    options.config.connection_blocks = Some(SHARE);
    Ok(options)
}

/// What is the same for both protocols.
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

    /// Whoever keeps a driver busy for ever, so that it never says that it is idle, stops no tick.
    #[tokio::test]
    async fn a_driver_that_is_never_idle_holds_up_no_tick() {
        let deadline = Duration::from_secs(10);
        tokio::time::timeout(deadline, within_a_tick(std::future::pending::<()>())).await.unwrap();
    }
}

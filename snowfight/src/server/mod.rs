//! The server state machine of the game (docs/game.md#the-server).
//!
//! Its input is connections and messages, and its output is messages to send and connections to close. It has no
//! socket and no clock.
//!
//! ```
//! use rakwire::codec::rabbit::{pack, unpack};
//! use snowfight::message::{Channel, ClientMessage, Request, RequestKind, ResponseKind, ServerMessage};
//! use snowfight::server::{MAX_MESSAGE, Output, Server};
//!
//! let mut server = Server::new(7);
//! server.handle_connected("anna")?;
//! let request = Request { channel: Channel(0), kind: RequestKind::Init };
//! let mut packed = [0; 8];
//! let init = pack(&ClientMessage::Request(request), &mut packed)?;
//! server.handle_message("anna", &init);
//!
//! let mut buffer = [0; MAX_MESSAGE];
//! let Some(Output::Send { to: "anna", payload, .. }) = server.poll_output(&mut buffer) else { panic!("no response") };
//! let ServerMessage::Response(response) = unpack(payload)? else { panic!("no response") };
//! let ResponseKind::Connect(connect) = response.kind else { panic!("not in the game") };
//! assert_eq!(connect.snapshot.entities.len(), 301);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod changes;
mod clock;
mod pacer;
mod packed;
mod session;

use heapless::Vec;
use rakwire::codec::rabbit::{List, Reader, Text, Unpack, pack};
use rakwire::{Chunks, Instant};

use crate::message::{
    Channel, ClientMessage, Connect, Delivery, Event, EventKind, GameOver, PlayerId, Request, RequestKind,
    Response, ResponseKind, Scope, ServerMessage, Snapshot, SnapshotAck,
};
use crate::world::{Entities, Fallen, MAX_PLAYERS, TICKS_PER_SECOND, World};
use changes::{Changes, Gaps};
use clock::Clock;
use packed::PackedSnapshot;
use session::{NextOutput, PendingMessage, Session, SnapshotDecision, State};

pub use pacer::Pacing;
pub use packed::MAX_MESSAGE;

/// The maximum number of connections: one per player, and as many again that have not joined.
pub const MAX_SESSIONS: usize = 2 * MAX_PLAYERS;

/// The error for a second request to join on one connection (docs/game.md#refusals).
const ALREADY_PLAYING: &str = "Requested 'Init' on already initialized player";
const NO_ROOM: &str = "The game is full";

/// An action for the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'b, K> {
    /// Send a message.
    Send {
        /// The recipient.
        to: K,
        /// The reliability.
        delivery: Delivery,
        /// The packed message.
        payload: &'b [u8],
    },
    /// Close a connection. The server has already removed it.
    Close {
        /// The connection to close.
        connection: K,
    },
}

/// The error for a connection beyond [`MAX_SESSIONS`]; the caller should close the connection.
///
/// ```
/// use snowfight::server::{Full, MAX_SESSIONS, Server};
///
/// let mut server = Server::new(1);
/// assert!((0..MAX_SESSIONS).all(|connection| server.handle_connected(connection).is_ok()));
/// assert_eq!(server.handle_connected(MAX_SESSIONS), Err(Full));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the server has reached its maximum number of connections")
    }
}

impl core::error::Error for Full {}

/// The counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages that could not be unpacked, or that arrived before Init. Each of them closes its connection.
    pub malformed: u64,
    /// Messages that were dropped because the queue was full or because they did not fit into the buffer.
    pub dropped: u64,
    /// Messages from unknown connections, or from clients with a finished game.
    pub ignored: u64,
    /// Snapshots that were sent.
    pub snapshots: u64,
    /// Snapshots that were skipped because a client was behind (docs/game.md#pacing).
    pub thinned: u64,
    /// Snapshots that were skipped because the transport of a client [had a backlog](Server::handle_congestion).
    pub backlogged: u64,
}

/// The server state machine. `K` is the transport's key for a connection.
///
/// ```
/// let mut server = snowfight::server::Server::<u32>::new(1);
/// server.tick();
/// assert_eq!(server.world().time(), 1);
/// ```
#[derive(Debug)]
pub struct Server<K> {
    world: World,
    /// The world after the last tick.
    entities: Entities,
    changes: Changes,
    /// The packed snapshots of the last tick. Whole snapshots are the same for all clients; delta snapshots are
    /// the same for all clients with the same gaps.
    whole: PackedSnapshot<()>,
    partial: PackedSnapshot<Gaps>,
    sessions: Vec<Session<K>, MAX_SESSIONS>,
    /// The index of the session at which the search for output continues.
    cursor: usize,
    clock: Clock,
    pacing: Pacing,
    stats: Stats,
}

impl<K: Copy + Eq> Server<K> {
    /// Creates a server with a new world.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let entities = world.entities();
        Self {
            world,
            entities,
            changes: Changes::new(),
            whole: PackedSnapshot::new(),
            partial: PackedSnapshot::new(),
            sessions: Vec::new(),
            cursor: 0,
            clock: Clock::default(),
            pacing: Pacing::default(),
            stats: Stats::default(),
        }
    }

    /// Sets the rule for sending fewer snapshots to slow clients.
    pub const fn set_pacing(&mut self, pacing: Pacing) {
        self.pacing = pacing;
    }

    /// Returns the world.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> Stats {
        self.stats
    }

    /// Handles a new connection, which must join within ten seconds. A known connection starts over.
    ///
    /// # Errors
    /// Returns [`Full`] if there are [`MAX_SESSIONS`] connections.
    pub fn handle_connected(&mut self, connection: K) -> Result<(), Full> {
        self.handle_disconnected(connection);
        self.sessions.push(Session::new(connection, self.world.time())).map_err(|_| Full)
    }

    /// Allows a connection to use replication instead of snapshots if its client requests that.
    pub fn offer_replication(&mut self, connection: K) {
        if let Some(session) = self.session_mut(connection) {
            session.has_replication = true;
        }
    }

    /// Returns the connections that use replication, are in the game and have no transport backlog, with their
    /// players.
    pub fn replicated(&self) -> impl Iterator<Item = (K, PlayerId)> {
        let sessions = self.sessions.iter();
        let replicated =
            sessions.filter(|session| session.scope == Scope::Replicated && !session.is_congested);
        replicated.filter_map(|session| Some((session.connection, session.player()?)))
    }

    /// Handles a closed connection. No remaining player wins because of it.
    pub fn handle_disconnected(&mut self, connection: K) {
        if let Some(index) = self.sessions.iter().position(|session| session.connection == connection) {
            let session = self.sessions.swap_remove(index);
            self.remove_player(session.player());
        }
    }

    /// Handles a message from a client.
    pub fn handle_message(&mut self, connection: K, message: &dyn Chunks) {
        let Some(session) = self.sessions.iter().find(|session| session.connection == connection) else {
            self.stats.ignored += 1;
            return;
        };
        let mut reader = Reader::over(message);
        let message = ClientMessage::unpack(&mut reader);
        match (session.state, message) {
            (State::Leaving { .. } | State::Closing, _) => self.stats.ignored += 1,
            (
                State::Waiting { .. },
                Ok(ClientMessage::Request(Request { channel, kind: RequestKind::Init })),
            ) => {
                self.add_to_session(connection, channel, Scope::read(&mut reader));
            }
            (State::Playing { .. }, Ok(ClientMessage::Request(request))) => {
                self.enqueue(connection, response_to(request));
            }
            (State::Playing { player }, Ok(ClientMessage::Action(action))) => {
                self.world.act(player, action.kind);
                self.acknowledge(connection, SnapshotAck::read(&mut reader));
            }
            (State::Waiting { .. }, Ok(_)) | (_, Err(_)) => self.reject(connection),
        }
    }

    /// Updates which connections have a transport backlog. They get no snapshots until the next call, regardless of
    /// the [`Pacing`].
    pub fn handle_congestion(&mut self, mut is_congested: impl FnMut(K) -> bool) {
        for session in &mut self.sessions {
            session.is_congested = is_congested(session.connection);
        }
    }

    /// Handles the acknowledgement of all reliable messages to a client. The connection is closed if the game is over
    /// for it.
    pub fn handle_drained(&mut self, connection: K) {
        if let Some(session) = self.session_mut(connection).filter(|session| session.pending.is_empty())
            && matches!(session.state, State::Leaving { .. })
        {
            session.close();
        }
    }

    /// Returns the connections with a finished game. Each is closed after [`handle_drained`](Self::handle_drained), or
    /// after a second.
    pub fn leaving(&self) -> impl Iterator<Item = K> {
        let leaving = self.sessions.iter().filter(|session| matches!(session.state, State::Leaving { .. }));
        leaving.map(|session| session.connection)
    }

    /// Runs the ticks that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..self.clock.take_due(now) {
            self.tick();
        }
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.clock.next()
    }

    /// Runs one tick.
    ///
    /// It advances the world, queues a snapshot for every player, ends the game for fallen players, and closes
    /// connections that have timed out.
    pub fn tick(&mut self) {
        let fallen = self.world.tick();
        self.dispatch_snapshot();
        self.check_win_condition(&fallen);
        let now = self.world.time();
        self.sessions.iter_mut().for_each(|session| session.expire(now));
    }

    /// Returns the next message to send, packed into `buffer`, or the next connection to close. Call it until it
    /// returns `None`.
    pub fn poll_output<'b>(&'b mut self, buffer: &'b mut [u8]) -> Option<Output<'b, K>> {
        loop {
            let (index, output) = self.find_output()?;
            let session = self.sessions.get(index)?;
            let (to, scope) = (session.connection, session.scope);
            match output {
                NextOutput::Message(pending) => {
                    let message = self.message(pending, scope);
                    let delivery = message.delivery();
                    if let Ok(length) = pack(&message, buffer).map(<[u8]>::len) {
                        let agreed =
                            if let PendingMessage::Connect(..) = pending { scope } else { Scope::Whole };
                        let length = agreed.write(buffer, length);
                        return Some(Output::Send { to, delivery, payload: buffer.get(..length)? });
                    }
                }
                NextOutput::Snapshot if self.pack_snapshot(index, scope) => {
                    self.stats.snapshots += 1;
                    let payload = match scope {
                        Scope::Whole | Scope::Replicated => self.whole.bytes(),
                        Scope::Changes => self.partial.bytes(),
                    };
                    return Some(Output::Send { to, delivery: Delivery::Unreliable, payload });
                }
                NextOutput::Snapshot => {}
                NextOutput::Close => {
                    self.sessions.swap_remove(index);
                    return Some(Output::Close { connection: to });
                }
            }
            self.stats.dropped += 1;
        }
    }

    /// Packs this tick's snapshot for a session if it is not packed yet; returns false if the snapshot does not fit.
    fn pack_snapshot(&mut self, index: usize, scope: Scope) -> bool {
        let Self { world, entities, changes, sessions, whole, partial, .. } = self;
        let Some(session) = sessions.get_mut(index) else { return false };
        let time = world.time();
        let gaps = match self.pacing {
            Pacing::Acknowledged => session.pacer.gaps(time),
            Pacing::Unpaced => Gaps::default(),
        };
        session.pacer.on_sent(time);
        match scope {
            Scope::Whole | Scope::Replicated => whole.pack(time, (), || entities),
            Scope::Changes => partial.pack(time, gaps, || changes.for_tick(time, gaps)),
        }
    }

    /// Returns the next output; the connections take turns (round-robin).
    fn find_output(&mut self) -> Option<(usize, NextOutput)> {
        // Sessions may have been removed since the last call. The search then continues at the first session.
        let first = self.cursor.min(self.sessions.len());
        let (before, from) = self.sessions.split_at_mut_checked(first).unwrap_or_default();
        let behind = from.iter_mut().enumerate().map(|(index, session)| (first + index, session));
        let mut all = behind.chain(before.iter_mut().enumerate());
        let found = all.find_map(|(index, session)| Some((index, session.next_output()?)));
        self.cursor = found.as_ref().map_or(0, |(index, _)| *index);
        found
    }

    fn session_mut(&mut self, connection: K) -> Option<&mut Session<K>> {
        self.sessions.iter_mut().find(|session| session.connection == connection)
    }

    /// Adds a client to the game. The first snapshot for the client contains its own player.
    fn add_to_session(&mut self, connection: K, channel: Channel, scope: Scope) {
        let Some(player) = self.world.join() else {
            self.enqueue(connection, PendingMessage::NoRoom(channel));
            return;
        };
        self.entities = self.world.entities();
        if let Some(session) = self.session_mut(connection) {
            session.state = State::Playing { player };
            let is_missing = scope == Scope::Replicated && !session.has_replication;
            session.scope = if is_missing { Scope::Whole } else { scope };
        }
        self.enqueue(connection, PendingMessage::Connect(channel, player));
    }

    fn acknowledge(&mut self, connection: K, ack: Option<SnapshotAck>) {
        let now = self.world.time();
        if let (Some(ack), Some(session)) = (ack, self.session_mut(connection)) {
            session.pacer.on_ack(now, ack.time);
        }
    }

    fn enqueue(&mut self, connection: K, message: PendingMessage) {
        let session = self.session_mut(connection);
        let kept = session.is_some_and(|session| session.pending.push_back(message).is_ok());
        self.stats.dropped += u64::from(!kept);
    }

    fn reject(&mut self, connection: K) {
        self.stats.malformed += 1;
        if let Some(session) = self.session_mut(connection) {
            let player = session.player();
            session.close();
            self.remove_player(player);
        }
    }

    fn remove_player(&mut self, player: Option<PlayerId>) {
        if let Some(player) = player {
            self.world.leave(player);
        }
    }

    fn dispatch_snapshot(&mut self) {
        let now = self.world.time();
        self.entities = self.world.entities();
        self.changes.record(now, &self.entities);
        for session in self.sessions.iter_mut().filter(|session| session.has_snapshot(now)) {
            let decision = session.decide_snapshot(now, self.pacing);
            session.snapshot = match decision {
                SnapshotDecision::Send => session::Snapshot::Pending,
                SnapshotDecision::Thinned | SnapshotDecision::Backlogged => session::Snapshot::None,
            };
            self.stats.thinned += u64::from(decision == SnapshotDecision::Thinned);
            self.stats.backlogged += u64::from(decision == SnapshotDecision::Backlogged);
        }
    }

    /// Sends the results of this tick. Fallen players lose. If exactly one player remains and another fell in this
    /// tick, the remaining player wins.
    fn check_win_condition(&mut self, fallen: &Fallen) {
        for player in fallen {
            self.send_game_over(*player, GameOver::Loser);
        }
        let mut players = self.world.players();
        if let (false, Some(last), None) = (fallen.is_empty(), players.next(), players.next()) {
            drop(players);
            self.send_game_over(last, GameOver::Winner);
            self.world.leave(last);
        }
    }

    /// Replaces all queued messages for the client, which are obsolete, with the result.
    fn send_game_over(&mut self, player: PlayerId, result: GameOver) {
        let now = self.world.time();
        if let Some(session) = self.sessions.iter_mut().find(|session| session.player() == Some(player)) {
            session.pending.clear();
            let _ = session.pending.push_back(PendingMessage::GameOver(now, result));
            session.state = State::Leaving { until: now.wrapping_add(TICKS_PER_SECOND) };
        }
    }

    fn message(&self, message: PendingMessage, scope: Scope) -> ServerMessage<'_> {
        let (channel, kind) = match message {
            PendingMessage::Pong(channel) => (channel, ResponseKind::Pong),
            PendingMessage::AlreadyPlaying(channel) => {
                (channel, ResponseKind::Error(Text::new(ALREADY_PLAYING)))
            }
            PendingMessage::NoRoom(channel) => (channel, ResponseKind::Error(Text::new(NO_ROOM))),
            PendingMessage::Connect(channel, player) => {
                let own = self.entities.iter().find(|entity| entity.player_of(player).is_some());
                let entities = match scope {
                    Scope::Replicated => own.map_or(&[][..], core::slice::from_ref),
                    Scope::Whole | Scope::Changes => &self.entities,
                };
                let snapshot = Snapshot { entities: List::new(entities) };
                (channel, ResponseKind::Connect(Connect { player, snapshot }))
            }
            PendingMessage::GameOver(time, result) => {
                return ServerMessage::Event(Event { time, kind: EventKind::GameOver(result) });
            }
        };
        ServerMessage::Response(Response { channel, kind })
    }
}

/// Returns the response to a request from a joined client. A second Init is an error.
const fn response_to(request: Request) -> PendingMessage {
    match request.kind {
        RequestKind::Ping => PendingMessage::Pong(request.channel),
        RequestKind::Init => PendingMessage::AlreadyPlaying(request.channel),
    }
}

#[cfg(test)]
mod tests;

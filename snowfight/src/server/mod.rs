//! The server's side of the game as a state machine (docs/game.md#the-server): connections and messages
//! go in, messages and ends of connections come out. It knows no socket and no clock.
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
//! let Some(Output::Send { to: "anna", payload, .. }) = server.poll_output(&mut buffer) else { panic!("no answer") };
//! let ServerMessage::Response(response) = unpack(payload)? else { panic!("no response") };
//! let ResponseKind::Connect(connect) = response.kind else { panic!("not in the game") };
//! assert_eq!(connect.snapshot.entities.len(), 301);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod changes;
mod clock;
mod packed;
mod session;

use heapless::Vec;
use rakwire::codec::rabbit::{List, Reader, Text, Unpack, pack};
use rakwire::{Chunks, Instant};

use crate::message::{
    Channel, ClientMessage, Connect, Delivery, Event, EventKind, GameOver, PlayerId, Request, RequestKind,
    Response, ResponseKind, Scope, ServerMessage, Snapshot,
};
use crate::world::{Entities, Fallen, MAX_PLAYERS, TICKS_PER_SECOND, World};
use changes::Changes;
use clock::Clock;
use packed::Packed;
use session::{Answer, Session, State, Work};

pub use packed::MAX_MESSAGE;

/// The most connections at a time: every player, and as many that have not joined.
pub const MAX_SESSIONS: usize = 2 * MAX_PLAYERS;

/// What a client is told that joins twice (docs/game.md#refusals).
const ALREADY_PLAYING: &str = "Requested 'Init' on already initialized player";
const NO_ROOM: &str = "The game is full";

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<'b, K> {
    /// Send a message.
    Send {
        /// To whom.
        to: K,
        /// How.
        delivery: Delivery,
        /// Its bytes.
        payload: &'b [u8],
    },
    /// End a connection. The server has forgotten it.
    Close {
        /// Which one.
        connection: K,
    },
}

/// Why a connection was not accepted: [`MAX_SESSIONS`] are there. End it.
///
/// ```
/// assert_eq!(snowfight::server::Full.to_string(), "the server has no room for another connection");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the server has no room for another connection")
    }
}

impl core::error::Error for Full {}

/// What a server has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Messages that could not be unpacked, or came before Init; each ended its connection.
    pub malformed: u64,
    /// Answers that nobody had asked so fast for, or that did not fit into the buffer.
    pub dropped: u64,
    /// Messages from connections that are not known, or whose game is over.
    pub ignored: u64,
}

/// The server. `K` names a connection for whoever moves the bytes.
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
    /// The whole snapshot of the last tick, and that of what has changed: the same bytes for everybody.
    whole: Packed,
    partial: Packed,
    sessions: Vec<Session<K>, MAX_SESSIONS>,
    /// Where the search for work goes on.
    cursor: usize,
    clock: Clock,
    stats: Stats,
}

impl<K: Copy + Eq> Server<K> {
    /// A server with a new world.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let entities = world.entities();
        Self {
            world,
            entities,
            changes: Changes::new(),
            whole: Packed::new(),
            partial: Packed::new(),
            sessions: Vec::new(),
            cursor: 0,
            clock: Clock::default(),
            stats: Stats::default(),
        }
    }

    /// The world.
    #[must_use]
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// What it has seen.
    #[must_use]
    pub const fn stats(&self) -> Stats {
        self.stats
    }

    /// A connection is open, and has ten seconds to join. One that is known begins anew.
    ///
    /// # Errors
    /// [`Full`].
    pub fn handle_connected(&mut self, connection: K) -> Result<(), Full> {
        self.handle_disconnected(connection);
        self.sessions.push(Session::new(connection, self.world.time())).map_err(|_| Full)
    }

    /// A connection has ended. Nobody wins by that.
    pub fn handle_disconnected(&mut self, connection: K) {
        if let Some(index) = self.find(connection) {
            let session = self.sessions.swap_remove(index);
            self.remove_player(session.player());
        }
    }

    /// A message has arrived, whatever it says.
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
                self.answer(connection, response_to(request));
            }
            (State::Playing { player }, Ok(ClientMessage::Action(action))) => {
                self.world.act(player, action.kind);
            }
            (State::Waiting { .. }, Ok(_)) | (_, Err(_)) => self.reject(connection),
        }
    }

    /// Everything reliable that was sent to a client has arrived. If its game is over, its connection may end.
    pub fn handle_drained(&mut self, connection: K) {
        let session = self.sessions.iter_mut().find(|session| session.connection == connection);
        if let Some(session) = session.filter(|session| session.answers.is_empty())
            && matches!(session.state, State::Leaving { .. })
        {
            session.close();
        }
    }

    /// Whose game is over: the ends of their connections wait for [`handle_drained`](Self::handle_drained), or for a
    /// second.
    pub fn leaving(&self) -> impl Iterator<Item = K> {
        let leaving = self.sessions.iter().filter(|session| matches!(session.state, State::Leaving { .. }));
        leaving.map(|session| session.connection)
    }

    /// Time has passed: makes the ticks that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for _ in 0..self.clock.take_due(now) {
            self.tick();
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.clock.next()
    }

    /// One tick: the world moves, its snapshot goes to every player, those who fell have lost, and whose time is up goes.
    pub fn tick(&mut self) {
        let fallen = self.world.tick();
        self.dispatch_snapshot();
        self.check_win_condition(&fallen);
        let now = self.world.time();
        self.sessions.iter_mut().for_each(|session| session.expire(now));
    }

    /// What to send, packed into `buffer`, or which connection to end. Call it until there is nothing.
    pub fn poll_output<'b>(&'b mut self, buffer: &'b mut [u8]) -> Option<Output<'b, K>> {
        loop {
            let (index, work) = self.next_work()?;
            let session = self.sessions.get(index)?;
            let (to, scope) = (session.connection, session.scope);
            match work {
                Work::Answer(answer) => {
                    let message = self.message(answer);
                    let delivery = message.delivery();
                    if let Ok(length) = pack(&message, buffer).map(<[u8]>::len) {
                        let agreed = if let Answer::Connect(..) = answer { scope } else { Scope::Whole };
                        let length = agreed.write(buffer, length);
                        return Some(Output::Send { to, delivery, payload: buffer.get(..length)? });
                    }
                }
                Work::Snapshot if self.pack_snapshot(scope) => {
                    let payload = match scope {
                        Scope::Whole => self.whole.bytes(),
                        Scope::Changes => self.partial.bytes(),
                    };
                    return Some(Output::Send { to, delivery: Delivery::Unreliable, payload });
                }
                Work::Snapshot => {}
                Work::Close => {
                    self.sessions.swap_remove(index);
                    return Some(Output::Close { connection: to });
                }
            }
            self.stats.dropped += 1;
        }
    }

    /// Packs the snapshot of this tick if nobody has had it yet; false if it has no room.
    fn pack_snapshot(&mut self, scope: Scope) -> bool {
        let (time, entities) = (self.world.time(), &self.entities);
        match scope {
            Scope::Whole => self.whole.pack(time, entities),
            Scope::Changes => {
                let changes = &self.changes;
                self.partial.pack_with(time, || changes.at(time))
            }
        }
    }

    /// What is next, connection by connection, each in its turn.
    fn next_work(&mut self) -> Option<(usize, Work)> {
        // Sessions may have ended since: then it goes on from the first one.
        let first = self.cursor.min(self.sessions.len());
        let (before, from) = self.sessions.split_at_mut_checked(first).unwrap_or_default();
        let behind = from.iter_mut().enumerate().map(|(index, session)| (first + index, session));
        let mut all = behind.chain(before.iter_mut().enumerate());
        let found = all.find_map(|(index, session)| Some((index, session.take_work()?)));
        self.cursor = found.as_ref().map_or(0, |(index, _)| *index);
        found
    }

    fn find(&self, connection: K) -> Option<usize> {
        self.sessions.iter().position(|session| session.connection == connection)
    }

    /// A client joins; what it is sent first has its own player in it.
    fn add_to_session(&mut self, connection: K, channel: Channel, scope: Scope) {
        let Some(player) = self.world.join() else {
            self.answer(connection, Answer::NoRoom(channel));
            return;
        };
        self.entities = self.world.entities();
        if let Some(session) = self.sessions.iter_mut().find(|session| session.connection == connection) {
            session.state = State::Playing { player };
            session.scope = scope;
        }
        self.answer(connection, Answer::Connect(channel, player));
    }

    fn answer(&mut self, connection: K, answer: Answer) {
        let session = self.sessions.iter_mut().find(|session| session.connection == connection);
        let kept = session.is_some_and(|session| session.answers.push_back(answer).is_ok());
        self.stats.dropped += u64::from(!kept);
    }

    fn reject(&mut self, connection: K) {
        self.stats.malformed += 1;
        let session = self.sessions.iter_mut().find(|session| session.connection == connection);
        if let Some(session) = session {
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
        self.changes.note(now, &self.entities);
        for session in &mut self.sessions {
            let Some(player) = session.player() else { continue };
            // Half of those who want changes get them in one tick, half in the next.
            if session.scope == Scope::Whole || player.0 % 2 == now % 2 {
                session.snapshot = session::Snapshot::Waits;
            }
        }
    }

    /// Who fell has lost. Who is then the only one has won; who was alone from the start has not.
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

    /// Room for it is made: what else waits for this client is of no use any more.
    fn send_game_over(&mut self, player: PlayerId, result: GameOver) {
        let now = self.world.time();
        let session = self.sessions.iter_mut().find(|session| session.player() == Some(player));
        if let Some(session) = session {
            session.answers.clear();
            let _ = session.answers.push_back(Answer::GameOver(now, result));
            session.state = State::Leaving { until: now.wrapping_add(TICKS_PER_SECOND) };
        }
    }

    fn message(&self, answer: Answer) -> ServerMessage<'_> {
        let (channel, kind) = match answer {
            Answer::Pong(channel) => (channel, ResponseKind::Pong),
            Answer::AlreadyPlaying(channel) => (channel, ResponseKind::Error(Text::new(ALREADY_PLAYING))),
            Answer::NoRoom(channel) => (channel, ResponseKind::Error(Text::new(NO_ROOM))),
            Answer::Connect(channel, player) => {
                (channel, ResponseKind::Connect(Connect { player, snapshot: self.snapshot() }))
            }
            Answer::GameOver(time, result) => return self.event(time, EventKind::GameOver(result)),
        };
        ServerMessage::Response(Response { channel, kind })
    }

    #[expect(clippy::unused_self, reason = "its lifetime is that of the snapshot")]
    const fn event<'s>(&'s self, time: u32, kind: EventKind<'s>) -> ServerMessage<'s> {
        ServerMessage::Event(Event { time, kind })
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { entities: List::new(&self.entities) }
    }
}

/// A player that asks to join is told that it has.
const fn response_to(request: Request) -> Answer {
    match request.kind {
        RequestKind::Ping => Answer::Pong(request.channel),
        RequestKind::Init => Answer::AlreadyPlaying(request.channel),
    }
}

#[cfg(test)]
mod tests;

//! The client's side of the game as a state machine (docs/game.md#the-client). It keeps no world: a
//! snapshot is lent as it lies in the message, and [`View`] is there for those who want to keep it.
//!
//! ```
//! use rakwire::Instant;
//! use snowfight::client::{Client, Input};
//! use snowfight::message::{Delivery, Direction};
//! use snowfight::server::Server;
//!
//! let (mut client, mut server) = (Client::new(), Server::new(7));
//! let now = Instant::ZERO;
//! server.handle_connected(())?;
//! client.handle_connected();
//!
//! let mut buffer = [0; snowfight::server::MAX_MESSAGE];
//! let (delivery, payload) = client.poll_message(&mut buffer).expect("it wants to join");
//! assert_eq!(delivery, Delivery::Reliable);
//! server.handle_message((), &payload);
//!
//! let Some(snowfight::server::Output::Send { payload, .. }) = server.poll_output(&mut buffer) else { panic!("no answer") };
//! client.handle_message(now, &payload)?;
//! client.handle_frame(now, Input { movement: Direction::NORTH, ..Input::default() });
//! assert!(client.player().is_some() && client.poll_message(&mut buffer).is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod predict;
mod view;

use core::time::Duration;

use heapless::Deque;
use rakwire::codec::rabbit::{Error, List, Reader, Text, Unpack, pack};
use rakwire::{Chunks, Instant};

use crate::message::{
    Action, ActionKind, Break, Channel, ClientMessage, Delivery, Direction, Entity, EntityId, Event,
    EventKind, GameOver, Move, PlayerId, Point, Request, RequestKind, Response, ResponseKind, Scope,
    ServerMessage, Throw,
};
pub use predict::Prediction;
pub use view::View;

/// How often the server is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// Frames until an action is said again although nothing changed: nothing is ordered on the wire
/// (docs/game.md#reliability), so an older one may have arrived last.
const REPEAT: u8 = 6;
/// Messages that wait to be sent: what one frame has to say twice, and the first request.
const MAX_WAITING: usize = 8;
/// The channel of the request to join.
const INIT: Channel = Channel(0);

/// What the player wants, in one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Input {
    /// Where to walk.
    pub movement: Direction,
    /// What to break.
    pub breaking: Option<EntityId>,
    /// Where to throw what is held.
    pub throw: Option<Point>,
}

/// What a message of the server means.
#[derive(Clone, Debug, PartialEq)]
pub enum News<'m> {
    /// The client is in the game.
    Joined {
        /// As whom.
        player: PlayerId,
        /// Everything there is.
        entities: List<'m, Entity>,
    },
    /// A newer state of the world.
    Snapshot {
        /// Its tick.
        time: u32,
        /// Everything there is, or what has changed.
        entities: List<'m, Entity>,
        /// Which of both.
        scope: Scope,
    },
    /// The game is over.
    Over(GameOver),
    /// The server is there.
    Pong {
        /// The time since the question; nothing when it is not known any more.
        round_trip: Option<Duration>,
    },
    /// The server refuses something.
    Refused(Text<'m>),
    /// What is out of date, or was not asked for.
    Nothing,
}

/// How far the client is.
///
/// ```text
///  Connecting --> Joining --> Playing --> Over
///                    |                      ^
///                    +----------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no connection.
    Connecting,
    /// Init was sent.
    Joining,
    /// In the game; the tick of the newest snapshot.
    Playing { player: PlayerId, newest: Option<u32>, scope: Scope },
    /// It has an end.
    Over(GameOver),
}

/// A question that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Ping {
    channel: Channel,
    sent: Instant,
}

/// What was said last, and how many frames ago.
#[derive(Clone, Copy, Debug)]
struct Said {
    input: Input,
    frames: u8,
}

/// The client.
///
/// ```
/// let mut client = snowfight::client::Client::new();
/// assert!(client.poll_message(&mut [0; 16]).is_none());
/// client.handle_connected();
/// assert!(client.poll_message(&mut [0; 16]).is_some());
/// ```
#[derive(Debug)]
pub struct Client {
    state: State,
    waiting: Deque<ClientMessage, MAX_WAITING>,
    ping: Option<Ping>,
    said: Option<Said>,
    next_channel: u32,
    wanted: Scope,
}

impl Client {
    /// A client without a connection that gets whole snapshots.
    #[must_use]
    pub const fn new() -> Self {
        Self::asking_for(Scope::Whole)
    }

    /// A client without a connection that asks for such snapshots. A server that knows only whole ones sends those.
    #[must_use]
    pub const fn asking_for(wanted: Scope) -> Self {
        let waiting = Deque::new();
        Self { state: State::Connecting, waiting, ping: None, said: None, next_channel: INIT.0 + 1, wanted }
    }

    /// Who the client is, while it plays.
    #[must_use]
    pub const fn player(&self) -> Option<PlayerId> {
        match self.state {
            State::Playing { player, .. } => Some(player),
            State::Connecting | State::Joining | State::Over(_) => None,
        }
    }

    /// How the game ended, if it did.
    #[must_use]
    pub const fn result(&self) -> Option<GameOver> {
        match self.state {
            State::Over(result) => Some(result),
            State::Connecting | State::Joining | State::Playing { .. } => None,
        }
    }

    /// The connection is open: the client wants to join.
    pub fn handle_connected(&mut self) {
        if self.state == State::Connecting {
            self.state = State::Joining;
            self.say(ClientMessage::Request(Request { channel: INIT, kind: RequestKind::Init }));
        }
    }

    /// The connection has ended. A result stays; otherwise everything begins anew.
    pub fn handle_disconnected(&mut self) {
        let state = if let State::Over(_) = self.state { self.state } else { State::Connecting };
        *self = Self { state, ..Self::asking_for(self.wanted) };
    }

    /// A message has arrived. What it means borrows from it.
    ///
    /// # Errors
    /// The message cannot be unpacked; nothing has changed. It is best ignored.
    pub fn handle_message<'m>(&mut self, now: Instant, message: &'m dyn Chunks) -> Result<News<'m>, Error> {
        let mut reader = Reader::over(message);
        Ok(match ServerMessage::unpack(&mut reader)? {
            ServerMessage::Event(event) => self.on_event(event),
            ServerMessage::Response(response) => {
                let agreed = Scope::read(&mut reader);
                self.on_response(now, response, agreed)
            }
        })
    }

    /// A frame begins: says what has changed of the input, and asks from time to time whether the server is there.
    pub fn handle_frame(&mut self, now: Instant, input: Input) {
        if !matches!(self.state, State::Playing { .. }) {
            return;
        }
        self.send_ping(now);
        self.send_actions(input);
    }

    /// The next message to send, packed into `buffer`, and how. 16 bytes hold each.
    pub fn poll_message<'b>(&mut self, buffer: &'b mut [u8]) -> Option<(Delivery, &'b [u8])> {
        let message = self.waiting.front()?;
        let delivery = message.delivery();
        let asked = match message {
            ClientMessage::Request(Request { kind: RequestKind::Init, .. }) => self.wanted,
            ClientMessage::Request(_) | ClientMessage::Action(_) => Scope::Whole,
        };
        let length = pack(message, buffer).ok()?.len();
        let length = asked.write(buffer, length);
        self.waiting.pop_front();
        Some((delivery, buffer.get(..length)?))
    }

    fn on_event<'m>(&mut self, event: Event<'m>) -> News<'m> {
        match (event.kind, &mut self.state) {
            (EventKind::Snapshot(snapshot), State::Playing { newest, scope, .. }) => {
                if newest.is_some_and(|newest| !is_later(event.time, newest)) {
                    return News::Nothing;
                }
                *newest = Some(event.time);
                News::Snapshot { time: event.time, entities: snapshot.entities, scope: *scope }
            }
            // Nothing is ordered on the wire: the end may overtake the Connect.
            (EventKind::GameOver(result), State::Joining | State::Playing { .. }) => {
                self.state = State::Over(result);
                self.waiting.clear();
                News::Over(result)
            }
            (EventKind::Snapshot(_), State::Connecting | State::Joining | State::Over(_))
            | (EventKind::GameOver(_), State::Connecting | State::Over(_)) => News::Nothing,
        }
    }

    fn on_response<'m>(&mut self, now: Instant, response: Response<'m>, scope: Scope) -> News<'m> {
        match response.kind {
            ResponseKind::Connect(connect) if self.state == State::Joining && response.channel == INIT => {
                self.state = State::Playing { player: connect.player, newest: None, scope };
                News::Joined { player: connect.player, entities: connect.snapshot.entities }
            }
            ResponseKind::Connect(_) => News::Nothing,
            ResponseKind::Error(why) => News::Refused(why),
            ResponseKind::Pong => {
                let asked = self.ping.filter(|ping| ping.channel == response.channel);
                let round_trip = asked.map(|ping| now.saturating_since(ping.sent));
                News::Pong { round_trip }
            }
        }
    }

    fn send_ping(&mut self, now: Instant) {
        if self.ping.is_some_and(|ping| now.saturating_since(ping.sent) < PING_INTERVAL) {
            return;
        }
        let channel = Channel(self.next_channel);
        self.next_channel = self.next_channel.checked_add(1).unwrap_or(INIT.0 + 1);
        self.ping = Some(Ping { channel, sent: now });
        self.say(ClientMessage::Request(Request { channel, kind: RequestKind::Ping }));
    }

    /// What changed, and now and then what did not.
    fn send_actions(&mut self, input: Input) {
        let repeat = self.said.is_none_or(|said| said.frames + 1 >= REPEAT);
        let last = self.said.map(|said| said.input);
        if repeat || last.is_none_or(|last| last.movement != input.movement) {
            self.act(ActionKind::Move(Move { direction: input.movement }));
        }
        if repeat || last.is_none_or(|last| last.breaking != input.breaking) {
            self.act(ActionKind::Break(Break { entity: input.breaking }));
        }
        if let Some(target) = input.throw {
            self.act(ActionKind::Throw(Throw { target }));
        }
        let frames = if repeat { 0 } else { self.said.map_or(0, |said| said.frames + 1) };
        self.said = Some(Said { input, frames });
    }

    fn act(&mut self, kind: ActionKind) {
        self.say(ClientMessage::Action(Action { kind }));
    }

    /// When nobody takes the messages, the oldest is out of date.
    fn say(&mut self, message: ClientMessage) {
        if self.waiting.is_full() {
            self.waiting.pop_front();
        }
        // There is room now.
        let _ = self.waiting.push_back(message);
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a tick comes after another one, although the count wraps.
const fn is_later(tick: u32, other: u32) -> bool {
    let ahead = tick.wrapping_sub(other);
    ahead != 0 && ahead < u32::MAX / 2
}

#[cfg(test)]
mod tests;

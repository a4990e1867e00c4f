//! The client state machine of the game (docs/game.md#the-client).
//!
//! It does not store the world. Snapshots borrow from the received message; [`View`] can store them.
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
//! let (delivery, payload) = client.poll_message(&mut buffer).expect("a request to join");
//! assert_eq!(delivery, Delivery::Reliable);
//! server.handle_message((), &payload);
//!
//! let Some(snowfight::server::Output::Send { payload, .. }) = server.poll_output(&mut buffer) else { panic!("no response") };
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
    ServerMessage, SnapshotAck, Throw,
};
pub use predict::Prediction;
pub use view::View;

/// The interval between pings.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// The number of frames after which an unchanged movement or break is sent again.
///
/// Messages are unordered (docs/game.md#reliability), so an older one may have arrived last.
const REPEAT_FRAMES: u8 = 6;
/// The offset of repeated breaks from repeated movements, in frames. With the offset, the server receives
/// acknowledgements at twice the rate.
const BREAK_FRAME: u8 = REPEAT_FRAMES / 2;
/// The maximum number of queued messages: two frames' worth and the initial join request.
const MAX_QUEUED: usize = 8;
/// The channel of the request to join.
const INIT: Channel = Channel(0);

/// The input of the player in one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Input {
    /// The direction in which to walk.
    pub movement: Direction,
    /// The entity to break; `None` to stop.
    pub breaking: Option<EntityId>,
    /// The target of a throw; `None` for no throw.
    pub throw: Option<Point>,
}

/// The effect of a message from the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Update<'m> {
    /// The client has joined the game.
    Joined {
        /// The id of the client's player.
        player: PlayerId,
        /// The whole world.
        entities: List<'m, Entity>,
    },
    /// A newer state of the world.
    Snapshot {
        /// The tick of the state.
        time: u32,
        /// All entities, or only those that have changed; see `scope`.
        entities: List<'m, Entity>,
        /// The scope of the snapshot.
        scope: Scope,
    },
    /// The game is over.
    Over(GameOver),
    /// The server has answered a ping.
    Pong {
        /// The round-trip time; `None` if the pong does not match the last ping.
        round_trip: Option<Duration>,
    },
    /// The server has rejected a request.
    Rejected(Text<'m>),
    /// The message was outdated or unexpected, and had no effect.
    Ignored,
}

/// The state of the client.
///
/// ```text
///  Connecting --> Joining --> Playing --> Over
///                    |                      ^
///                    +----------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No connection is open.
    Connecting,
    /// The request to join was sent.
    Joining,
    /// The client is in the game; `newest` is the tick of the newest snapshot.
    Playing { player: PlayerId, newest: Option<u32>, scope: Scope },
    /// The game is over.
    Over(GameOver),
}

/// A ping that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Ping {
    channel: Channel,
    sent: Instant,
}

/// The last input that was sent, and the number of frames since the movement was sent.
#[derive(Clone, Copy, Debug)]
struct LastInput {
    input: Input,
    frames: u8,
}

/// The client state machine.
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
    queue: Deque<ClientMessage, MAX_QUEUED>,
    ping: Option<Ping>,
    last_sent: Option<LastInput>,
    next_channel: u32,
    requested: Scope,
}

impl Client {
    /// Creates an unconnected client that requests whole snapshots.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_scope(Scope::Whole)
    }

    /// Creates an unconnected client that requests snapshots of this scope. A server that supports only whole
    /// snapshots sends those.
    #[must_use]
    pub const fn with_scope(requested: Scope) -> Self {
        let queue = Deque::new();
        Self {
            state: State::Connecting,
            queue,
            ping: None,
            last_sent: None,
            next_channel: INIT.0 + 1,
            requested,
        }
    }

    /// Returns the client's player while it is in the game.
    #[must_use]
    pub const fn player(&self) -> Option<PlayerId> {
        match self.state {
            State::Playing { player, .. } => Some(player),
            State::Connecting | State::Joining | State::Over(_) => None,
        }
    }

    /// Returns true if the client is in the game and uses replication.
    #[must_use]
    pub const fn is_replicated(&self) -> bool {
        matches!(self.state, State::Playing { scope: Scope::Replicated, .. })
    }

    /// Returns the result of the game once it is over.
    #[must_use]
    pub const fn result(&self) -> Option<GameOver> {
        match self.state {
            State::Over(result) => Some(result),
            State::Connecting | State::Joining | State::Playing { .. } => None,
        }
    }

    /// Handles a new connection, and queues the request to join.
    pub fn handle_connected(&mut self) {
        if self.state == State::Connecting {
            self.state = State::Joining;
            self.enqueue(ClientMessage::Request(Request { channel: INIT, kind: RequestKind::Init }));
        }
    }

    /// Handles the closing of the connection. The result of a finished game is kept; otherwise the client returns to
    /// its initial state.
    pub fn handle_disconnected(&mut self) {
        let state = if let State::Over(_) = self.state { self.state } else { State::Connecting };
        *self = Self { state, ..Self::with_scope(self.requested) };
    }

    /// Handles a message from the server. The returned update borrows from the message.
    ///
    /// # Errors
    /// Returns an error if the message cannot be unpacked. The message has no effect then, and can be ignored.
    pub fn handle_message<'m>(&mut self, now: Instant, message: &'m dyn Chunks) -> Result<Update<'m>, Error> {
        let mut reader = Reader::over(message);
        Ok(match ServerMessage::unpack(&mut reader)? {
            ServerMessage::Event(event) => self.on_event(event),
            ServerMessage::Response(response) => {
                let agreed = Scope::read(&mut reader);
                self.on_response(now, response, agreed)
            }
        })
    }

    /// Returns the tick of a message that contains a whole snapshot; `None` for other messages. Of several queued
    /// snapshots only the newest matters, so a client that handles messages once per frame can skip the others.
    #[must_use]
    pub fn whole_snapshot_time(&self, message: &dyn Chunks) -> Option<u32> {
        let State::Playing { scope: Scope::Whole, .. } = self.state else { return None };
        // The message begins with the variant indices of `ServerMessage` and `EventKind`, with the tick between them.
        let (is_response, time, is_game_over) =
            <(bool, u32, bool)>::unpack(&mut Reader::over(message)).ok()?;
        (!is_response && !is_game_over).then_some(time)
    }

    /// Handles a frame: queues changed input, and a ping once per second.
    pub fn handle_frame(&mut self, now: Instant, input: Input) {
        if !matches!(self.state, State::Playing { .. }) {
            return;
        }
        self.send_ping(now);
        self.send_actions(input);
    }

    /// Packs the next message into `buffer`, which needs at most 16 bytes, and returns its reliability and its bytes.
    /// An acknowledgement of the newest snapshot follows every action except throws, which are already long.
    pub fn poll_message<'b>(&mut self, buffer: &'b mut [u8]) -> Option<(Delivery, &'b [u8])> {
        let message = self.queue.front()?;
        let delivery = message.delivery();
        let length = pack(message, buffer).ok()?.len();
        let length = match message {
            ClientMessage::Request(Request { kind: RequestKind::Init, .. }) => {
                self.requested.write(buffer, length)
            }
            ClientMessage::Action(Action { kind: ActionKind::Move(_) | ActionKind::Break(_) }) => {
                self.newest().map_or(length, |time| SnapshotAck { time }.write(buffer, length))
            }
            ClientMessage::Request(_) | ClientMessage::Action(_) => length,
        };
        self.queue.pop_front();
        Some((delivery, buffer.get(..length)?))
    }

    /// Returns the tick of the newest snapshot in this game.
    const fn newest(&self) -> Option<u32> {
        match self.state {
            State::Playing { newest, .. } => newest,
            State::Connecting | State::Joining | State::Over(_) => None,
        }
    }

    fn on_event<'m>(&mut self, event: Event<'m>) -> Update<'m> {
        match (event.kind, &mut self.state) {
            (EventKind::Snapshot(_), State::Playing { scope: Scope::Replicated, .. }) => Update::Ignored,
            (EventKind::Snapshot(snapshot), State::Playing { newest, scope, .. }) => {
                if newest.is_some_and(|newest| !is_later(event.time, newest)) {
                    return Update::Ignored;
                }
                *newest = Some(event.time);
                Update::Snapshot { time: event.time, entities: snapshot.entities, scope: *scope }
            }
            // Messages are unordered, so the result of the game may arrive before Connect.
            (EventKind::GameOver(result), State::Joining | State::Playing { .. }) => {
                self.state = State::Over(result);
                self.queue.clear();
                Update::Over(result)
            }
            (EventKind::Snapshot(_), State::Connecting | State::Joining | State::Over(_))
            | (EventKind::GameOver(_), State::Connecting | State::Over(_)) => Update::Ignored,
        }
    }

    fn on_response<'m>(&mut self, now: Instant, response: Response<'m>, scope: Scope) -> Update<'m> {
        match response.kind {
            ResponseKind::Connect(connect) if self.state == State::Joining && response.channel == INIT => {
                self.state = State::Playing { player: connect.player, newest: None, scope };
                Update::Joined { player: connect.player, entities: connect.snapshot.entities }
            }
            ResponseKind::Connect(_) => Update::Ignored,
            ResponseKind::Error(why) => Update::Rejected(why),
            ResponseKind::Pong => {
                let ping = self.ping.filter(|ping| ping.channel == response.channel);
                let round_trip = ping.map(|ping| now.saturating_since(ping.sent));
                Update::Pong { round_trip }
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
        self.enqueue(ClientMessage::Request(Request { channel, kind: RequestKind::Ping }));
    }

    /// Queues changed input, and at intervals unchanged input.
    fn send_actions(&mut self, input: Input) {
        let last = self.last_sent.map(|last_sent| last_sent.input);
        let frame = self.last_sent.map_or(0, |last_sent| (last_sent.frames + 1) % REPEAT_FRAMES);
        if frame == 0 || last.is_none_or(|last| last.movement != input.movement) {
            self.act(ActionKind::Move(Move { direction: input.movement }));
        }
        if frame == BREAK_FRAME || last.is_none_or(|last| last.breaking != input.breaking) {
            self.act(ActionKind::Break(Break { entity: input.breaking }));
        }
        if let Some(target) = input.throw {
            self.act(ActionKind::Throw(Throw { target }));
        }
        self.last_sent = Some(LastInput { input, frames: frame });
    }

    fn act(&mut self, kind: ActionKind) {
        self.enqueue(ClientMessage::Action(Action { kind }));
    }

    /// Queues a message. If the queue is full, its oldest message is dropped.
    fn enqueue(&mut self, message: ClientMessage) {
        if self.queue.is_full() {
            self.queue.pop_front();
        }
        // This cannot fail: the queue has a free slot.
        let _ = self.queue.push_back(message);
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns true if `tick` is later than `other`, with wrap-around.
const fn is_later(tick: u32, other: u32) -> bool {
    let ahead = tick.wrapping_sub(other);
    ahead != 0 && ahead < u32::MAX / 2
}

#[cfg(test)]
mod tests;

//! The protocol of an endpoint, whom its events are for, and the bells that tasks wait for.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rakwire::game_protocol::wire::Header;
use rakwire::game_protocol::{
    ConnectFailure, ConnectionId, DisconnectReason, Event, Hooked, Peer, Reliability, SendError, Side,
};
use rakwire::{Instant, Machine};
use tokio::sync::Notify;

use super::connection::Incoming;
use super::options::Options;
use super::plugin::Plugin;
use crate::arrivals::Train;
use crate::inbox::{self, Letter, Level, Protocol};
use crate::outgoing::Outgoing;
use crate::shared::{Driven, Io};
use crate::state::{Door, Next};

/// The protocol of an [`Endpoint`](super::Endpoint).
#[derive(Debug)]
pub(super) enum Game {}

impl Protocol for Game {
    type Message = Incoming;
    type Opened = ();
    type Failure = ConnectFailure;
    type Reason = DisconnectReason;
}

impl Letter for Incoming {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

pub(super) type Inbox = inbox::Inbox<Game>;
pub(super) type Phase = inbox::Phase<Game>;

/// The protocol behind its lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) hooked: Hooked<'static, Plugin>,
    pub(super) door: Door,
    /// Where the messages of each connection go.
    inboxes: HashMap<ConnectionId, Arc<Inbox>>,
    /// Connections whose application has not read what came before.
    paused: HashMap<SocketAddr, Arc<Inbox>>,
    /// Connections that somebody else opened and nobody has accepted yet.
    pub(super) backlog: VecDeque<(ConnectionId, Arc<Inbox>)>,
    backlog_limit: usize,
    receive_queue: usize,
}

/// What an endpoint, its connections and its tasks have in common.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) io: Io,
    /// Rings for those that wait until more fits.
    pub(super) room: Notify,
    /// Rings for those that accept connections.
    pub(super) newcomers: Notify,
}

impl Shared {
    pub(super) fn new(options: Options, plugin: Plugin) -> Self {
        let state = State {
            hooked: Hooked::new(Peer::with_capacity(options.capacity, options.config), plugin),
            door: Door::Open,
            inboxes: HashMap::new(),
            paused: HashMap::new(),
            backlog: VecDeque::new(),
            backlog_limit: options.backlog,
            receive_queue: options.receive_queue,
        };
        Self {
            state: Mutex::new(state),
            io: Io::new(options.arrival_queue, options.simulate),
            room: Notify::new(),
            newcomers: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the application act on the protocol, after everything that arrived before.
    pub(super) fn act<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        let now = state.catch_up(&self.io);
        let result = act(&mut state, now);
        drop(state);
        self.io.wake.notify_one();
        result
    }
}

impl Driven for Shared {
    fn io(&self) -> &Io {
        &self.io
    }

    fn turn(&self, outgoing: &mut Outgoing) -> Next {
        let mut state = self.lock();
        let now = state.catch_up(&self.io);
        let next = state.turn(now, outgoing);
        let has_newcomers = !state.backlog.is_empty() || next == Next::End;
        self.io.ring_if_idle(next);
        drop(state);
        self.room.notify_waiters();
        if has_newcomers {
            self.newcomers.notify_waiters();
        }
        next
    }
}

impl State {
    /// Handles what arrived, each datagram at its own time, and returns the time of now.
    fn catch_up(&mut self, io: &Io) -> Instant {
        for train in io.arrivals.take(io.clock.now()) {
            self.handle_train(&train);
            self.dispatch(train.at);
        }
        io.clock.now()
    }

    fn handle_train(&mut self, train: &Train) {
        for datagram in train.datagrams() {
            if self.takes(train.from, datagram) {
                self.hooked.handle_datagram(train.at, train.from, datagram);
            }
        }
    }

    /// Whether the protocol may see a datagram. Chunks for an application that does not read are not: the other peer
    /// sends again what is reliable.
    fn takes(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some(inbox) = self.paused.get(&from) else { return true };
        if inbox.level(self.receive_queue) == Level::Free {
            self.paused.remove(&from);
            return true;
        }
        !matches!(Header::read(datagram), Ok((Header::Chunk { .. }, _)))
    }

    /// Hands every event to the one who waits for it.
    fn dispatch(&mut self, now: Instant) {
        let mut turned_away = Vec::new();
        while let Some(event) = self.hooked.peer.poll_event() {
            match event {
                Event::Connected { id, remote, side } => {
                    let refused = (!self.welcome(id, remote, side)).then_some(id);
                    turned_away.extend(refused);
                }
                Event::ConnectFailed { id, reason, .. } => {
                    finish(&mut self.inboxes, &mut self.paused, id, Phase::Failed(reason));
                }
                Event::Disconnected { id, reason, .. } => {
                    finish(&mut self.inboxes, &mut self.paused, id, Phase::Closed(reason));
                }
                Event::Message { id, reliability, message } => {
                    if let Some(inbox) = self.inboxes.get(&id) {
                        let message = Incoming { bytes: message.to_vec(), reliability };
                        if inbox.push(message, self.receive_queue) == Level::Full {
                            self.paused.insert(inbox.remote, Arc::clone(inbox));
                        }
                    }
                }
                _ => {}
            }
        }
        for id in turned_away {
            self.hooked.peer.disconnect(now, id);
        }
    }

    /// Tells the application of a connection that is open; false if it cannot have it.
    fn welcome(&mut self, id: ConnectionId, remote: SocketAddr, side: Side) -> bool {
        if side == Side::Client {
            if let Some(inbox) = self.inboxes.get(&id) {
                inbox.set_phase(Phase::Open(()));
            }
            return true;
        }
        if self.door == Door::Shut || self.backlog.len() >= self.backlog_limit {
            return false;
        }
        let inbox = Arc::new(Inbox::new(remote, Phase::Open(())));
        self.inboxes.insert(id, Arc::clone(&inbox));
        self.backlog.push_back((id, inbox));
        true
    }

    /// Does what is due and composes what is to be sent.
    fn turn(&mut self, now: Instant, outgoing: &mut Outgoing) -> Next {
        self.hooked.handle_timeout(now);
        self.dispatch(now);
        while let Some(room) = outgoing.room() {
            let Some(transmit) = self.hooked.poll_transmit(now, room) else {
                break;
            };
            let (to, length) = (transmit.to, transmit.payload.len());
            outgoing.push(to, length);
        }
        self.dispatch(now);
        if !outgoing.is_empty() {
            Next::Again
        } else if self.door == Door::Shut && self.hooked.peer.connections().next().is_none() {
            Next::End
        } else {
            Next::Sleep(self.hooked.poll_timeout())
        }
    }

    /// Begins to open a connection.
    pub(super) fn dial(
        &mut self,
        now: Instant,
        to: SocketAddr,
    ) -> Result<(ConnectionId, Arc<Inbox>), rakwire::game_protocol::ConnectError> {
        let id = self.hooked.peer.connect(now, to)?;
        let inbox = Arc::new(Inbox::new(to, Phase::Opening));
        self.inboxes.insert(id, Arc::clone(&inbox));
        Ok((id, inbox))
    }

    /// Begins to end every connection, and takes no new ones.
    pub(super) fn shut(&mut self, now: Instant) {
        self.shut_door(now);
        let all: Vec<ConnectionId> = self.hooked.peer.connections().collect();
        for id in all {
            self.hooked.peer.disconnect(now, id);
        }
    }

    /// Takes no new connections, and ends those that nobody accepted.
    pub(super) fn shut_door(&mut self, now: Instant) {
        self.door = Door::Shut;
        for (id, _) in std::mem::take(&mut self.backlog) {
            self.abandon(now, id);
        }
    }

    /// Ends a connection that nobody reads any more.
    fn abandon(&mut self, now: Instant, id: ConnectionId) {
        if let Some(inbox) = self.inboxes.remove(&id) {
            self.paused.remove(&inbox.remote);
        }
        self.hooked.peer.disconnect(now, id);
    }
}

fn finish(
    inboxes: &mut HashMap<ConnectionId, Arc<Inbox>>,
    paused: &mut HashMap<SocketAddr, Arc<Inbox>>,
    id: ConnectionId,
    phase: Phase,
) {
    if let Some(inbox) = inboxes.remove(&id) {
        paused.remove(&inbox.remote);
        inbox.set_phase(phase);
    }
}

/// The hold of the application on a connection: when it is dropped, the connection ends.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ConnectionId,
    pub(super) inbox: Arc<Inbox>,
}

impl Link {
    pub(super) fn try_send(&self, message: &[u8], reliability: Reliability) -> Result<(), SendError> {
        let mut state = self.shared.lock();
        let now = state.catch_up(&self.shared.io);
        let sent = state.hooked.peer.send(now, self.id, message, reliability);
        drop(state);
        self.shared.io.ring_if_taken(&sent);
        sent
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.act(|state, now| state.abandon(now, self.id));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rakwire::game_protocol::Config;

    use super::*;

    /// Otherwise a peer that acknowledges nothing makes the driver and a sender wake each other for ever.
    #[tokio::test]
    async fn a_refused_sender_does_not_ring() {
        let shared = Arc::new(Shared::new(Options::new(Config::new([7; 32])), Plugin::NONE));
        let dialled = shared.act(|state, now| state.dial(now, ([127, 0, 0, 1], 9).into()));
        let (id, inbox) = dialled.expect("room for a connection");
        let link = Link { shared: Arc::clone(&shared), id, inbox };
        let rings = || tokio::time::timeout(Duration::ZERO, shared.io.wake.notified());
        assert!(rings().await.is_ok(), "an attempt to connect is for the driver");
        assert_eq!(link.try_send(b"x", Reliability::Reliable), Err(SendError::NotConnected));
        assert!(rings().await.is_err());
    }
}

//! The protocol of an endpoint, and whom its events are for.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::raknet::{ConnectionId, ConnectionState, Event, Guid, Hooked, Peer, Side};
use rakwire::wire::datagram::DatagramHeader;
use rakwire::wire::{Reader, Wire};
use rakwire::{Instant, Machine};

use crate::arrivals::{Arrivals, Train};
use crate::clock::Clock;
use crate::connection::Incoming;
use crate::inbox::{Inbox, Level, Phase};
use crate::options::Options;
use crate::outgoing::Outgoing;
use crate::pings::{Pings, Pong};
use crate::plugin::Plugin;
use crate::requests::Requests;
use crate::shared::Ring;
use crate::strangers::{Said, Stranger, Strangers};

/// Whether the endpoint takes new connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Open,
    /// Nobody holds the endpoint any more, or it was closed: it ends with its last connection.
    Shut,
}

/// A connection that somebody else opened and nobody has accepted yet.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) id: ConnectionId,
    pub(crate) guid: Guid,
    pub(crate) inbox: Arc<Inbox>,
}

/// The protocol, and whom its events are for.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) hooked: Hooked<'static, Plugin>,
    pub(crate) tables: Tables,
    pub(crate) requests: Requests,
    pub(crate) ring: Option<Ring>,
}

/// Everything that waits for an event.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) door: Door,
    /// Where the messages of each connection go.
    inboxes: HashMap<ConnectionId, Arc<Inbox>>,
    /// The inbox of the last message: mostly the next one's, too.
    last: Option<(ConnectionId, Arc<Inbox>)>,
    /// Connections whose application has not read what came before.
    paused: HashMap<SocketAddr, Arc<Inbox>>,
    pub(crate) backlog: VecDeque<Newcomer>,
    backlog_limit: usize,
    receive_queue: usize,
    turned_away: Vec<ConnectionId>,
    pub(crate) pings: Pings,
    pub(crate) strangers: Strangers,
    pub(crate) unread: u64,
    pub(crate) backlog_full: u64,
}

/// What the driver does after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// There may be more to send.
    Again,
    /// Nothing to do until then.
    Sleep(Option<Instant>),
    /// The endpoint has ended.
    End,
}

impl State {
    pub(crate) fn new(options: Options, plugin: Plugin) -> Self {
        let tables = Tables {
            door: Door::Open,
            inboxes: HashMap::new(),
            last: None,
            paused: HashMap::new(),
            backlog: VecDeque::new(),
            backlog_limit: options.backlog,
            receive_queue: options.receive_queue,
            turned_away: Vec::new(),
            pings: Pings::default(),
            strangers: Strangers::default(),
            unread: 0,
            backlog_full: 0,
        };
        let peer = Peer::with_capacity(options.capacity, options.config);
        Self { hooked: Hooked::new(peer, plugin), tables, requests: Requests::default(), ring: None }
    }

    /// Handles what arrived, each datagram at its own time, and returns the time of now. Everything that touches the
    /// protocol calls this first, or uses the time of who did last: it must never see a time later than that of a
    /// datagram which it handles afterwards.
    pub(crate) fn catch_up(&mut self, arrivals: &Arrivals, clock: &Clock) -> Instant {
        self.ring = None;
        let now = clock.now();
        let trains = arrivals.take(now);
        if trains.is_empty() {
            return now;
        }
        for train in trains {
            self.handle_train(&train);
            self.dispatch(train.at);
        }
        clock.now()
    }

    fn handle_train(&mut self, train: &Train) {
        for datagram in train.datagrams() {
            if Requests::are(datagram) {
                // Behind a shut door nobody new is heard.
                if self.tables.door == Door::Open {
                    self.requests.push(train.from, datagram);
                }
            } else if self.tables.takes(train.from, datagram) {
                self.hooked.handle_datagram(train.at, train.from, datagram);
            }
        }
    }

    /// Hands every event to the one who waits for it.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        while let Some(event) = self.hooked.poll_event() {
            self.tables.take(event);
        }
        for id in std::mem::take(&mut self.tables.turned_away) {
            self.hooked.peer.disconnect(now, id);
        }
    }

    /// Does what is due and composes what is to be sent.
    pub(crate) fn turn(&mut self, now: Instant, outgoing: &mut Outgoing) -> Next {
        self.hooked.handle_timeout(now);
        for (from, request) in self.requests.take() {
            self.hooked.handle_datagram(now, from, &request);
        }
        self.dispatch(now);
        while let Some(room) = outgoing.room() {
            let Some(transmit) = self.hooked.poll_transmit(now, room) else {
                break;
            };
            let (to, length) = (transmit.to, transmit.payload.len());
            outgoing.push(to, length);
        }
        self.dispatch(now);
        if !outgoing.is_empty() || !self.requests.is_empty() {
            Next::Again
        } else if self.tables.door == Door::Shut && !self.has_connections() {
            self.tables.pings.clear();
            Next::End
        } else {
            Next::Sleep(self.hooked.poll_timeout())
        }
    }

    /// Whether a connection has something left to say. One that only waits for lost farewells has not, nor has one
    /// that is not open yet and would not be accepted.
    fn has_connections(&self) -> bool {
        let mut infos = self.hooked.peer.connections().filter_map(|id| self.hooked.peer.connection(id));
        infos.any(|info| match info.state {
            ConnectionState::Connecting => info.side == Side::Client,
            ConnectionState::Connected | ConnectionState::Disconnecting => true,
            ConnectionState::Disconnected => false,
        })
    }

    /// Begins to end every connection, and takes no new ones.
    pub(crate) fn shut(&mut self, now: Instant) {
        self.shut_door(now);
        let all: Vec<ConnectionId> = self.hooked.peer.connections().collect();
        for id in all {
            self.hooked.peer.disconnect(now, id);
        }
    }

    /// Takes no new connections, and ends those that nobody accepted.
    pub(crate) fn shut_door(&mut self, now: Instant) {
        self.tables.door = Door::Shut;
        for newcomer in std::mem::take(&mut self.tables.backlog) {
            self.abandon(now, newcomer.id);
        }
    }

    /// Ends a connection that nobody reads any more.
    pub(crate) fn abandon(&mut self, now: Instant, id: ConnectionId) {
        if let Some(inbox) = self.tables.forget(id) {
            self.tables.paused.remove(&inbox.remote);
        }
        self.hooked.peer.disconnect(now, id);
    }
}

impl Tables {
    /// Whether the protocol may see a datagram. Data for an application that does not read are not: the other peer
    /// sends them again. Acknowledgements always are, or this side could not send.
    ///
    /// `Peer::pause` would not do: it fills the memory that all connections share up to the share of one, so two slow
    /// readers could hold up everybody else.
    fn takes(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        if self.paused.is_empty() {
            return true;
        }
        let Some(inbox) = self.paused.get(&from) else {
            return true;
        };
        if inbox.level(self.receive_queue) == Level::Free {
            self.paused.remove(&from);
            return true;
        }
        let header = DatagramHeader::read(&mut Reader::new(datagram));
        let is_data = matches!(header, Ok(DatagramHeader::Data { .. }));
        if is_data {
            self.unread += 1;
        }
        !is_data
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Connected { id, remote, guid, side } => match side {
                Side::Client => {
                    if let Some(inbox) = self.inboxes.get(&id) {
                        inbox.set_phase(Phase::Open(guid));
                    }
                }
                Side::Server => self.welcome(id, remote, guid),
            },
            Event::ConnectFailed { id, reason, .. } => {
                self.finish(id, Phase::Failed(reason));
            }
            Event::Disconnected { id, reason, .. } => {
                self.finish(id, Phase::Closed(reason));
            }
            Event::Message { id, delivery, message } => {
                let limit = self.receive_queue;
                let Some(inbox) = self.inbox(id) else { return };
                let bytes = message.to_vec();
                if inbox.push(Incoming { bytes, delivery }, limit) == Level::Full {
                    self.pause(id);
                }
            }
            Event::Pong { from, guid, latency, data } => {
                self.pings.answer(&Pong { from, guid, latency, data: data.to_vec() });
            }
            Event::OutOfBand { from, guid, data } => {
                self.strangers.push(Stranger { from, guid, said: Said::OutOfBand, data: data.to_vec() });
            }
            Event::Advertisement { from, guid, data } => {
                self.strangers.push(Stranger { from, guid, said: Said::Advertisement, data: data.to_vec() });
            }
            Event::Receipt { id, receipt, outcome } => {
                if let Some(inbox) = self.inboxes.get(&id) {
                    inbox.push_receipt(receipt, outcome);
                }
            }
            Event::Progress { id, progress } => {
                if let Some(inbox) = self.inboxes.get(&id) {
                    inbox.push_progress(progress);
                }
            }
            // What a later core may tell.
            _ => {}
        }
    }

    /// Where the messages of a connection go.
    fn inbox(&mut self, id: ConnectionId) -> Option<&Arc<Inbox>> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != id) {
            self.last = Some((id, Arc::clone(self.inboxes.get(&id)?)));
        }
        self.last.as_ref().map(|(_, inbox)| inbox)
    }

    fn pause(&mut self, id: ConnectionId) {
        if let Some(inbox) = self.inboxes.get(&id) {
            self.paused.insert(inbox.remote, Arc::clone(inbox));
        }
    }

    fn welcome(&mut self, id: ConnectionId, remote: SocketAddr, guid: Guid) {
        if self.door == Door::Shut || self.backlog.len() >= self.backlog_limit {
            self.turned_away.push(id);
            self.backlog_full += u64::from(self.door == Door::Open);
            return;
        }
        let inbox = Arc::new(Inbox::new(remote, Phase::Open(guid)));
        self.inboxes.insert(id, Arc::clone(&inbox));
        self.backlog.push_back(Newcomer { id, guid, inbox });
    }

    fn forget(&mut self, id: ConnectionId) -> Option<Arc<Inbox>> {
        self.last.take_if(|(last, _)| *last == id);
        self.inboxes.remove(&id)
    }

    fn finish(&mut self, id: ConnectionId, phase: Phase) {
        if let Some(inbox) = self.forget(id) {
            self.paused.remove(&inbox.remote);
            inbox.set_phase(phase);
        }
    }

    /// An inbox for a connection that this endpoint opens.
    pub(crate) fn expect(&mut self, id: ConnectionId, remote: SocketAddr) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::new(remote, Phase::Opening));
        self.inboxes.insert(id, Arc::clone(&inbox));
        inbox
    }
}

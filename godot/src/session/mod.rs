//! Sessions: servers and clients that do not depend on the engine.

mod calls;
mod opening;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use std::vec::IntoIter;

use rakwire_native::polled::{self, SendQueue};
use rakwire_native::raknet::ConnectionId;
use rakwire_native::rakwire::endpoint::{Event, Protocol, SendError};
use rakwire_native::{ConnectFailure, Delivery, RakNet};

use crate::error::Error;
use crate::gate::Gate;
use crate::options::ClientSettings;
use crate::packet::{Packet, Welcome, random_id, read_welcome, welcome};
use crate::statistics::Dropped;

pub use self::calls::Identity;

/// The unique id of a server.
pub(crate) const SERVER: i32 = 1;
/// The limit of queued received packets in bytes, counted by [`cost`](Packet::cost). Above it, packets stay in the
/// endpoint, and RakNet's flow control slows the senders down.
const MAX_QUEUED: usize = 8 << 20;
/// The time in which a server must assign an id to a client. After it, the client assumes that the server is not a
/// `RakwirePeer` and disconnects.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(5);

/// The status of a session, in Godot's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The client has no connection and is not connecting.
    Disconnected,
    /// The client is connecting, or waits for its id.
    Connecting,
    /// The server is open, or the client has its id.
    Connected,
}

/// An event for the game, returned by [`Session::poll`].
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The peer with this id connected. For a client, the peer is always the server.
    PeerConnected(i32),
    /// The peer with this id disconnected, and all of its packets have been read.
    PeerDisconnected(i32),
    /// A queued packet was refused by the connection, and the peer is being disconnected.
    SendFailed {
        /// The id of the peer.
        peer: i32,
        /// The reason.
        error: SendError,
    },
    /// A server answered a ping.
    Pong {
        /// The address of the server.
        from: SocketAddr,
        /// The round-trip time of the ping.
        latency: Duration,
        /// The advertisement of the server.
        advertisement: Vec<u8>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Open,
    /// This side is disconnecting the peer.
    Leaving,
    /// The connection has closed, but some of its packets have not been read yet.
    Ended,
}

/// The connection to another peer.
#[derive(Debug)]
struct Link {
    connection: ConnectionId,
    remote: SocketAddr,
    outgoing: SendQueue<RakNet>,
    state: LinkState,
    /// The maximum message length in bytes.
    max_len: usize,
    /// The number of unread packets from this peer in the queue.
    queued: usize,
    /// The error for which this side disconnects the peer, if any.
    fault: Option<String>,
}

impl Link {
    /// Marks the peer as leaving after the connection has refused a queued packet.
    fn refuse(&mut self, peer: i32, error: SendError, notices: &mut Vec<Notice>) {
        // For a closed connection the disconnect event follows.
        if error == SendError::NotConnected {
            return;
        }
        if self.state == LinkState::Open {
            self.state = LinkState::Leaving;
        }
        self.fault = Some(Error::Broken { peer, source: error }.to_string());
        notices.push(Notice::SendFailed { peer, error });
    }
}

/// The connection attempt of a client: its options, and the addresses not tried yet.
#[derive(Debug)]
struct Attempt {
    settings: ClientSettings,
    host: String,
    remaining: IntoIter<SocketAddr>,
    /// The deadline for the server to assign an id. `None` until the connection is open.
    welcome_until: Option<Instant>,
}

#[derive(Debug)]
enum Role {
    Server,
    Client(Box<Attempt>),
    /// A socket that only pings servers.
    Pinger,
}

/// A server, a client, or a socket for pings.
///
/// Dropping a session disconnects its peers. It blocks until they have acknowledged the disconnect, for at most the
/// time of the option `close_wait`.
#[derive(Debug)]
pub struct Session {
    endpoint: polled::Endpoint<RakNet>,
    role: Role,
    status: Status,
    unique_id: i32,
    links: BTreeMap<i32, Link>,
    ids: HashMap<ConnectionId, i32>,
    queue: VecDeque<Packet>,
    queued_bytes: usize,
    notices: Vec<Notice>,
    gate: Gate,
    backlog: usize,
    close_wait: Duration,
    dropped: Dropped,
    end: Option<String>,
}

impl Session {
    /// Handles received datagrams, sends pending ones, and returns the notices since the last poll.
    ///
    /// A peer counts as connected until all of its queued packets are read.
    pub fn poll(&mut self) -> Vec<Notice> {
        self.endpoint.update();
        while self.queued_bytes < MAX_QUEUED && self.next_event() {}
        self.check_welcome();
        self.retry();
        self.release_ended();
        self.endpoint.flush();
        std::mem::take(&mut self.notices)
    }

    /// Sends the packets that were put since the last poll.
    pub fn flush(&mut self) {
        self.endpoint.flush();
    }

    /// Handles one event. Returns false if there was none.
    fn next_event(&mut self) -> bool {
        let Some(event) = self.endpoint.poll_event() else { return false };
        match event {
            Event::Connected { id, remote, .. } => self.open(id, remote),
            Event::ConnectFailed { reason, .. } => self.try_next(reason),
            Event::MtuChanged { id, .. } => self.measure(id),
            Event::Message { id, delivery, .. } => {
                let message = self.endpoint.take_event_data();
                self.receive(id, delivery, message);
            }
            Event::Disconnected { id, reason, .. } => {
                if let Some(link) = self.ids.remove(&id).and_then(|peer| self.links.get_mut(&peer)) {
                    link.state = LinkState::Ended;
                    let reason = link.fault.take().unwrap_or_else(|| reason.to_string());
                    self.note_end(reason);
                }
            }
            Event::Pong { from, latency, .. } => {
                let advertisement = self.endpoint.take_event_data();
                self.notices.push(Notice::Pong { from, latency, advertisement });
            }
            _ => {}
        }
        true
    }

    /// Sends queued packets that the connections now accept.
    fn retry(&mut self) {
        for (peer, link) in &mut self.links {
            if let Err(error) = link.outgoing.retry(&mut self.endpoint) {
                link.refuse(*peer, error, &mut self.notices);
            }
        }
    }

    /// Records the reason for a disconnect. A client keeps the first reason, because later reasons are consequences of
    /// it.
    fn note_end(&mut self, reason: String) {
        if self.is_server() {
            self.end = Some(reason);
        } else {
            self.end.get_or_insert(reason);
        }
    }

    fn open(&mut self, connection: ConnectionId, remote: SocketAddr) {
        let peer = match &mut self.role {
            Role::Server => {
                let Ok(id) = random_id(|id| self.links.contains_key(&id)) else {
                    self.endpoint.disconnect(connection);
                    return;
                };
                // A new connection always has capacity for this message.
                if self.endpoint.send(connection, &welcome(id), Delivery::RELIABLE_ORDERED).is_err() {
                    self.endpoint.disconnect(connection);
                    return;
                }
                self.notices.push(Notice::PeerConnected(id));
                id
            }
            Role::Client(attempt) => {
                attempt.welcome_until = Some(Instant::now() + WELCOME_TIMEOUT);
                SERVER
            }
            Role::Pinger => return,
        };
        let outgoing = SendQueue::new(connection, self.backlog);
        let state = LinkState::Open;
        let link = Link { connection, remote, outgoing, state, max_len: 0, queued: 0, fault: None };
        self.ids.insert(connection, peer);
        self.links.insert(peer, link);
        self.measure(connection);
    }

    fn measure(&mut self, connection: ConnectionId) {
        let max_len = self.endpoint.max_message_len(connection).unwrap_or_default();
        if let Some(link) = self.ids.get(&connection).and_then(|peer| self.links.get_mut(peer)) {
            link.max_len = max_len;
        }
    }

    /// Connects to the next address of the server, if the last one did not answer. Otherwise the attempt fails.
    fn try_next(&mut self, reason: ConnectFailure) {
        let Role::Client(attempt) = &mut self.role else { return };
        while let Some(address) = attempt.remaining.next().filter(|_| RakNet::was_unanswered(&reason)) {
            let endpoint = &mut self.endpoint;
            let next =
                attempt.settings.attempt(&attempt.host, |with| Ok(endpoint.connect_with(address, with)?));
            if next.is_ok() {
                return;
            }
        }
        self.fail(reason.to_string());
    }

    /// Ends the connection attempt with a reason.
    fn fail(&mut self, reason: String) {
        self.status = Status::Disconnected;
        self.forget_attempt();
        for link in self.links.values_mut().filter(|link| link.state == LinkState::Open) {
            link.state = LinkState::Leaving;
            link.outgoing.abort(&mut self.endpoint);
        }
        self.note_end(reason);
    }

    /// Stops waiting for an id, and drops the packets received before an id was assigned.
    fn forget_attempt(&mut self) {
        if let Role::Client(attempt) = &mut self.role {
            attempt.welcome_until = None;
        }
        if self.status != Status::Connected {
            self.clear_queue();
        }
    }

    fn clear_queue(&mut self) {
        self.queue.clear();
        self.queued_bytes = 0;
        self.links.values_mut().for_each(|link| link.queued = 0);
    }

    fn receive(&mut self, connection: ConnectionId, delivery: Delivery, message: Vec<u8>) {
        let Some(&peer) = self.ids.get(&connection) else { return };
        if self.links.get(&peer).is_some_and(|link| link.state == LinkState::Leaving) {
            self.dropped.leaving += 1;
            return;
        }
        if let (Role::Client(attempt), Some(read)) = (&mut self.role, read_welcome(&message))
            && self.status == Status::Connecting
        {
            match read {
                Welcome::Id(id) => {
                    attempt.welcome_until = None;
                    self.unique_id = id;
                    self.status = Status::Connected;
                    self.notices.push(Notice::PeerConnected(SERVER));
                }
                Welcome::OtherVersion(version) => {
                    self.fail(format!(
                        "the server uses version {version} of RakwirePeer's messages; use the same build on both sides"
                    ));
                }
            }
            return;
        }
        match (Packet::open(peer, message, delivery), self.links.get_mut(&peer)) {
            (Some(packet), Some(link)) => {
                link.queued += 1;
                self.queued_bytes += packet.cost();
                self.queue.push_back(packet);
            }
            _ => self.dropped.unknown += 1,
        }
    }

    /// Disconnects from a server that did not assign an id in time.
    fn check_welcome(&mut self) {
        let Role::Client(attempt) = &self.role else { return };
        if attempt.welcome_until.is_some_and(|until| Instant::now() >= until) {
            self.fail("the server is not a RakwirePeer: it assigned no id within 5 seconds".to_owned());
        }
    }

    /// Removes closed links without unread packets, and reports them as disconnected.
    fn release_ended(&mut self) {
        let is_client = matches!(self.role, Role::Client(_));
        if is_client && self.status != Status::Connected {
            // Packets received before the id was assigned are dropped.
            self.links
                .values_mut()
                .filter(|link| link.state == LinkState::Ended)
                .for_each(|link| link.queued = 0);
        }
        let notices = &mut self.notices;
        let was_connected = self.status == Status::Connected;
        let mut is_over = false;
        self.links.retain(|id, link| {
            let ends = link.state == LinkState::Ended && link.queued == 0;
            if ends {
                is_over |= is_client;
                if was_connected {
                    notices.push(Notice::PeerDisconnected(*id));
                }
            }
            !ends
        });
        if is_over {
            self.status = Status::Disconnected;
            self.forget_attempt();
        }
    }

    /// Removes the next packet from the queue.
    pub fn take(&mut self) -> Option<Packet> {
        if self.status != Status::Connected {
            return None;
        }
        let packet = self.queue.pop_front()?;
        self.queued_bytes -= packet.cost();
        if let Some(link) = self.links.get_mut(&packet.from()) {
            link.queued -= 1;
        }
        Some(packet)
    }

    /// Returns the packet that [`take`](Self::take) will return next.
    #[must_use]
    pub fn front(&self) -> Option<&Packet> {
        self.queue.front().filter(|_| self.status == Status::Connected)
    }

    /// Returns the number of queued packets.
    #[must_use]
    pub fn available(&self) -> usize {
        if self.status == Status::Connected { self.queue.len() } else { 0 }
    }

    /// Returns the status.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Returns true if this is a server.
    #[must_use]
    pub const fn is_server(&self) -> bool {
        matches!(self.role, Role::Server)
    }

    /// Returns the unique id: 1 for a server, 0 for a client without an assigned id.
    #[must_use]
    pub const fn unique_id(&self) -> i32 {
        self.unique_id
    }

    /// Returns the reason why the last connection closed or could not be opened. A client keeps the first
    /// reason.
    #[must_use]
    pub fn end_reason(&self) -> Option<&str> {
        self.end.as_deref()
    }

    /// Returns the numbers of dropped messages.
    #[must_use]
    pub const fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Disconnects all peers after their queued reliable packets are sent.
    fn shut_down(&mut self) {
        let until = Instant::now() + self.close_wait;
        let Self { links, endpoint, .. } = self;
        let timeout = endpoint.peer().config().close_timeout;
        // If a queued packet is refused, its connection is aborted. No later poll could return a notice, so the error
        // is ignored.
        for link in links.values_mut() {
            let _ = link.outgoing.close(endpoint, timeout);
        }
        let linked: Vec<_> = links.values().map(|link| link.connection).collect();
        let others: Vec<_> = endpoint.peer().connections().filter(|id| !linked.contains(id)).collect();
        others.into_iter().for_each(|id| endpoint.disconnect(id));
        loop {
            endpoint.update();
            while endpoint.poll_event().is_some() {}
            for link in links.values_mut() {
                let _ = link.outgoing.retry(endpoint);
            }
            endpoint.flush();
            if endpoint.connections() == 0 || Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shut_down();
    }
}

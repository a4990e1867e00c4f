//! A peer: its connections, and which datagram belongs to which.

use core::net::SocketAddr;

use super::config::{Config, CookiePolicy};
use super::connection::{Connection, ConnectionState, Context, Ending, Listed, SendError, Side};
use super::delivery::Delivery;
use super::event::{ConnectionId, Event, Message};
use super::offline::{Answer, Desk};
use super::resources::{Resources, Tables};
use super::stats::{ConnectionStats, DropReason, PeerStats};
use super::wire::offline::{ClientSecurity, Offline, PingScope, Refusal};
use super::wire::{FirstByte, Guid, Wire};
use crate::cookie;
use crate::cursor::Reader;
use crate::machine::{Machine, Transmit};
use crate::serial::U24;
use crate::storage::{Block, Purpose};
use crate::time::Instant;

/// Why a connection cannot be opened from here.
///
/// ```
/// assert_eq!(rakwire::raknet::ConnectError::Full.to_string(), "every connection slot is taken");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectError {
    /// A connection with this address exists already.
    AlreadyConnected,
    /// Every connection slot is taken.
    Full,
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AlreadyConnected => "a connection with this address exists already",
            Self::Full => "every connection slot is taken",
        })
    }
}

impl core::error::Error for ConnectError {}

/// Why a ping cannot be sent.
///
/// ```
/// assert_eq!(rakwire::raknet::PingError::TooMany.to_string(), "too many pings wait for their pongs");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PingError {
    /// Too many pings wait for their pongs; give some up with [`Peer::forget_ping`].
    TooMany,
}

impl core::fmt::Display for PingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("too many pings wait for their pongs")
    }
}

impl core::error::Error for PingError {}

/// What is known of a connection.
///
/// ```
/// use rakwire::raknet::{ConnectionInfo, ConnectionState};
///
/// fn is_open(info: &ConnectionInfo) -> bool {
///     info.state == ConnectionState::Connected
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// Where the other peer is.
    pub remote: SocketAddr,
    /// Who the other peer is.
    pub guid: Guid,
    /// Who opened the connection.
    pub side: Side,
    /// How far it has come.
    pub state: ConnectionState,
    /// The MTU, with 28 bytes of IP and UDP headers.
    pub mtu: u16,
}

/// What was lent by the last event and goes back with the next.
#[derive(Clone, Copy, Debug)]
enum Lent {
    Nothing,
    Message { message: Block, id: ConnectionId },
    Pong { data: Block },
}

/// A pong that nobody was told of yet; its data stand in the pool.
#[derive(Clone, Copy, Debug)]
struct Pong {
    from: SocketAddr,
    guid: Guid,
    latency: core::time::Duration,
    data: Block,
}

/// A RakNet peer: any number of connections over one socket that it does not know.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let server = "127.0.0.1:19132".parse()?;
/// peer.connect(Instant::ZERO, server)?;
/// let mut buffer = [0; rakwire::wire::MAX_DATAGRAM];
/// let request = peer.poll_transmit(Instant::ZERO, &mut buffer).ok_or("a request is due")?;
/// assert_eq!((request.to, request.payload.len()), (server, 1464));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Peer<'a> {
    config: Config,
    tables: Tables<'a>,
    desk: Desk,
    pongs: heapless::Deque<Pong, 8>,
    stats: PeerStats,
    lent: Lent,
    last_now: Instant,
    /// The slot that the last datagram was for: often the next one's, too.
    last_slot: u16,
    /// Where the counters of new connections start.
    first_number: U24,
    incoming: u16,
}

impl<'a> Peer<'a> {
    /// A peer in memory that the caller lends.
    #[must_use]
    pub fn new<const CONNECTIONS: usize, const BLOCKS: usize, const BLOCK_SIZE: usize>(
        resources: &'a mut Resources<CONNECTIONS, BLOCKS, BLOCK_SIZE>,
        config: Config,
    ) -> Self {
        let tables = resources.lend(config.secret);
        Self::over(tables, config)
    }

    /// A peer in memory of the allocator.
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn with_capacity(capacity: super::Capacity, config: Config) -> Peer<'static> {
        let tables = capacity.allocate(config.secret);
        Peer::over(tables, config)
    }

    fn over(tables: Tables<'a>, config: Config) -> Self {
        Self {
            config,
            tables,
            desk: Desk::default(),
            pongs: heapless::Deque::new(),
            stats: PeerStats::default(),
            lent: Lent::Nothing,
            last_now: Instant::ZERO,
            last_slot: 0,
            first_number: U24::new(0),
            incoming: 0,
        }
    }

    /// How this peer behaves.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The counters of this peer.
    #[must_use]
    pub const fn stats(&self) -> &PeerStats {
        &self.stats
    }

    /// Blocks that hold nothing now.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.tables.pool.available()
    }

    /// Blocks in all.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.tables.pool.capacity()
    }

    /// Sets what the answers to pings say, at most 399 bytes; false, and nothing changes, if it is longer.
    #[must_use = "data that is too long is not taken"]
    pub fn set_advertisement(&mut self, data: &[u8]) -> bool {
        self.desk.advertise(data)
    }

    /// Lets the counters of connections made from now on start at `number` instead of 0, to test what happens when
    /// they wrap. The other peer must do the same.
    pub fn start_numbers_at(&mut self, number: U24) {
        self.first_number = number;
    }

    /// Begins to open a connection. [`Event::Connected`] or [`Event::ConnectFailed`] says what became of it.
    ///
    /// # Errors
    /// [`ConnectError::AlreadyConnected`] or [`ConnectError::Full`].
    pub fn connect(&mut self, now: Instant, to: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.advance(now);
        if self.find(&to).is_some() {
            return Err(ConnectError::AlreadyConnected);
        }
        let slot = self.free_slot().ok_or(ConnectError::Full)?;
        self.with(slot, |connection, cx| connection.open(cx, to));
        self.settle_in(slot, &to);
        Ok(self.id(slot))
    }

    /// Ends a connection. What was sent before is delivered first; [`Event::Disconnected`] says when it is over. A
    /// connection that is not open yet ends at once.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.advance(now);
        if self.get(id).is_some() {
            self.with(id.slot, Connection::disconnect);
        }
    }

    /// Takes a message for sending. It is copied; `message` is free at once.
    ///
    /// The first byte is the id of the message: 0x86 and above are free for applications.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do; nothing of the message was kept then.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        delivery: Delivery,
    ) -> Result<(), SendError> {
        self.advance(now);
        if self.get(id).is_none() {
            return Err(SendError::NotConnected);
        }
        self.with(id.slot, |connection, cx| connection.send(cx, message, delivery))
            .unwrap_or(Err(SendError::NotConnected))
    }

    /// Asks the server at `to` what it says of itself; [`Event::Pong`] tells. A lost ping is not repeated.
    ///
    /// # Errors
    /// [`PingError::TooMany`] when eight pings wait for their pongs.
    pub fn ping(&mut self, now: Instant, to: SocketAddr) -> Result<(), PingError> {
        self.advance(now);
        if self.desk.ping(to, self.last_now) { Ok(()) } else { Err(PingError::TooMany) }
    }

    /// Gives up waiting for a pong from `to`.
    pub fn forget_ping(&mut self, to: SocketAddr) {
        self.desk.forget_ping(to);
    }

    /// What is known of a connection, while it exists.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<ConnectionInfo> {
        let connection = self.get(id)?;
        Some(ConnectionInfo {
            remote: connection.remote()?,
            guid: connection.guid(),
            side: connection.side(),
            state: connection.public_state(),
            mtu: connection.mtu(),
        })
    }

    /// The counters of a connection, while it exists.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.get(id).map(Connection::stats)
    }

    /// Every connection that exists.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let used = (0..).zip(&*self.tables.connections).filter(|(_, connection)| !connection.is_free());
        used.map(|(slot, connection)| ConnectionId { slot, generation: connection.generation })
    }

    /// Takes a datagram that arrived at `now`. It never fails: what makes no sense is counted in [`Peer::stats`].
    ///
    /// `now` should be the time at which the datagram was received, also when it is handled later.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.advance(now);
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        match FirstByte::classify(datagram) {
            None => self.stats.drop(DropReason::TooShort),
            Some(FirstByte::Connected) => match self.find(&from) {
                Some(slot) => {
                    self.with(slot, |connection, cx| connection.handle_datagram(cx, datagram));
                }
                None => self.stats.drop(DropReason::UnknownSource),
            },
            Some(FirstByte::Offline) => match Offline::read(&mut Reader::new(datagram)) {
                Ok(message) => self.handle_offline(from, &message, datagram.len()),
                Err(_) => self.stats.drop(DropReason::BadOffline),
            },
        }
    }

    fn handle_offline(&mut self, from: SocketAddr, message: &Offline<'_>, length: usize) {
        match *message {
            Offline::Ping { scope, time, .. } => self.handle_ping(from, scope, time),
            Offline::Pong { guid, data, .. } => self.handle_pong(from, guid, data),
            Offline::Request1 { protocol, mtu } => self.handle_request_1(from, protocol, mtu, length),
            Offline::Request2 { security, mtu, guid, .. } => self.handle_request_2(from, security, mtu, guid),
            Offline::OutOfBand { .. } => self.stats.drop(DropReason::Unexpected),
            Offline::Reply1 { .. }
            | Offline::Reply2 { .. }
            | Offline::Refused { .. }
            | Offline::IncompatibleProtocol { .. } => match self.find(&from) {
                Some(slot) => {
                    self.with(slot, |connection, cx| connection.handle_offline(cx, message));
                }
                None => self.stats.drop(DropReason::Unexpected),
            },
        }
    }

    fn handle_ping(&mut self, from: SocketAddr, scope: PingScope, time: u64) {
        let answers = match scope {
            PingScope::Any => true,
            PingScope::OpenConnections => self.incoming < self.config.max_incoming,
        };
        if answers {
            self.desk.pong(&mut self.stats, from, time);
        }
    }

    fn handle_pong(&mut self, from: SocketAddr, guid: Guid, data: &[u8]) {
        let Some(sent) = self.desk.take_ping(from) else {
            self.stats.drop(DropReason::Unexpected);
            return;
        };
        let latency = self.last_now.saturating_since(sent);
        let stored = self.tables.pool.store(data, Purpose::Receive, Default::default());
        let Some(data) = stored else {
            self.stats.drop(DropReason::NoMemory);
            return;
        };
        if self.pongs.push_back(Pong { from, guid, latency, data }).is_err() {
            self.tables.pool.free(data);
            self.stats.drop(DropReason::AnswersFull);
        }
    }

    /// Stateless: the answer is shorter than the request and depends on nothing else.
    fn handle_request_1(&mut self, from: SocketAddr, protocol: u8, mtu: u16, length: usize) {
        /// Bytes of the longest answer, reply 1 with a cookie.
        const LONGEST_ANSWER: usize = 32;
        if self.config.max_incoming == 0 {
            self.stats.drop(DropReason::Unexpected);
        } else if length < LONGEST_ANSWER {
            self.stats.drop(DropReason::WouldAmplify);
        } else if self.config.accepted_versions.contains(&protocol) {
            let mtu = self.config.clamp_mtu(mtu);
            self.desk.answer(&mut self.stats, from, Answer::Reply1 { mtu });
        } else {
            self.desk.answer(&mut self.stats, from, Answer::Incompatible);
        }
    }

    /// The outcome table of supplement 2.5, after the cookie has proved the address.
    fn handle_request_2(&mut self, from: SocketAddr, security: ClientSecurity<'_>, mtu: u16, guid: Guid) {
        if self.config.max_incoming == 0 {
            self.stats.drop(DropReason::Unexpected);
            return;
        }
        if !self.is_proved(from, security) {
            self.stats.drop(DropReason::BadCookie);
            return;
        }
        let mtu = self.config.clamp_mtu(mtu);
        let by_address = self.find(&from);
        let answer = match (by_address, self.knows_guid(guid)) {
            (Some(slot), true) if self.repeats_request_2(slot, guid) => {
                let mtu = self.tables.connections.get(usize::from(slot)).map_or(mtu, Connection::mtu);
                Answer::Reply2 { mtu }
            }
            (Some(_), _) | (None, true) => Answer::Refused(Refusal::AlreadyConnected),
            (None, false) => self.accept(from, guid, mtu),
        };
        self.desk.answer(&mut self.stats, from, answer);
    }

    fn is_proved(&self, from: SocketAddr, security: ClientSecurity<'_>) -> bool {
        match (self.config.cookies, security) {
            (CookiePolicy::Off, _) => true,
            (CookiePolicy::Required, ClientSecurity::None) => false,
            (
                CookiePolicy::Required,
                ClientSecurity::Cookie(cookie) | ClientSecurity::Challenge { cookie, .. },
            ) => cookie::verify(&self.config.secret, &from, self.last_now, cookie),
        }
    }

    fn knows_guid(&self, guid: Guid) -> bool {
        self.tables.connections.iter().any(|connection| !connection.is_free() && connection.guid() == guid)
    }

    fn repeats_request_2(&self, slot: u16, guid: Guid) -> bool {
        let connection = self.tables.connections.get(usize::from(slot));
        connection.is_some_and(|connection| connection.guid() == guid && connection.is_unverified())
    }

    fn accept(&mut self, from: SocketAddr, guid: Guid, mtu: u16) -> Answer {
        if self.incoming >= self.config.max_incoming {
            return Answer::Refused(Refusal::NoFreeIncomingConnections);
        }
        let Some(slot) = self.free_slot() else {
            return Answer::Refused(Refusal::NoFreeIncomingConnections);
        };
        self.with(slot, |connection, cx| connection.accept(cx, from, guid, mtu));
        self.settle_in(slot, &from);
        Answer::Reply2 { mtu }
    }

    /// Enters a connection that was just made into the tables.
    fn settle_in(&mut self, slot: u16, address: &SocketAddr) {
        self.tables.addresses.insert(address, slot);
        if let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) {
            connection.skip_to(self.first_number);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some((at, slot)) = self.tables.deadlines.first() {
            if at > self.last_now {
                return;
            }
            self.tables.deadlines.set(slot, None);
            self.with(slot, Connection::on_timeout);
        }
    }

    /// When this peer wants [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit) to be
    /// called next; a time gone by means now, nothing means that only a datagram or the application can change
    /// anything.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.tables.ready.is_empty() || !self.desk.is_idle() {
            return Some(self.last_now);
        }
        self.tables.deadlines.first().map(|(at, _)| at)
    }

    /// Composes the next datagram to send at `now` in `buffer`, which must have room for
    /// [`MAX_DATAGRAM`](super::wire::MAX_DATAGRAM) bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        let (to, length) = match self.desk.poll_transmit(&self.config, self.last_now, buffer) {
            Some(answer) => answer,
            None => self.poll_connections(buffer)?,
        };
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += length as u64;
        Some(Transmit { to, payload: buffer.get(..length)? })
    }

    /// Lets the connections that have something to do take turns.
    fn poll_connections(&mut self, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        while let Some(slot) = self.tables.ready.front() {
            let (connection, mut cx) = self.borrow(slot)?;
            let length = connection.poll_transmit(&mut cx, buffer);
            let to = connection.remote();
            self.tables.ready.pop();
            if let (Some(length), Some(to)) = (length, to) {
                self.tables.ready.push(slot);
                return Some((to, length));
            }
            self.put_to_rest(slot);
        }
        None
    }

    /// A connection has nothing to do until its deadline.
    fn put_to_rest(&mut self, slot: u16) {
        let Some((connection, cx)) = self.borrow(slot) else {
            return;
        };
        connection.ready = Listed::No;
        let deadline = connection.deadline(&cx);
        self.tables.deadlines.set(slot, deadline);
        self.notice(slot);
        self.release_if_finished(slot);
    }

    /// What happened next, if anything. An event lends its bytes until the next call that changes this peer.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        self.take_back();
        if let Some(pong) = self.pongs.pop_front() {
            self.lent = Lent::Pong { data: pong.data };
            let data = Message::new(&self.tables.pool, pong.data);
            return Some(Event::Pong { from: pong.from, guid: pong.guid, latency: pong.latency, data });
        }
        while let Some(slot) = self.tables.noticed.front() {
            match self.poll_connection(slot) {
                Some(news) => return self.tell(slot, news),
                None => {
                    self.tables.noticed.pop();
                    if let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) {
                        connection.noticed = Listed::No;
                    }
                    self.release_if_finished(slot);
                }
            }
        }
        None
    }

    /// Gives back what the last event lent.
    fn take_back(&mut self) {
        match core::mem::replace(&mut self.lent, Lent::Nothing) {
            Lent::Nothing => {}
            Lent::Pong { data } => {
                self.tables.pool.free(data);
            }
            Lent::Message { message, id } => {
                let blocks = self.tables.pool.free(message);
                if let Some(connection) = self.get_mut(id) {
                    connection.on_read(blocks);
                }
            }
        }
    }

    fn poll_connection(&mut self, slot: u16) -> Option<News> {
        let (connection, mut cx) = self.borrow(slot)?;
        if !connection.has_news() {
            None
        } else if connection.take_opened() {
            Some(News::Opened)
        } else if let Some(message) = connection.take_message(&mut cx) {
            Some(News::Message(message))
        } else {
            connection.take_ending().map(News::Ended)
        }
    }

    fn tell(&mut self, slot: u16, news: News) -> Option<Event<'_>> {
        let id = self.id(slot);
        let connection = self.tables.connections.get(usize::from(slot))?;
        let remote = connection.remote()?;
        Some(match news {
            News::Opened => Event::Connected { id, remote, guid: connection.guid(), side: connection.side() },
            News::Message(message) => {
                self.lent = Lent::Message { message, id };
                let delivery = self.tables.pool.header(message).delivery();
                Event::Message { id, delivery, message: Message::new(&self.tables.pool, message) }
            }
            News::Ended(Ending::Failed(reason)) => Event::ConnectFailed { id, remote, reason },
            News::Ended(Ending::Disconnected(reason)) => Event::Disconnected { id, remote, reason },
        })
    }

    /// Moves the clock; it never steps back.
    fn advance(&mut self, now: Instant) {
        self.last_now = self.last_now.max(now);
    }

    fn id(&self, slot: u16) -> ConnectionId {
        let connection = self.tables.connections.get(usize::from(slot));
        ConnectionId { slot, generation: connection.map_or(0, |connection| connection.generation) }
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let connection = self.tables.connections.get(usize::from(id.slot))?;
        (connection.generation == id.generation && !connection.is_free()).then_some(connection)
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let connection = self.tables.connections.get_mut(usize::from(id.slot))?;
        (connection.generation == id.generation && !connection.is_free()).then_some(connection)
    }

    fn find(&mut self, address: &SocketAddr) -> Option<u16> {
        let connections = &self.tables.connections;
        let is_it = |slot: u16| {
            let connection = connections.get(usize::from(slot));
            connection.is_some_and(|connection| connection.remote().as_ref() == Some(address))
        };
        if is_it(self.last_slot) {
            return Some(self.last_slot);
        }
        let slot = self.tables.addresses.find(address, is_it)?;
        self.last_slot = slot;
        Some(slot)
    }

    fn free_slot(&self) -> Option<u16> {
        (0..)
            .zip(&*self.tables.connections)
            .find(|(_, connection)| connection.is_free())
            .map(|(slot, _)| slot)
    }

    fn borrow(&mut self, slot: u16) -> Option<(&mut Connection, Context<'_, 'a>)> {
        let connection = self.tables.connections.get_mut(usize::from(slot))?;
        let (send_quota, receive_quota) = quotas(self.tables.pool.capacity());
        let cx = Context {
            now: self.last_now,
            slot,
            config: &self.config,
            pool: &mut self.tables.pool,
            index: &mut self.tables.index,
            stats: &mut self.stats,
            send_quota,
            receive_quota,
        };
        Some((connection, cx))
    }

    /// Changes a connection and lists it for what follows: datagrams to send, events to tell.
    fn with<R>(
        &mut self,
        slot: u16,
        change: impl FnOnce(&mut Connection, &mut Context<'_, 'a>) -> R,
    ) -> Option<R> {
        let (connection, mut cx) = self.borrow(slot)?;
        let result = change(connection, &mut cx);
        let listed = core::mem::replace(&mut connection.ready, Listed::Yes);
        if listed == Listed::No {
            self.tables.ready.push(slot);
        }
        self.notice(slot);
        Some(result)
    }

    /// Lists a connection that has news, and counts it while others opened it.
    fn notice(&mut self, slot: u16) {
        let Some(connection) = self.tables.connections.get_mut(usize::from(slot)) else {
            return;
        };
        let incoming = if connection.is_incoming() { Listed::Yes } else { Listed::No };
        match (core::mem::replace(&mut connection.counted, incoming), incoming) {
            (Listed::No, Listed::Yes) => self.incoming += 1,
            (Listed::Yes, Listed::No) => self.incoming = self.incoming.saturating_sub(1),
            (Listed::Yes, Listed::Yes) | (Listed::No, Listed::No) => {}
        }
        if connection.has_news() && connection.noticed == Listed::No {
            connection.noticed = Listed::Yes;
            self.tables.noticed.push(slot);
        }
    }

    /// Frees the slot of a connection that is over, once it stands in no queue.
    fn release_if_finished(&mut self, slot: u16) {
        let Some((connection, mut cx)) = self.borrow(slot) else {
            return;
        };
        let listed = connection.ready == Listed::Yes || connection.noticed == Listed::Yes;
        if listed || connection.is_free() || !connection.is_finished() {
            return;
        }
        let remote = connection.remote();
        connection.release(&mut cx);
        if let Some(remote) = remote {
            self.tables.addresses.remove(&remote, slot);
        }
        self.tables.deadlines.set(slot, None);
    }
}

/// What is to be told of a connection.
enum News {
    Opened,
    Message(Block),
    Ended(Ending),
}

/// How many blocks one connection may use for what it sends and for what it receives.
const fn quotas(blocks: usize) -> (usize, usize) {
    (blocks / 2, blocks / 2)
}

impl Machine for Peer<'_> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        Peer::handle_datagram(self, now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Peer::handle_timeout(self, now);
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        Peer::poll_transmit(self, now, buffer)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Peer::poll_timeout(self)
    }
}

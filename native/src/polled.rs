//! An endpoint without tasks, for games that call it once a frame.
//!
//! [`Endpoint`] owns a socket and a [`Peer`], and does something only while one of its methods is called: it needs no
//! runtime. Each frame, call [`update`](Endpoint::update), take the events, send, and call [`flush`](Endpoint::flush).
//!
//! ```
//! use rakwire::endpoint::Event;
//! use rakwire_native::Options;
//! use rakwire_native::polled::Endpoint;
//! use rakwire_native::raknet::{Delivery, RakNet};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::server(8)?)?;
//! let mut client = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::client()?)?;
//! let connection = client.connect(server.local_addr())?;
//!
//! let mut received = Vec::new();
//! while received.is_empty() {
//!     client.update();
//!     while let Some(event) = client.poll_event() {
//!         if let Event::Connected { id, .. } = event {
//!             client.send(id, b"\x86hello", Delivery::RELIABLE_ORDERED)?;
//!         }
//!     }
//!     client.flush();
//!
//!     server.update();
//!     while let Some(event) = server.poll_event() {
//!         if let Event::Message { message, .. } = event {
//!             received.push(message.to_vec());
//!         }
//!     }
//!     server.flush();
//!     std::thread::sleep(std::time::Duration::from_millis(1)); // the rest of the frame
//! }
//! assert_eq!(received, [b"\x86hello"]);
//! client.disconnect(connection);
//! # Ok(())
//! # }
//! ```
//!
//! Datagrams wait in the buffer of the system until the next `update`. A measured round trip therefore includes up to a
//! frame at each such end, and a game whose frames are long should call `update` more often. The
//! [endpoint with tasks](crate::endpoint) has no such delay, and sends several datagrams with one call of the system.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use rakwire::endpoint::{
    ConnectionId, ConnectionState, Event, Hook, Hooked, Peer, PeerStats, Protocol, Receipt, SendError,
};
use rakwire::{Instant, Machine};
use rakwire_udp::{LONGEST_DATAGRAM, allow_fragmentation, canonical, is_too_large, route, send_datagram};

use crate::arrivals::Proxies;
use crate::endpoint::{BoxedHook, Broadcast, ConnectError, Options, config_of_one};
use crate::host::{BindError, Clock, own_addresses, unix_time};
use crate::huge_pages;
use crate::socket::bound;
use crate::unreachable::{has_no_route, hear_errors, read_errors, receive_past_reports, send_past_reports};

/// Datagrams that are handled before the answers are sent: fewer than the answers that the protocol keeps.
const BATCH: usize = 16;
/// Datagrams that one call of [`Endpoint::update`] handles at the most, so that a flood does not stop the game.
const DATAGRAMS_AN_UPDATE: usize = 4_096;

/// Updates in a row that leave datagrams in the socket before time passes all the same: a flood does not stop it.
const FULL_UPDATES: u8 = 4;

/// A UDP socket with a protocol, which works only while it is called. [The module](self) has an example.
///
/// Dropping it closes the socket at once. Before that, [`disconnect`](Self::disconnect) and call
/// [`update`](Self::update) until [`connections`](Self::connections) is 0, so that other peers learn of the end.
#[derive(Debug)]
pub struct Endpoint<P: Protocol> {
    socket: UdpSocket,
    local: SocketAddr,
    clock: Clock,
    hooked: Hooked<'static, P, BoxedHook<P>>,
    incoming: Box<[u8]>,
    outgoing: Box<[u8]>,
    /// The datagram in `outgoing` for which the system had no room.
    unsent: Option<(SocketAddr, usize)>,
    /// Whether attempts end when nothing can be reached at their address.
    hears_unreachable: bool,
    proxies: Proxies,
    /// Attempts in their handshake. As long as there are any, the socket hears of errors about what is sent.
    attempts: Vec<ConnectionId>,
    /// How many updates in a row did not empty the socket.
    full_updates: u8,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    too_long: u64,
    send_failures: u64,
    receive_failures: u64,
}

/// The counters of an [`Endpoint`] since it was made.
///
/// ```
/// use rakwire_native::polled::Endpoint;
/// use rakwire_native::{Options, raknet::RakNet};
///
/// let endpoint = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::client()?)?;
/// let stats = endpoint.stats();
/// assert_eq!((stats.peer.datagrams_received, stats.send_failures), (0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stats<P: Protocol> {
    /// The counters of the protocol.
    pub peer: PeerStats<P::DropReason>,
    /// Datagrams that were dropped because they were longer than 2,048 bytes, which neither protocol sends.
    pub too_long: u64,
    /// Datagrams of [trusted proxies](Options::trusted_proxies) that were dropped because the header before them cannot be read, or because
    /// 262,144 clients of proxies have been heard within five minutes.
    pub proxy_headers_refused: u64,
    /// Datagrams that the system could not send; for the protocol they are lost.
    pub send_failures: u64,
    /// Receive calls that failed.
    pub receive_failures: u64,
    /// Methods of the hook that panicked. The endpoint goes on, and drops what such a method was asked about.
    pub hook_panics: u64,
}

impl<P: Protocol> Endpoint<P> {
    /// Binds a socket to the first address that works; port 0 picks a free one. Of the options, `config`, `capacity`,
    /// `hears_unreachable` and `trusted_proxies` count; the others are about tasks and their queues. So [`defer_incoming`](Options::defer_incoming) has no effect
    /// here: a game that decides whom it lets in gives [`Peer::share_admission`] a
    /// [`SharedAdmission`](rakwire::endpoint::SharedAdmission), which answers at once, before there are connections.
    ///
    /// # Errors
    /// A [`BindError`] with the address.
    pub fn bind(address: impl ToSocketAddrs, options: Options<P>) -> Result<Self, BindError> {
        let (socket, address) = Self::open(address)?;
        Self::start(socket, options, BoxedHook::NONE).map_err(|source| BindError::Socket { address, source })
    }

    /// As [`bind`](Self::bind), with a hook that sees, filters and injects datagrams, messages and events; a
    /// [`PluginHost`](rakwire::endpoint::PluginHost) is the hook that plugins live in. `hook` makes it from the address of the
    /// socket. A [`SharedHook`](crate::endpoint::SharedHook) is reached between two calls of the endpoint; what it wants to send
    /// then leaves with the next [`flush`](Self::flush) or [`update`](Self::update).
    ///
    /// ```
    /// use rakwire_native::Options;
    /// use rakwire_native::endpoint::SharedHook;
    /// use rakwire_native::polled::Endpoint;
    /// use rakwire_native::raknet::{FilterGroup, MessageFilter, RakNet};
    ///
    /// let filter = SharedHook::new(MessageFilter::<8>::new());
    /// let (options, hook) = (Options::server(8)?, filter.clone());
    /// let mut server = Endpoint::<RakNet>::bind_with_hook("127.0.0.1:0", options, |_| hook)?;
    /// filter.with(|filter| filter.forbid_all(FilterGroup::EVERYONE));
    /// server.update();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A [`BindError`] with the address.
    pub fn bind_with_hook<H: Hook<P> + Send + 'static>(
        address: impl ToSocketAddrs,
        options: Options<P>,
        hook: impl FnOnce(SocketAddr) -> H,
    ) -> Result<Self, BindError> {
        let (socket, address) = Self::open(address)?;
        let failed = |source| BindError::Socket { address, source };
        let hook = BoxedHook::new(hook(socket.local_addr().map_err(failed)?));
        Self::start(socket, options, hook).map_err(failed)
    }

    /// Binds a socket to the first address that works.
    fn open(address: impl ToSocketAddrs) -> Result<(UdpSocket, SocketAddr), BindError> {
        let mut refused = BindError::NoAddress;
        for address in address.to_socket_addrs().map_err(BindError::Resolve)? {
            match bound(address) {
                Ok(socket) => return Ok((socket, address)),
                Err(source) => refused = BindError::Socket { address, source },
            }
        }
        Err(refused)
    }

    /// Uses a socket that is bound already, for example one with options of its own. It becomes non-blocking.
    ///
    /// # Errors
    /// If the system refuses that, or cannot tell the address of the socket.
    pub fn from_std(socket: UdpSocket, options: Options<P>) -> io::Result<Self> {
        Self::start(socket, options, BoxedHook::NONE)
    }

    fn start(socket: UdpSocket, options: Options<P>, hook: BoxedHook<P>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        allow_fragmentation(&socket);
        let local = socket.local_addr()?;
        let mut peer = Peer::with_capacity(options.capacity, config_of_one::<P>(options.config));
        huge_pages::advise_for_blocks(peer.block_memory());
        P::tell_addresses(&mut peer, &own_addresses(local));
        Ok(Self {
            socket,
            local,
            clock: Clock::start(),
            hooked: Hooked::new(peer, hook),
            // One byte more than the longest, so that a longer one is seen.
            incoming: vec![0; LONGEST_DATAGRAM + 1].into(),
            outgoing: vec![0; P::MAX_DATAGRAM].into(),
            unsent: None,
            hears_unreachable: options.hears_unreachable,
            proxies: Proxies::new(options.trusted_proxies),
            attempts: Vec::new(),
            full_updates: 0,
            counters: Counters::default(),
        })
    }

    /// Handles the datagrams that have arrived, at most 4,096, does what is due, and sends what may be sent now.
    pub fn update(&mut self) {
        P::tell_unix_time(&mut self.hooked.peer, self.clock.now(), unix_time());
        let mut start = self.clock.now();
        let mut is_empty = false;
        for _ in 0..DATAGRAMS_AN_UPDATE / BATCH {
            start = self.clock.now();
            is_empty = !self.receive_batch();
            if is_empty {
                break;
            }
            // Answers leave before others push them out. Time does not pass: what waits may be from a peer that would
            // count as silent.
            self.flush();
        }
        // An answer that waited in the socket counts before what the network reports.
        self.end_unreachable_attempts();
        self.full_updates = if is_empty { 0 } else { self.full_updates.saturating_add(1) };
        if is_empty || self.full_updates >= FULL_UPDATES {
            self.hooked.handle_timeout(start);
        }
        self.flush();
    }

    /// Ends the attempts at addresses at which nothing can be reached, and hears of errors no more once there are no attempts.
    fn end_unreachable_attempts(&mut self) {
        if self.attempts.is_empty() {
            return;
        }
        let now = self.clock.now();
        for address in read_errors(&self.socket).addresses {
            self.hooked.peer.handle_unreachable(now, canonical(address));
        }
        let peer = &self.hooked.peer;
        let is_connecting = |id: &ConnectionId| {
            peer.connection(*id).is_some_and(|info| info.state == ConnectionState::Connecting)
        };
        self.attempts.retain(is_connecting);
        if self.attempts.is_empty() {
            hear_errors(&self.socket, false);
        }
    }

    /// Handles a few datagrams. False if no more are waiting.
    fn receive_batch(&mut self) -> bool {
        for _ in 0..BATCH {
            match receive_past_reports(|| self.socket.recv_from(&mut self.incoming)) {
                Ok((length, _)) if length > LONGEST_DATAGRAM => self.counters.too_long += 1,
                Ok((length, from)) => {
                    let datagram = self.incoming.get(..length).unwrap_or_default();
                    let now = self.clock.now();
                    if let Some((from, datagram)) = self.proxies.receive(now, canonical(from), datagram) {
                        self.hooked.handle_datagram(now, from, datagram);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Some systems tell here that a datagram did not arrive.
                Err(_) => self.counters.receive_failures += 1,
            }
        }
        true
    }

    /// Sends what may be sent now. What the buffer of the system has no room for waits for the next call.
    pub fn flush(&mut self) {
        let now = self.clock.now();
        loop {
            let next = self.unsent.take().or_else(|| self.compose(now));
            let Some((to, length)) = next else { return };
            let datagram = self.outgoing.get(..length).unwrap_or_default();
            let destination = route(self.local, self.proxies.path_to(to));
            let send = || send_past_reports(|| self.socket.send_to(datagram, destination));
            match send_datagram(&self.socket, destination, datagram, send) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some((to, length));
                    return;
                }
                Err(error) => {
                    self.counters.send_failures += 1;
                    if is_too_large(&error) {
                        self.hooked.peer.handle_too_large(now, to, length);
                    } else if self.hears_unreachable && has_no_route(&error) {
                        self.hooked.peer.handle_unreachable(now, to);
                    }
                }
            }
        }
    }

    fn compose(&mut self, now: Instant) -> Option<(SocketAddr, usize)> {
        let transmit = self.hooked.poll_transmit(now, &mut self.outgoing)?;
        Some((transmit.to, transmit.payload.len()))
    }

    /// Takes the next event. It lends the bytes of a message, which use the memory of the connection until they are taken:
    /// a game that does not take its events slows the other peers down.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        self.hooked.poll_event()
    }

    /// Starts to open a connection to `address`. An event tells when it is open, or why it is not.
    ///
    /// A server that has several addresses is tried at the next one when an attempt has had no answer: at once if
    /// [nothing can be reached](Options::hears_unreachable) at the one before.
    ///
    /// ```
    /// use rakwire::endpoint::{Event, Protocol};
    /// use rakwire_native::polled::Endpoint;
    /// use rakwire_native::{Options, lookup_blocking, raknet::RakNet};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut server = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::server(8)?)?;
    /// let mut client = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::client()?)?;
    /// let mut addresses = lookup_blocking(&format!("localhost:{}", server.local_addr().port()))?.into_iter();
    /// addresses.by_ref().find(|address| client.connect(*address).is_ok()).ok_or("no address to try")?;
    /// let mut is_open = false;
    /// while !is_open {
    ///     server.update();
    ///     client.update();
    ///     let mut next = None;
    ///     while let Some(event) = client.poll_event() {
    ///         match event {
    ///             Event::Connected { .. } => is_open = true,
    ///             Event::ConnectFailed { reason, .. } if RakNet::was_unanswered(&reason) => next = addresses.next(),
    ///             _ => {}
    ///         }
    ///     }
    ///     if let Some(address) = next {
    ///         client.connect(address)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A [`ConnectError`] other than [`Failed`](ConnectError::Failed), which is an event here.
    pub fn connect(&mut self, address: SocketAddr) -> Result<ConnectionId, ConnectError<P::ConnectFailure>> {
        self.connect_with(address, &P::ConnectOptions::default())
    }

    /// As [`connect`](Self::connect), with options: in RakNet a password, a fixed protocol version, and timeouts.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        &mut self,
        address: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<ConnectionId, ConnectError<P::ConnectFailure>> {
        let address = canonical(address);
        if address.is_ipv6() && self.local.is_ipv4() {
            return Err(ConnectError::AddressFamily);
        }
        let id = self.hooked.peer.connect_with(self.clock.now(), address, options)?;
        if self.hears_unreachable {
            if self.attempts.is_empty() {
                hear_errors(&self.socket, true);
            }
            self.attempts.push(id);
        }
        Ok(id)
    }

    /// Accepts a message for sending. It is sent by [`flush`](Self::flush) or [`update`](Self::update).
    ///
    /// # Errors
    /// Those of [`endpoint::Connection::try_send`](crate::endpoint::Connection::try_send).
    pub fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.hooked.send(self.clock.now(), id, message, delivery)
    }

    /// The longest message in bytes that [`send`](Self::send) takes; `None` if there is no such connection.
    pub fn max_message_len(&mut self, id: ConnectionId) -> Option<usize> {
        self.hooked.peer.max_message_len(id)
    }

    /// As [`send`](Self::send), without a copy of a large message, as
    /// [`try_send_vec`](crate::endpoint::Connection::try_send_vec).
    ///
    /// # Errors
    /// As [`send`](Self::send); `message` is what it was then.
    pub fn send_vec(
        &mut self,
        id: ConnectionId,
        message: &mut Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.hooked.send_vec(self.clock.now(), id, message, delivery)
    }

    /// Takes the bytes that the last event lent in a vector of their own, without a copy of a large message of RakNet.
    pub fn take_lent(&mut self) -> Vec<u8> {
        self.hooked.peer.take_lent()
    }

    /// Starts to end a connection: reliable messages that were sent before are delivered first. An event tells when it is
    /// over.
    pub fn disconnect(&mut self, id: ConnectionId) {
        self.hooked.peer.disconnect(self.clock.now(), id);
    }

    /// Sends a last message and starts to end the connection: the message, and reliable ones that were sent before, arrive
    /// before the other peer learns of the end.
    ///
    /// # Errors
    /// Those of [`send`](Self::send). The connection ends all the same.
    pub fn disconnect_with(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<(), SendError> {
        let sent = self.send(id, message, delivery);
        self.disconnect(id);
        sent.map(|_| ())
    }

    /// Accepts a message for every open connection. Those without room do not get it.
    pub fn broadcast(&mut self, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.send_to_all(None, message, delivery)
    }

    /// As [`broadcast`](Self::broadcast), for all connections but one.
    pub fn broadcast_except(
        &mut self,
        except: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Broadcast {
        self.send_to_all(Some(except), message, delivery)
    }

    fn send_to_all(
        &mut self,
        except: Option<ConnectionId>,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Broadcast {
        let mut all = Broadcast::default();
        let refused = |id, error| all.refused.push((id, error));
        let sent = self.hooked.broadcast(self.clock.now(), message, delivery, except, refused);
        Broadcast { sent, ..all }
    }

    /// How long the game may sleep if no datagram arrives; nothing if only a datagram or a call changes anything.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        let now = self.clock.now();
        self.hooked.poll_timeout().map(|at| at.saturating_since(now))
    }

    /// How many connections there are, including those that are being opened or closed.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.hooked.peer.connections().count()
    }

    /// The address of the socket, with its actual port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The protocol, for what has no method here: counters and measurements of connections, pings, bans.
    #[must_use]
    pub const fn peer(&self) -> &Peer<'static, P> {
        &self.hooked.peer
    }

    /// As [`peer`](Self::peer), to change it. Pass [`now`](Self::now) where it asks for the time, and take events and
    /// datagrams through this endpoint.
    pub const fn peer_mut(&mut self) -> &mut Peer<'static, P> {
        &mut self.hooked.peer
    }

    /// The time in the clock of the protocol.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A sentence for the operator, once the counters show clients of a kind that cannot come in, such as those that return no
    /// cookie. The async endpoint logs it; here the program does, and asks now and then.
    ///
    /// ```
    /// use rakwire_native::polled::Endpoint;
    /// use rakwire_native::{Options, raknet::RakNet};
    ///
    /// let server = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::server(8)?)?;
    /// assert_eq!(server.advice(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        P::advice(&self.hooked.peer)
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> Stats<P> {
        let Counters { too_long, send_failures, receive_failures } = self.counters;
        let hook_panics = self.hooked.hook.panics();
        let proxy_headers_refused = self.proxies.refused();
        Stats {
            peer: *self.hooked.peer.stats(),
            too_long,
            proxy_headers_refused,
            send_failures,
            receive_failures,
            hook_panics,
        }
    }
}

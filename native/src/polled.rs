//! An endpoint without tasks, for games that call it once per frame.
//!
//! [`Endpoint`] owns a socket and a [`Peer`], and works only while one of its methods is called, so it needs no
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
//! Datagrams wait in the socket's receive buffer until the next `update`. A measured round-trip time therefore
//! includes up to one frame at each polled endpoint; a game with long frames should call `update` more often. The
//! [endpoint with tasks](crate::endpoint) has no such delay, and sends several datagrams per system call.
//!
//! # Blocked messages
//!
//! [`Endpoint::send`] refuses a message while the send memory of its connection is full. A [`SendQueue`] keeps
//! reliable messages until they can be sent, up to a limit:
//!
//! ```
//! use rakwire::endpoint::Event;
//! use rakwire_native::polled::{Endpoint, QueueError, SendQueue};
//! use rakwire_native::raknet::{Delivery, RakNet};
//! use rakwire_native::Options;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut server = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::server(8)?)?;
//! let mut client = Endpoint::<RakNet>::bind("127.0.0.1:0", Options::client()?)?;
//! client.connect(server.local_addr())?;
//!
//! let mut queue = None;
//! let mut received = 0;
//! while received < 200 {
//!     client.update();
//!     while let Some(event) = client.poll_event() {
//!         if let Event::Connected { id, .. } = event {
//!             let queue = queue.insert(SendQueue::new(id, 16 << 20));
//!             for _ in 0..200 {
//!                 let message = vec![0x86; 60_000];
//!                 if queue.send(&mut client, message, Delivery::RELIABLE_ORDERED) == Err(QueueError::Full) {
//!                     queue.abort(&mut client); // the peer is too slow
//!                 }
//!             }
//!         }
//!     }
//!     if let Some(queue) = &mut queue {
//!         queue.retry(&mut client)?;
//!     }
//!     client.flush();
//!
//!     server.update();
//!     while let Some(event) = server.poll_event() {
//!         received += u32::from(matches!(event, Event::Message { .. }));
//!     }
//!     server.flush();
//! }
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use rakwire::endpoint::{
    ConnectionId, ConnectionState, Event, Hook, Hooked, Peer, PeerStats, Protocol, Receipt, SendError,
};
pub use rakwire::endpoint::{QueueError, QueueTarget, Queued, SendQueue};
use rakwire::{Instant, Machine};
use rakwire_udp::{MAX_DATAGRAM, allow_fragmentation, canonical, is_too_large, route, send_datagram};

use crate::arrivals::Proxies;
use crate::endpoint::{BoxedHook, Broadcast, ConnectError, Options, config_of_one};
use crate::host::{BindError, Clock, own_addresses, unix_time};
use crate::huge_pages;
use crate::simulation::BothWays;
use crate::socket::bound;
use crate::unreachable::{
    has_no_route, read_errors, receive_past_reports, send_past_reports, set_error_reports,
};

/// Number of datagrams handled before replies are sent: fewer than the replies that the protocol can queue.
const BATCH: usize = 16;
/// Maximum number of datagrams handled by one call of [`Endpoint::update`], so that a flood does not stall the game.
const DATAGRAMS_AN_UPDATE: usize = 4_096;

/// Number of consecutive updates that may leave datagrams in the socket before protocol time advances nevertheless.
/// Otherwise a flood would stop all timers.
const FULL_UPDATES: u8 = 4;

/// A UDP socket with a protocol that works only while it is called. [The module](self) has an example.
///
/// Dropping the endpoint closes the socket immediately, without notifying peers. To notify peers, call
/// [`disconnect`](Self::disconnect) first and call [`update`](Self::update) until [`connections`](Self::connections) is
/// 0.
#[derive(Debug)]
pub struct Endpoint<P: Protocol> {
    socket: UdpSocket,
    local: SocketAddr,
    clock: Clock,
    hooked: Hooked<'static, P, BoxedHook<P>>,
    incoming: Box<[u8]>,
    outgoing: Box<[u8]>,
    /// The datagram in `outgoing` that the system had no buffer space for.
    unsent: Option<(SocketAddr, usize)>,
    /// True if attempts fail when their address is reported unreachable.
    fail_on_unreachable: bool,
    proxies: Proxies,
    /// The simulated network between the protocol and the socket.
    network: Option<BothWays>,
    /// Attempts that are still in their handshake. While there are any, the socket receives error reports.
    attempts: Vec<ConnectionId>,
    /// Number of consecutive updates that did not empty the socket.
    full_updates: u8,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    too_long: u64,
    send_failures: u64,
    receive_failures: u64,
}

/// The counters of an [`Endpoint`] since its creation.
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
    /// Datagrams dropped because they exceed 2,048 bytes, which neither protocol sends.
    pub too_long: u64,
    /// Datagrams from [trusted proxies](Options::trusted_proxies) dropped because of their PROXY header.
    ///
    /// The header is malformed, or 262,144 clients of proxies have been active within five minutes.
    pub proxy_headers_refused: u64,
    /// Datagrams that the system could not send; the protocol treats them as lost.
    pub send_failures: u64,
    /// Receive calls that failed.
    pub receive_failures: u64,
    /// Hook methods that panicked. The endpoint continues, and drops the item that the method was called for.
    pub hook_panics: u64,
}

impl<P: Protocol> Endpoint<P> {
    /// Binds a socket to the first address that works; port 0 picks a free port.
    ///
    /// Only the options `config`, `capacity`, `fail_on_unreachable`, `trusted_proxies` and `simulate` apply; the others
    /// concern tasks and their queues. Datagrams leave a simulated network during [`update`](Self::update) and
    /// [`flush`](Self::flush), so its times are accurate to a frame. [`defer_incoming`](Options::defer_incoming) has no effect here: to decide which clients to
    /// admit, pass a [`SharedAdmission`](rakwire::endpoint::SharedAdmission) to [`Peer::share_admission`]. It decides
    /// immediately, before a connection exists.
    ///
    /// # Errors
    /// Returns a [`BindError`] with the address.
    pub fn bind(address: impl ToSocketAddrs, options: Options<P>) -> Result<Self, BindError> {
        let (socket, address) = Self::open(address)?;
        Self::start(socket, options, BoxedHook::NONE).map_err(|source| BindError::Socket { address, source })
    }

    /// Binds like [`bind`](Self::bind), with a hook that observes, filters and injects datagrams, messages and events.
    ///
    /// A [`PluginHost`](rakwire::endpoint::PluginHost) is the hook that runs plugins. `hook` creates it from the
    /// address of the socket. Access a [`SharedHook`](crate::endpoint::SharedHook) between two calls of the endpoint;
    /// anything it queues is sent by the next [`flush`](Self::flush) or [`update`](Self::update).
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
    /// filter.with(|filter| filter.deny_all(FilterGroup::DEFAULT));
    /// server.update();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`BindError`] with the address.
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

    /// Uses a socket that is already bound, for example with custom socket options. It becomes non-blocking.
    ///
    /// # Errors
    /// Returns an error if the system refuses to make the socket non-blocking, or cannot return its address.
    pub fn from_std(socket: UdpSocket, options: Options<P>) -> io::Result<Self> {
        Self::start(socket, options, BoxedHook::NONE)
    }

    fn start(socket: UdpSocket, options: Options<P>, hook: BoxedHook<P>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        allow_fragmentation(&socket);
        // Discovery needs broadcasts. If this fails, sending to broadcast addresses fails.
        let _ = socket.set_broadcast(true);
        let local = socket.local_addr()?;
        let network = options.simulation().map(BothWays::new);
        let mut peer = Peer::with_capacity(options.capacity, config_of_one::<P>(options.config));
        huge_pages::advise_for_blocks(peer.block_memory());
        P::set_internal_addresses(&mut peer, &own_addresses(local));
        Ok(Self {
            socket,
            local,
            clock: Clock::start(),
            hooked: Hooked::new(peer, hook),
            // One byte more than the maximum, to detect longer datagrams.
            incoming: vec![0; MAX_DATAGRAM + 1].into(),
            outgoing: vec![0; P::MAX_DATAGRAM].into(),
            unsent: None,
            fail_on_unreachable: options.fail_on_unreachable,
            network,
            proxies: Proxies::new(options.trusted_proxies),
            attempts: Vec::new(),
            full_updates: 0,
            counters: Counters::default(),
        })
    }

    /// Handles up to 4,096 received datagrams, runs due timers, and sends pending datagrams.
    pub fn update(&mut self) {
        P::set_unix_time(&mut self.hooked.peer, self.clock.now(), unix_time());
        let mut start = self.clock.now();
        let mut is_empty = false;
        for _ in 0..DATAGRAMS_AN_UPDATE / BATCH {
            start = self.clock.now();
            is_empty = !self.receive_batch();
            if is_empty {
                break;
            }
            // Send replies before later replies displace them. Time must not advance here: waiting datagrams may come
            // from a peer that would otherwise time out.
            self.flush();
        }
        self.receive_simulated();
        // A reply that is already in the socket takes precedence over an error report.
        self.end_unreachable_attempts();
        self.full_updates = if is_empty { 0 } else { self.full_updates.saturating_add(1) };
        if is_empty || self.full_updates >= FULL_UPDATES {
            self.hooked.handle_timeout(start);
        }
        self.flush();
    }

    /// Ends attempts at unreachable addresses, and disables error reports once no attempts are left.
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
            set_error_reports(&self.socket, false);
        }
    }

    /// Handles one batch of datagrams. Returns false if no more are waiting.
    fn receive_batch(&mut self) -> bool {
        for _ in 0..BATCH {
            match receive_past_reports(|| self.socket.recv_from(&mut self.incoming)) {
                Ok((length, _)) if length > MAX_DATAGRAM => self.counters.too_long += 1,
                Ok((length, from)) => {
                    let datagram = self.incoming.get(..length).unwrap_or_default();
                    let now = self.clock.now();
                    let Some((from, datagram)) = self.proxies.receive(now, canonical(from), datagram) else {
                        continue;
                    };
                    match &mut self.network {
                        None => self.hooked.handle_datagram(now, from, datagram),
                        Some(network) => network.incoming.send(now, from, datagram),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Some systems report undelivered datagrams here.
                Err(_) => self.counters.receive_failures += 1,
            }
        }
        true
    }

    /// Handles the received datagrams that have left the simulated network.
    fn receive_simulated(&mut self) {
        let now = self.clock.now();
        let Some(network) = &mut self.network else { return };
        for (number, datagram) in network.incoming.receive(now).into_iter().enumerate() {
            // Send replies before later replies displace them.
            if number > 0 && number % BATCH == 0 {
                self.flush();
            }
            self.hooked.handle_datagram(now, datagram.address, &datagram.bytes);
        }
    }

    /// Sends pending datagrams. Those that exceed the space in the socket's send buffer wait for the next call.
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
                    } else if self.fail_on_unreachable && has_no_route(&error) {
                        self.hooked.peer.handle_unreachable(now, to);
                    }
                }
            }
        }
    }

    /// Writes the next datagram for the socket to `outgoing`, and returns its destination and length.
    fn compose(&mut self, now: Instant) -> Option<(SocketAddr, usize)> {
        let Some(network) = &mut self.network else {
            let transmit = self.hooked.poll_transmit(now, &mut self.outgoing)?;
            return Some((transmit.to, transmit.payload.len()));
        };
        while let Some(transmit) = self.hooked.poll_transmit(now, &mut self.outgoing) {
            network.outgoing.send(now, transmit.to, transmit.payload);
        }
        let datagram = network.next_outgoing(now)?;
        self.outgoing.get_mut(..datagram.bytes.len())?.copy_from_slice(&datagram.bytes);
        Some((datagram.address, datagram.bytes.len()))
    }

    /// Takes the next event.
    ///
    /// The event borrows the bytes of a message, which count against the receive memory of its connection until the
    /// event is taken. A game that does not take its events therefore slows its peers down.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        self.hooked.poll_event()
    }

    /// Starts to open a connection to `address`. An event reports that it is open, or why it failed.
    ///
    /// If a server has several addresses, try the next one when an attempt gets no answer. The failure is immediate if
    /// the address is [reported unreachable](Options::fail_on_unreachable).
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
    /// Returns a [`ConnectError`] other than [`Failed`](ConnectError::Failed), which is reported by an event.
    pub fn connect(&mut self, address: SocketAddr) -> Result<ConnectionId, ConnectError<P::ConnectFailure>> {
        self.connect_with(address, &P::ConnectOptions::default())
    }

    /// Opens a connection like [`connect`](Self::connect), with options.
    ///
    /// In RakNet these are a password, a fixed protocol version, and timeouts.
    ///
    /// # Errors
    /// The same errors as [`connect`](Self::connect).
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
        if self.fail_on_unreachable {
            if self.attempts.is_empty() {
                set_error_reports(&self.socket, true);
            }
            self.attempts.push(id);
        }
        Ok(id)
    }

    /// Queues a message. [`flush`](Self::flush) or [`update`](Self::update) sends it.
    ///
    /// # Errors
    /// The same errors as [`endpoint::Connection::try_send`](crate::endpoint::Connection::try_send).
    pub fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.hooked.send(self.clock.now(), id, message, delivery)
    }

    /// Returns the maximum message length in bytes for [`send`](Self::send), or `None` if there is no such connection.
    pub fn max_message_len(&mut self, id: ConnectionId) -> Option<usize> {
        self.hooked.peer.max_message_len(id)
    }

    /// Queues a message like [`send`](Self::send), without copying a large one.
    ///
    /// [`try_send_vec`](crate::endpoint::Connection::try_send_vec) describes the details.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send); `message` is then unchanged.
    pub fn send_vec(
        &mut self,
        id: ConnectionId,
        message: &mut Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.hooked.send_vec(self.clock.now(), id, message, delivery)
    }

    /// Takes the bytes of the last event as a vector, without copying a large RakNet message.
    pub fn take_event_data(&mut self) -> Vec<u8> {
        self.hooked.peer.take_event_data()
    }

    /// Starts to close a connection. Reliable messages sent earlier are delivered first, and an event reports the
    /// disconnect.
    pub fn disconnect(&mut self, id: ConnectionId) {
        self.hooked.peer.disconnect(self.clock.now(), id);
    }

    /// Sends a final message and starts to close the connection.
    ///
    /// This message and earlier reliable messages are delivered before the peer is notified of the disconnect.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send). The connection is closed in any case.
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

    /// Queues a message for every open connection, and skips those with full send memory.
    pub fn broadcast(&mut self, message: &[u8], delivery: P::Delivery) -> Broadcast {
        self.send_to_all(None, message, delivery)
    }

    /// Broadcasts like [`broadcast`](Self::broadcast), to all connections but one.
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

    /// Returns how long the game may sleep if no datagram arrives, or `None` if only a datagram or a call changes
    /// anything.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        let now = self.clock.now();
        let delivery = self.network.as_ref().and_then(BothWays::next);
        let next = [self.hooked.poll_timeout(), delivery].into_iter().flatten().min();
        next.map(|at| at.saturating_since(now))
    }

    /// Returns the number of connections, including those that are being opened or closed.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.hooked.peer.connections().count()
    }

    /// Returns the address of the socket, with its actual port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the socket, to wait for datagrams with functions of the system such as `poll`.
    ///
    /// Only this endpoint may read from it and write to it. [`timeout`](Self::timeout) returns the maximum time to
    /// wait.
    #[must_use]
    pub const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns the protocol, for functions without a method here: counters and measurements of connections, pings,
    /// bans.
    #[must_use]
    pub const fn peer(&self) -> &Peer<'static, P> {
        &self.hooked.peer
    }

    /// Returns the protocol for changes, like [`peer`](Self::peer).
    ///
    /// Pass [`now`](Self::now) wherever a time is needed, and take events and datagrams through this endpoint.
    pub const fn peer_mut(&mut self) -> &mut Peer<'static, P> {
        &mut self.hooked.peer
    }

    /// Returns the current time of the protocol's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns advice for the operator once the counters show clients that cannot connect, such as clients that
    /// return no cookie.
    ///
    /// The async endpoint logs this advice; a polled program has to call this method now and then.
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

    /// Returns the counters of the endpoint.
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

impl<P: Protocol> QueueTarget<P> for Endpoint<P> {
    fn send(
        &mut self,
        id: ConnectionId,
        message: &mut Cow<'_, [u8]>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        match message {
            Cow::Borrowed(bytes) => Self::send(self, id, bytes, delivery),
            Cow::Owned(bytes) => self.send_vec(id, bytes, delivery),
        }
    }

    fn disconnect(&mut self, id: ConnectionId) {
        Self::disconnect(self, id);
    }

    fn now(&self) -> Instant {
        Self::now(self)
    }
}

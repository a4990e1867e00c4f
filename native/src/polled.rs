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

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Event, Peer, PeerStats, Protocol, Receipt, SendError};

use crate::bind_error::BindError;
use crate::clock::{Clock, unix_time};
use crate::endpoint::{ConnectError, Options, config_of_one};
use crate::huge_pages;
use crate::interfaces;
use crate::path_mtu::{allow_fragmentation, is_too_large, send_datagram};
use crate::socket::{LONGEST_DATAGRAM, canonical, route};

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
    peer: Peer<'static, P>,
    incoming: Box<[u8]>,
    outgoing: Box<[u8]>,
    /// The datagram in `outgoing` for which the system had no room.
    unsent: Option<(SocketAddr, usize)>,
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
    /// Datagrams that the system could not send; for the protocol they are lost.
    pub send_failures: u64,
    /// Receive calls that failed.
    pub receive_failures: u64,
}

impl<P: Protocol> Endpoint<P> {
    /// Binds a socket to the first address that works; port 0 picks a free one. Of the options, `config` and `capacity`
    /// count; the others are about tasks and their queues. So [`defer_incoming`](Options::defer_incoming) has no effect
    /// here: a game that decides whom it lets in gives [`Peer::share_admission`] a
    /// [`SharedAdmission`](rakwire::endpoint::SharedAdmission), which answers at once, before there are connections.
    ///
    /// # Errors
    /// A [`BindError`] with the address.
    pub fn bind(address: impl ToSocketAddrs, options: Options<P>) -> Result<Self, BindError> {
        let mut refused = BindError::NoAddress;
        for address in address.to_socket_addrs().map_err(BindError::Resolve)? {
            match UdpSocket::bind(address) {
                Ok(socket) => {
                    return Self::from_std(socket, options)
                        .map_err(|source| BindError::Socket { address, source });
                }
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
        socket.set_nonblocking(true)?;
        allow_fragmentation(&socket);
        let local = socket.local_addr()?;
        let mut peer = Peer::with_capacity(options.capacity, config_of_one::<P>(options.config));
        huge_pages::advise_for_blocks(peer.block_memory());
        P::tell_addresses(&mut peer, &interfaces::own_addresses(local));
        Ok(Self {
            socket,
            local,
            clock: Clock::start(),
            peer,
            // One byte more than the longest, so that a longer one is seen.
            incoming: vec![0; LONGEST_DATAGRAM + 1].into(),
            outgoing: vec![0; P::MAX_DATAGRAM].into(),
            unsent: None,
            full_updates: 0,
            counters: Counters::default(),
        })
    }

    /// Handles the datagrams that have arrived, at most 4,096, does what is due, and sends what may be sent now.
    pub fn update(&mut self) {
        P::tell_unix_time(&mut self.peer, self.clock.now(), unix_time());
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
        self.full_updates = if is_empty { 0 } else { self.full_updates.saturating_add(1) };
        if is_empty || self.full_updates >= FULL_UPDATES {
            self.peer.handle_timeout(start);
        }
        self.flush();
    }

    /// Handles a few datagrams. False if no more are waiting.
    fn receive_batch(&mut self) -> bool {
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut self.incoming) {
                Ok((length, _)) if length > LONGEST_DATAGRAM => self.counters.too_long += 1,
                Ok((length, from)) => {
                    let datagram = self.incoming.get(..length).unwrap_or_default();
                    self.peer.handle_datagram(self.clock.now(), canonical(from), datagram);
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
            let destination = route(self.local, to);
            let send = || self.socket.send_to(datagram, destination);
            match send_datagram(&self.socket, destination, datagram, send) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent = Some((to, length));
                    return;
                }
                Err(error) => {
                    self.counters.send_failures += 1;
                    if is_too_large(&error) {
                        self.peer.handle_too_large(now, to, length);
                    }
                }
            }
        }
    }

    fn compose(&mut self, now: Instant) -> Option<(SocketAddr, usize)> {
        let transmit = self.peer.poll_transmit(now, &mut self.outgoing)?;
        Some((transmit.to, transmit.payload.len()))
    }

    /// Takes the next event. It lends the bytes of a message, which use the memory of the connection until they are taken:
    /// a game that does not take its events slows the other peers down.
    pub fn poll_event(&mut self) -> Option<Event<'_, P>> {
        self.peer.poll_event()
    }

    /// Starts to open a connection to `address`. An event tells when it is open, or why it is not.
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
        Ok(self.peer.connect_with(self.clock.now(), address, options)?)
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
        self.peer.send(self.clock.now(), id, message, delivery)
    }

    /// The longest message in bytes that [`send`](Self::send) takes; `None` if there is no such connection.
    pub fn max_message_len(&mut self, id: ConnectionId) -> Option<usize> {
        self.peer.max_message_len(id)
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
        self.peer.send_vec(self.clock.now(), id, message, delivery)
    }

    /// Takes the bytes that the last event lent in a vector of their own, without a copy of a large message of RakNet.
    pub fn take_lent(&mut self) -> Vec<u8> {
        self.peer.take_lent()
    }

    /// Starts to end a connection: reliable messages that were sent before are delivered first. An event tells when it is
    /// over.
    pub fn disconnect(&mut self, id: ConnectionId) {
        self.peer.disconnect(self.clock.now(), id);
    }

    /// How long the game may sleep if no datagram arrives; nothing if only a datagram or a call changes anything.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        let now = self.clock.now();
        self.peer.poll_timeout().map(|at| at.saturating_since(now))
    }

    /// How many connections there are, including those that are being opened or closed.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.peer.connections().count()
    }

    /// The address of the socket, with its actual port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The protocol, for what has no method here: counters and measurements of connections, pings, bans.
    #[must_use]
    pub const fn peer(&self) -> &Peer<'static, P> {
        &self.peer
    }

    /// As [`peer`](Self::peer), to change it. Pass [`now`](Self::now) where it asks for the time, and take events and
    /// datagrams through this endpoint.
    pub const fn peer_mut(&mut self) -> &mut Peer<'static, P> {
        &mut self.peer
    }

    /// The time in the clock of the protocol.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The counters of the endpoint.
    #[must_use]
    pub fn stats(&self) -> Stats<P> {
        let Counters { too_long, send_failures, receive_failures } = self.counters;
        Stats { peer: *self.peer.stats(), too_long, send_failures, receive_failures }
    }
}

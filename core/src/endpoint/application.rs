//! The methods of a peer for applications: opening and closing connections, sending, and queries.

use core::net::SocketAddr;

use super::event::ConnectionInfo;
use super::hook::{Hook, Hooked};
use super::protocol::{Connection, MessageToSend, Peer, Protocol};
use super::tables::{Occupant, Tables};
use super::types::{ConnectError, ConnectionId, PartitionError, PeerStats, Receipt, SendError};
use crate::time::Instant;

impl<P: Protocol> Peer<'_, P> {
    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &P::Config {
        &self.config
    }

    /// Returns the counters of this peer.
    #[must_use]
    pub const fn stats(&self) -> &PeerStats<P::DropReason> {
        &self.stats
    }

    /// Returns the number of free blocks.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.tables.pool.available()
    }

    /// Returns the number of all blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.tables.pool.capacity()
    }

    /// Returns the memory of all blocks as one slice, for example to advise the operating system about it.
    ///
    /// Blocks are allocated from the beginning, so the end stays unused as long as possible.
    ///
    /// ```
    /// use rakwire::raknet::{Capacity, Config, Peer};
    ///
    /// let capacity = Capacity { connections: 4, blocks: 1_024, block_size: 256 };
    /// let peer = Peer::with_capacity(capacity, Config::new([7; 32]));
    /// assert_eq!(peer.block_memory().len(), 1_024 * 256);
    /// ```
    #[cfg(feature = "alloc")]
    #[must_use]
    pub fn block_memory(&self) -> &[u8] {
        self.tables.pool.memory()
    }

    /// Returns true if the memory has always been consistent.
    ///
    /// If not, there is a bug in this crate; a build with debug assertions panics.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.tables.pool.is_intact()
    }

    /// Starts to open a connection with the options of the configuration.
    ///
    /// The outcome is [`Event::Connected`](super::Event::Connected) or
    /// [`Event::ConnectFailed`](super::Event::ConnectFailed).
    ///
    /// # Errors
    ///
    /// [`ConnectError::AlreadyConnected`], [`ConnectError::Full`], [`ConnectError::UnassignedAddress`] or, in RakNet,
    /// [`ConnectError::InvalidMtu`].
    pub fn connect(&mut self, now: Instant, to: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.connect_with(now, to, &P::ConnectOptions::default())
    }

    /// Starts to open a connection with its own options.
    ///
    /// In RakNet these include a password, a protocol version and timeouts. If the remote peer has begun to open a
    /// connection with this one, the result is that connection, and its side is also
    /// [`Side::Client`](super::Side::Client) here.
    ///
    /// # Errors
    ///
    /// A [`ConnectError`], with nothing changed.
    pub fn connect_with(
        &mut self,
        now: Instant,
        to: SocketAddr,
        options: &P::ConnectOptions<'_>,
    ) -> Result<ConnectionId, ConnectError> {
        self.advance(now);
        if to.port() == 0 || to.ip().is_unspecified() {
            return Err(ConnectError::UnassignedAddress);
        }
        if let Some(slot) = self.find_or_evict(&to) {
            return self.open_simultaneously(slot, options);
        }
        let slot = self.vacant_slot().ok_or(ConnectError::Full)?;
        self.insert(slot, to, |connection, cx| connection.open(cx, options))?;
        Ok(self.tables.connections.id(slot))
    }

    /// Opens a connection that the remote peer is opening at the same time.
    fn open_simultaneously(
        &mut self,
        slot: u16,
        options: &P::ConnectOptions<'_>,
    ) -> Result<ConnectionId, ConnectError> {
        let (connection, mut cx) = self.borrow(slot).ok_or(ConnectError::AlreadyConnected)?;
        if !connection.open_simultaneously(&mut cx, options)? {
            return Err(ConnectError::AlreadyConnected);
        }
        // Schedules the connection, which only now has something to send.
        self.with(slot, |_, _| ());
        Ok(self.tables.connections.id(slot))
    }

    /// Returns the connection with the peer at `address`, if there is one.
    #[must_use]
    pub fn connection_at(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.tables.connections.at(&address).map(|slot| self.tables.connections.id(slot))
    }

    /// Ends a connection.
    ///
    /// Reliable messages sent earlier are delivered first, for at most `close_timeout`, and then the remote peer is
    /// notified. [`Event::Disconnected`](super::Event::Disconnected) reports the end. A connection that is not open yet
    /// ends immediately.
    ///
    /// A program that cannot wait calls [`handle_timeout`](Self::handle_timeout) with a time after `close_timeout`:
    /// then [`poll_transmit`](Self::poll_transmit) returns the datagram that notifies the remote peer.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.advance(now);
        if self.tables.connections.get(id).is_some() {
            self.with(id.slot, P::Connection::disconnect);
            self.update_deadline(id.slot);
        }
    }

    /// Queues a copy of a message for sending.
    ///
    /// RakNet: the first byte is the id of the message, and 0x86 and above are free for applications. With a receipt
    /// reliability it returns the id of the receipt, and [`Event::Receipt`](super::Event::Receipt) reports the outcome
    /// of the message.
    ///
    /// # Errors
    ///
    /// A [`SendError`] that describes the remedy. No part of the message was kept.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.send_message(now, id, MessageToSend::copied(message), delivery)
    }

    /// Queues a message for sending like [`send`](Self::send), without a copy if that is cheaper.
    ///
    /// A large message of RakNet (64 KiB or more) is taken out of `message` and kept until the remote peer has
    /// acknowledged it. Each of its parts takes a block, but its bytes take none. It may be as long as one that is
    /// copied, since the remote peer may have no more blocks than this one. A smaller message is copied, as is every
    /// message of the Game Protocol. This empties `message` too.
    ///
    /// # Errors
    ///
    /// The same as for [`send`](Self::send). On an error `message` is unchanged.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Sends the waiting messages while there is room.
    /// fn send_waiting<P: Protocol>(peer: &mut Peer<'_, P>, now: Instant, id: ConnectionId, waiting: &mut Vec<Vec<u8>>) {
    ///     while let Some(mut message) = waiting.pop() {
    ///         if peer.send_vec(now, id, &mut message, P::Delivery::default()) == Err(SendError::QuotaExceeded) {
    ///             return waiting.push(message);
    ///         }
    ///     }
    /// }
    /// ```
    #[cfg(feature = "zero-copy")]
    pub fn send_vec(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &mut alloc::vec::Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let owned = self.tables.pool.reserve_owned(message.len());
        let sent = self.send_message(now, id, MessageToSend { bytes: message, owned }, delivery);
        let kept = if sent.is_ok() { core::mem::take(message) } else { alloc::vec::Vec::new() };
        if let Some(owned) = owned {
            self.tables.pool.fill_owned(owned, kept);
        }
        sent
    }

    /// Sets the size from which messages are sent and received without a copy, instead of 64 KiB, to test this with
    /// little memory.
    #[cfg(feature = "zero-copy")]
    #[doc(hidden)]
    pub const fn set_zero_copy_threshold(&mut self, bytes: usize) {
        self.tables.pool.set_zero_copy_threshold(bytes);
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: MessageToSend<'_>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.advance(now);
        self.tables.connections.get(id).ok_or(SendError::NotConnected)?;
        let sent = self
            .with_quietly(id.slot, |connection, cx| connection.send(cx, message, delivery))
            .unwrap_or(Err(SendError::NotConnected));
        if matches!(sent, Err(SendError::QuotaExceeded | SendError::PoolExhausted)) {
            let Tables { connections, writable, pool, .. } = &mut self.tables;
            if let Some(slot) = connections.slot_mut(id.slot) {
                writable.on_refused(slot, id.slot, &pool.shares);
            }
        }
        sent
    }

    /// Checks that [`send`](Self::send) would accept a message of `length` bytes now.
    ///
    /// Use it to wait for room after a refused message. It does not see the bytes, so it does not check ids. `send_vec`
    /// of the feature `zero-copy` needs fewer blocks for a large message, and may accept it earlier.
    ///
    /// # Errors
    ///
    /// The [`SendError`] that `send` would return.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Returns true if a refused message should be kept for later.
    /// fn is_worth_keeping<P: Protocol>(peer: &mut Peer<'_, P>, id: ConnectionId, message: &[u8]) -> bool {
    ///     let refusal = peer.can_send(id, message.len(), P::Delivery::default());
    ///     matches!(refusal, Ok(()) | Err(SendError::QuotaExceeded | SendError::PoolExhausted))
    /// }
    /// # use rakwire::raknet::{Config, Resources};
    /// # let mut resources = Resources::<1, 32, 128>::new();
    /// # let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// # let id = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
    /// # assert!(!is_worth_keeping(&mut peer, id, b"hello")); // the server has not answered yet
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn can_send(
        &mut self,
        id: ConnectionId,
        length: usize,
        delivery: P::Delivery,
    ) -> Result<(), SendError> {
        self.tables.connections.get(id).ok_or(SendError::NotConnected)?;
        let (connection, cx) = self.borrow(id.slot).ok_or(SendError::NotConnected)?;
        connection.can_send(&cx, length, delivery)
    }

    /// Returns the length of the longest message that a connection accepts, in bytes.
    ///
    /// A peer with the same configuration and memory can receive it.
    ///
    /// Returns `None` if there is no such connection. It is the smallest of the limits of the protocol, the
    /// configuration and the memory. In RakNet it is known once the MTU is agreed on. The first message on each of the
    /// channels from 4 on may be a few blocks shorter, which the channel takes.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Capacity, Config, Peer};
    ///
    /// let mut peer = Peer::with_capacity(Capacity::for_connections(1), Config::new([7; 32]));
    /// let id = peer.connect(Instant::ZERO, ([192, 0, 2, 1], 19132).into())?;
    /// assert_eq!(peer.max_message_len(id), Some(4_000_000));
    /// # Ok::<(), rakwire::raknet::ConnectError>(())
    /// ```
    #[must_use]
    pub fn max_message_len(&mut self, id: ConnectionId) -> Option<usize> {
        self.tables.connections.get(id)?;
        let (connection, cx) = self.borrow(id.slot)?;
        Some(connection.max_message_len(&cx))
    }

    /// Holds back all events of a connection, including its end, until [`resume`](Self::resume).
    ///
    /// Use it if the application cannot process more messages of this connection now, but messages of others must
    /// continue. Messages that arrive in the meantime are kept while there is room, and are then refused to their
    /// sender. Returns false if there is no such connection.
    pub fn pause(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, true)
    }

    /// Ends a [`pause`](Self::pause). Returns false if there is no such connection.
    pub fn resume(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, false)
    }

    fn set_paused(&mut self, id: ConnectionId, is_paused: bool) -> bool {
        let Some(slot) = self.tables.connections.get_mut(id) else { return false };
        slot.is_paused = is_paused;
        self.list_events(id.slot);
        true
    }

    /// Sets whether a connection drops data datagrams as if they had not arrived.
    ///
    /// Use it if the application has its own queue and the queue is full. The remote peer retransmits the datagrams.
    /// Acknowledgements are still processed. Returns false if there is no such connection.
    ///
    /// ```
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol};
    ///
    /// /// Bounds the queue of an application to 1 MB and the data in flight.
    /// fn on_queue_changed<P: Protocol>(peer: &mut Peer<'_, P>, id: ConnectionId, bytes: usize) {
    ///     peer.refuse_data(id, bytes > 1 << 20);
    /// }
    /// # use rakwire::raknet::{Config, Resources};
    /// # let mut resources = Resources::<1, 32, 128>::new();
    /// # let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// # let id = peer.connect(rakwire::Instant::ZERO, "127.0.0.1:19132".parse()?)?;
    /// # on_queue_changed(&mut peer, id, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refuse_data(&mut self, id: ConnectionId, refuses: bool) -> bool {
        let slot = self.tables.connections.get_mut(id);
        slot.map(|slot| slot.connection.refuse_data(refuses)).is_some()
    }

    /// Returns the addresses, the side and the state of a connection, while it exists.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<ConnectionInfo<P>> {
        let slot = self.tables.connections.get(id)?;
        Some(ConnectionInfo {
            remote: slot.remote?,
            identity: slot.connection.identity(),
            side: slot.connection.side(),
            state: slot.connection.state(),
        })
    }

    /// Returns the counters of a connection, while it exists.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<P::ConnectionStats> {
        self.tables.connections.get(id).map(|slot| slot.connection.stats(self.last_now))
    }

    /// Returns all connections.
    ///
    /// A connection exists until the application and the remote peer were notified of its end.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let existing = self.tables.connections.occupied().filter(|(_, slot)| !slot.connection.is_lingering());
        existing.map(|(at, slot)| ConnectionId { slot: at, generation: slot.generation })
    }

    /// Restricts the ids of connections to the share of one of `of` peers of a server.
    ///
    /// `number` counts from 0. The connections of these peers never have the same id. Must be called before there are
    /// connections. Each slot then has fewer ids: 2^32 divided by `of`.
    ///
    /// # Errors
    ///
    /// [`PartitionError`], with nothing changed, if `number` is not below `of`, or if a connection was already given an
    /// id.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Capacity, Config, Peer};
    ///
    /// let mut peers = [0, 1].map(|_| Peer::with_capacity(Capacity::default(), Config::new([7; 32])));
    /// for (peer, number) in peers.iter_mut().zip(0..) {
    ///     peer.partition_ids(number, 2)?;
    /// }
    /// let [first, second] = peers.map(|mut peer| peer.connect(Instant::ZERO, ([192, 0, 2, 1], 19132).into()));
    /// assert_ne!(first?, second?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn partition_ids(&mut self, number: u16, of: u16) -> Result<(), PartitionError> {
        self.tables.connections.partition_ids(number, of)
    }

    /// Shares the admission state of a server with other peers: it decides which clients are accepted and answered.
    ///
    /// Must be called before there are connections.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub fn share_admission(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.admission.share(shared);
    }
}

impl<P: Protocol> Peer<'_, P> {
    /// Sends a message to every open connection except `except`, and returns the number of recipients.
    ///
    /// `refused` is called with each connection that does not accept it, most often for lack of room. Each connection
    /// takes a copy.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Config, Delivery, Peer, Resources};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// let sent = peer.broadcast(Instant::ZERO, b"\x90hello", Delivery::RELIABLE, None, |_, _| ());
    /// assert_eq!(sent, 0, "nothing is open");
    /// ```
    pub fn broadcast(
        &mut self,
        now: Instant,
        message: &[u8],
        delivery: P::Delivery,
        except: Option<ConnectionId>,
        refused: impl FnMut(ConnectionId, SendError),
    ) -> usize {
        let send_next = |from: &mut u16| {
            let id = self.tables.connections.next_open(from, except)?;
            Some((id, self.send(now, id, message, delivery).map(|_| ())))
        };
        count_sent(send_next, refused)
    }
}

impl<P: Protocol, H: Hook<P>> Hooked<'_, P, H> {
    /// Sends a message like [`Peer::broadcast`], through the hook, which sees it for each connection.
    pub fn broadcast(
        &mut self,
        now: Instant,
        message: &[u8],
        delivery: P::Delivery,
        except: Option<ConnectionId>,
        refused: impl FnMut(ConnectionId, SendError),
    ) -> usize {
        let send_next = |from: &mut u16| {
            let id = self.peer.tables.connections.next_open(from, except)?;
            Some((id, self.send(now, id, message, delivery).map(|_| ())))
        };
        count_sent(send_next, refused)
    }
}

/// Calls `send_next` with the slot after the last receiver until there is none.
///
/// Returns the number of successful sends.
fn count_sent(
    mut send_next: impl FnMut(&mut u16) -> Option<(ConnectionId, Result<(), SendError>)>,
    mut refused: impl FnMut(ConnectionId, SendError),
) -> usize {
    let (mut sent, mut from) = (0, 0);
    while let Some((id, result)) = send_next(&mut from) {
        match result {
            Ok(()) => sent += 1,
            Err(error) => refused(id, error),
        }
    }
    sent
}

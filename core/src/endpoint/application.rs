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

    /// Returns the number of free blocks of message memory.
    #[must_use]
    pub fn blocks_available(&self) -> usize {
        self.tables.pool.available()
    }

    /// Returns the total number of blocks of message memory.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.tables.pool.capacity()
    }

    /// Returns the memory of all blocks as one slice, for example for `madvise`.
    ///
    /// Blocks are allocated from the front, so the tail stays untouched until it is needed.
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

    /// Returns false if an internal inconsistency of the message memory was ever detected.
    ///
    /// That would be a bug in this crate; a build with debug assertions panics instead.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.tables.pool.is_intact()
    }

    /// Starts connecting to `to`, with the default options.
    ///
    /// The attempt results in [`Event::Connected`](super::Event::Connected) or
    /// [`Event::ConnectFailed`](super::Event::ConnectFailed).
    ///
    /// # Errors
    ///
    /// [`ConnectError::AlreadyConnected`], [`ConnectError::Full`], [`ConnectError::UnassignedAddress`] or, in RakNet,
    /// [`ConnectError::InvalidMtu`].
    pub fn connect(&mut self, now: Instant, to: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.connect_with(now, to, &P::ConnectOptions::default())
    }

    /// Starts connecting to `to`, with options for this connection.
    ///
    /// RakNet's options include a password, a protocol version and timeouts. If the remote peer is already connecting
    /// to this one, the two attempts become one connection, and its [`Side`](super::Side) is `Client` at both peers.
    ///
    /// # Errors
    ///
    /// A [`ConnectError`]; nothing has changed in that case.
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

    /// Turns a connection that the remote peer has begun into one that both peers open (simultaneous open).
    fn open_simultaneously(
        &mut self,
        slot: u16,
        options: &P::ConnectOptions<'_>,
    ) -> Result<ConnectionId, ConnectError> {
        let (connection, mut cx) = self.borrow(slot).ok_or(ConnectError::AlreadyConnected)?;
        if !connection.open_simultaneously(&mut cx, options)? {
            return Err(ConnectError::AlreadyConnected);
        }
        // Schedules the connection, which has something to send only after `open_simultaneously`.
        self.with(slot, |_, _| ());
        Ok(self.tables.connections.id(slot))
    }

    /// Returns the connection with the peer at `address`, if it exists.
    #[must_use]
    pub fn connection_at(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.tables.connections.at(&address).map(|slot| self.tables.connections.id(slot))
    }

    /// Closes a connection gracefully.
    ///
    /// Reliable messages that are already queued are delivered first, for at most `close_timeout`; then the remote
    /// peer is notified. [`Event::Disconnected`](super::Event::Disconnected) follows. A connection that is still
    /// connecting is closed immediately.
    ///
    /// To close without waiting, call [`handle_timeout`](Self::handle_timeout) with a time after `close_timeout`.
    /// [`poll_transmit`](Self::poll_transmit) then returns the datagram that notifies the remote peer.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.advance(now);
        if self.tables.connections.get(id).is_some() {
            self.with(id.slot, P::Connection::disconnect);
            self.update_deadline(id.slot);
        }
    }

    /// Queues a copy of `message` for sending.
    ///
    /// RakNet: the first byte is the message ID, and IDs from 0x86 up are free for applications. If the
    /// reliability requests a receipt, the result contains it, and [`Event::Receipt`](super::Event::Receipt) reports
    /// whether the message was acknowledged.
    ///
    /// # Errors
    ///
    /// A [`SendError`], which says how to proceed. No part of the message has been queued.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.send_message(now, id, MessageToSend::copied(message), delivery)
    }

    /// Queues a message like [`send`](Self::send), without copying it if it is large.
    ///
    /// RakNet takes a message of 64 KiB or more out of `message` and keeps the vector until the remote peer has
    /// acknowledged the whole message. Each part of the message takes one block for bookkeeping and none for its bytes.
    /// [`max_message_len`](Self::max_message_len) applies unchanged, because the remote peer may have no more blocks
    /// than this one. Smaller messages, and all messages of the Game Protocol, are copied, and `message` is cleared.
    ///
    /// # Errors
    ///
    /// A [`SendError`], as for [`send`](Self::send); `message` is unchanged.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Sends the waiting messages until the connection refuses one.
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

    /// Replaces the threshold of 64 KiB for zero-copy messages, so that tests need little memory.
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

    /// Checks whether [`send`](Self::send) would accept a message of `length` bytes.
    ///
    /// Use it to wait for free memory after a refused message. It cannot check the message ID. For a large message it
    /// may return an error although `send_vec` (feature `zero-copy`) would succeed: `send_vec` needs fewer blocks.
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

    /// Returns the maximum message length of a connection in bytes, or `None` if there is no such connection.
    ///
    /// A remote peer with the same configuration and memory can receive a message of that length.
    ///
    /// This length is the smallest of the limits of the protocol, the configuration and the memory. In RakNet it is
    /// final once the MTU is negotiated. The first message on each channel from 4 up may have to be a few blocks
    /// shorter, because the channel's state takes blocks.
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

    /// Withholds all events of a connection, including its disconnection, until [`resume`](Self::resume).
    ///
    /// Use it if the application cannot process the messages of this connection, but needs the messages of other
    /// connections. Messages received meanwhile are kept until the connection's share of memory is full; then its
    /// datagrams are dropped, and the remote peer retransmits the reliable messages. Returns false if there is no such
    /// connection.
    pub fn pause(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, true)
    }

    /// Delivers events again after [`pause`](Self::pause). Returns false if there is no such connection.
    pub fn resume(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, false)
    }

    fn set_paused(&mut self, id: ConnectionId, is_paused: bool) -> bool {
        let Some(slot) = self.tables.connections.get_mut(id) else { return false };
        slot.is_paused = is_paused;
        self.list_events(id.slot);
        true
    }

    /// Sets whether a connection drops incoming datagrams that carry messages, as if the network had lost them.
    ///
    /// Use it if the application has its own queue and the queue is full. The remote peer retransmits the
    /// reliable messages. Acknowledgements are still processed. Returns false if there is no such connection.
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

    /// Returns the address, identity, side and state of a connection, or `None` once it no longer exists.
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

    /// Returns the counters of a connection, or `None` once it no longer exists.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<P::ConnectionStats> {
        self.tables.connections.get(id).map(|slot| slot.connection.stats(self.last_now))
    }

    /// Returns the ids of all connections.
    ///
    /// A connection exists until its disconnection event has been polled and the remote peer has been notified.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let existing = self.tables.connections.occupied().filter(|(_, slot)| !slot.connection.is_lingering());
        existing.map(|(at, slot)| ConnectionId { slot: at, generation: slot.generation })
    }

    /// Restricts this peer to part `number` of `of` disjoint parts of the connection ids.
    ///
    /// It makes ids unique across the `of` peers of one server; `number` counts from 0. Call it before there are
    /// connections. Each slot then has 2^32 / `of` ids.
    ///
    /// # Errors
    ///
    /// [`PartitionError`] if `number` is not below `of`, if a connection already has an id, or if ids are already
    /// partitioned. Nothing has changed in that case.
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

    /// Joins the shared admission state of a server, which then decides which clients are accepted and get responses.
    ///
    /// Call it before there are connections.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub fn share_admission(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.admission.share(shared);
    }
}

impl<P: Protocol> Peer<'_, P> {
    /// Sends a message to every open connection except `except`; returns the number of connections that accepted it.
    ///
    /// `refused` is called with each connection that did not accept the message, and the error. Each connection
    /// stores its own copy.
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
    /// Sends a message like [`Peer::broadcast`]. The hook inspects it once per connection.
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

/// Calls `send_next` with the next slot to try, until it returns `None`; returns the number of successful sends.
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

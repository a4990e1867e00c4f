//! The methods of a peer for applications: opening and closing connections, sending to one or to all, and what is known of them.

use core::net::SocketAddr;

use super::connection_table::Occupant;
use super::event::ConnectionInfo;
use super::hook::{Hook, Hooked};
use super::protocol::{Connection, MessageToSend, Peer, Protocol};
use super::tables::Tables;
use super::types::{ConnectError, ConnectionId, PartitionError, PeerStats, Receipt, SendError};
use crate::time::Instant;

impl<P: Protocol> Peer<'_, P> {
    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &P::Config {
        &self.config
    }

    /// The counters of this peer.
    #[must_use]
    pub const fn stats(&self) -> &PeerStats<P::DropReason> {
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

    /// Returns the memory of all blocks, one after the other, for a driver that advises the operating system how it will be used.
    /// Blocks are taken from its beginning: its end stays unused as long as there is room before it.
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

    /// Whether the memory has always been consistent. If not, that is a bug of this crate, at which a build with debug
    /// assertions panics.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.tables.pool.is_intact()
    }

    /// Begins to open a connection as the configuration says. Its outcome is
    /// [`Event::Connected`](super::Event::Connected) or [`Event::ConnectFailed`](super::Event::ConnectFailed).
    ///
    /// # Errors
    /// [`ConnectError::AlreadyConnected`], [`ConnectError::Full`], [`ConnectError::UnassignedAddress`] or, in RakNet,
    /// [`ConnectError::InvalidMtu`].
    pub fn connect(&mut self, now: Instant, to: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.connect_with(now, to, &P::ConnectOptions::default())
    }

    /// Begins to open a connection, in RakNet with a password, another protocol version or other times than the
    /// configuration says.
    ///
    /// If the other peer has begun to open a connection with this one, it is that connection that comes of it, and its
    /// side is [`Side::Client`](super::Side::Client) here too.
    ///
    /// # Errors
    /// A [`ConnectError`]; nothing changed then.
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
            return self.adopt(slot, options);
        }
        let slot = self.vacant_slot().ok_or(ConnectError::Full)?;
        self.insert(slot, to, |connection, cx| connection.open(cx, options))?;
        Ok(self.tables.connections.id(slot))
    }

    /// Opens, from this end too, a connection that the other peer is opening.
    fn adopt(&mut self, slot: u16, options: &P::ConnectOptions<'_>) -> Result<ConnectionId, ConnectError> {
        let (connection, mut cx) = self.borrow(slot).ok_or(ConnectError::AlreadyConnected)?;
        if !connection.adopt(&mut cx, options)? {
            return Err(ConnectError::AlreadyConnected);
        }
        // Only now there is something to do.
        self.with(slot, |_, _| ());
        Ok(self.tables.connections.id(slot))
    }

    /// The connection with the peer at `address`, if there is one.
    #[must_use]
    pub fn connection_at(&self, address: SocketAddr) -> Option<ConnectionId> {
        self.tables.connections.at(&address).map(|slot| self.tables.connections.id(slot))
    }

    /// Ends a connection. Messages that were sent reliably before are delivered first, for at most `close_timeout`, and then the
    /// other peer is notified; [`Event::Disconnected`](super::Event::Disconnected) comes when it is over. A connection that
    /// is not open yet ends at once.
    ///
    /// A program that cannot wait calls [`handle_timeout`](Self::handle_timeout) with a time after `close_timeout`: then
    /// [`poll_transmit`](Self::poll_transmit) returns the datagram that notifies the other peer.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId) {
        self.advance(now);
        if self.tables.connections.get(id).is_some() {
            self.with(id.slot, P::Connection::disconnect);
            self.update_deadline(id.slot);
        }
    }

    /// Takes a message for sending. It is copied; `message` is free at once.
    ///
    /// RakNet: the first byte is the id of the message, and 0x86 and above are free for applications. With a receipt
    /// reliability the name of the receipt comes back, and
    /// [`Event::Receipt`](super::Event::Receipt) has the outcome of the message.
    ///
    /// # Errors
    /// A [`SendError`] that says what to do; nothing of the message was kept then.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.send_message(now, id, MessageToSend::copied(message), delivery)
    }

    /// As [`send`](Self::send), without a copy where that takes longer: a large message of RakNet (64 KiB or more) is taken
    /// out of `message` and kept until the other peer has acknowledged it. Each of its parts takes a block, but the bytes
    /// take none. It may be as long as one that is copied, since the other peer may have no more blocks than this one. A
    /// smaller message is copied, as are those of the Game Protocol, and `message` is empty then, too.
    ///
    /// # Errors
    /// As [`send`](Self::send); `message` is what it was then.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Sends what waits, as far as there is room.
    /// fn send_waiting<P: Protocol>(peer: &mut Peer<'_, P>, now: Instant, id: ConnectionId, waiting: &mut Vec<Vec<u8>>) {
    ///     while let Some(mut message) = waiting.pop() {
    ///         if peer.send_vec(now, id, &mut message, P::Delivery::default()) == Err(SendError::QuotaExceeded) {
    ///             return waiting.push(message);
    ///         }
    ///     }
    /// }
    /// ```
    #[cfg(feature = "hand-over")]
    pub fn send_vec(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &mut alloc::vec::Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let handed_over = self.tables.pool.name_handed_over(message.len());
        let sent = self.send_message(now, id, MessageToSend { bytes: message, handed_over }, delivery);
        let kept = if sent.is_ok() { core::mem::take(message) } else { alloc::vec::Vec::new() };
        if let Some(handed_over) = handed_over {
            self.tables.pool.keep_handed_over(handed_over, kept);
        }
        sent
    }

    /// Lets messages of so many bytes or more be handed over, instead of 64 KiB, to test this with little memory.
    #[cfg(feature = "hand-over")]
    #[doc(hidden)]
    pub const fn hand_over_from(&mut self, bytes: usize) {
        self.tables.pool.set_hand_over_from(bytes);
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

    /// Whether [`send`](Self::send) would accept a message of `length` bytes now, for an application that was refused
    /// and waits for room. It does not know the bytes, so it says nothing of ids. `send_vec` of the feature `hand-over` needs
    /// fewer blocks for a large message, and may accept it earlier.
    ///
    /// # Errors
    /// The [`SendError`] that `send` would return.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Whether a message that was refused should be kept for later.
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

    /// The longest message in bytes that a connection takes, and that a peer with the same configuration and memory can
    /// receive; `None` if there is no such connection. It is the least of what the protocol, the configuration and the
    /// memory allow. In RakNet a connection has it once the MTU is agreed on, and the first message on each of the channels
    /// from 4 on may be a few blocks shorter, which the channel then takes.
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

    /// Keeps everything that happens on a connection, its end too, until [`resume`](Self::resume): for an application
    /// that cannot take more of its messages now and does not want to stop those of others. What arrives meanwhile
    /// stays here as long as there is room, and is refused to its sender beyond. False if there is no such connection.
    pub fn pause(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, true)
    }

    /// Ends a [`pause`](Self::pause). False if there is no such connection.
    pub fn resume(&mut self, id: ConnectionId) -> bool {
        self.set_paused(id, false)
    }

    fn set_paused(&mut self, id: ConnectionId, is_paused: bool) -> bool {
        let Some(slot) = self.tables.connections.get_mut(id) else { return false };
        slot.is_paused = is_paused;
        self.list_events(id.slot);
        true
    }

    /// Sets whether a connection drops datagrams of messages as if they had not arrived, for an application that keeps
    /// messages in a queue of its own and has no room in it. The other peer sends them again. Acknowledgements are
    /// taken as always. False if there is no such connection.
    ///
    /// ```
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol};
    ///
    /// /// Bounds the queue of an application to 1 MB and what was on its way.
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

    /// The counters of a connection, while it exists.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<P::ConnectionStats> {
        self.tables.connections.get(id).map(|slot| slot.connection.stats(self.last_now))
    }

    /// Returns every connection that exists, which it does until the application and the other peer were notified of its end.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        let existing = self.tables.connections.occupied().filter(|(_, slot)| !slot.connection.is_lingering());
        existing.map(|(at, slot)| ConnectionId { slot: at, generation: slot.generation })
    }

    /// Makes this peer the one with `number`, from 0, among `of` peers of one server: no two of them have connections of the same
    /// id. To be called before there are connections. A slot then has so many ids fewer: 2^32 divided by `of`.
    ///
    /// # Errors
    ///
    /// [`PartitionError`], and nothing has changed, if `number` is none of `of` peers, or an id was given to a connection already.
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

    /// Lets this peer decide together with others which clients it lets in and which it answers. To be called before there are
    /// connections.
    #[cfg(all(feature = "alloc", feature = "server"))]
    pub fn share_admission(&mut self, shared: alloc::boxed::Box<dyn super::admission::SharedAdmission>) {
        self.admission.share(shared);
    }
}

impl<P: Protocol> Peer<'_, P> {
    /// Sends a message to every open connection, but to `except` if there is one. Returns to how many; `refused` is called with
    /// each connection that does not take it, most often for want of room. Each takes a copy.
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
    /// As [`Peer::broadcast`], through the hook, which is shown the message for each connection.
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

/// Calls `send_next` with the slot behind the last receiver until there is none, and returns how many sends succeeded.
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

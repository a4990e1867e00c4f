//! Plugins, which communicate with their counterparts at other peers.
//!
//! A [`Hook`](super::Hook) sees all traffic of a peer, including datagrams, and filters it. A [`Plugin`] has messages
//! of its own, which are identified by their first byte and never reach the application. [`PluginHost`] is the hook
//! that hosts plugins: it assigns messages to them, and is attached to a peer like any hook.

mod host;

use core::cell::RefCell;
use core::net::SocketAddr;

use super::hook::{Injected, Verdict};
use super::protocol::Protocol;
use super::types::{ConnectionId, Outcome, Receipt, SendError, Side};
use crate::cursor::Chunks;
use crate::time::Instant;

pub use host::{AttachError, PluginHost, PluginKey, PluginStats};

/// The sender of a plugin's messages: a peer, or a substitute in a test.
pub trait MessageSender<P: Protocol> {
    /// Sends a message that bypasses all hooks and plugins. [`Plugin::on_receipt`] handles its receipt.
    ///
    /// # Errors
    ///
    /// As [`Peer::send`](super::Peer::send).
    fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;
}

/// A component that communicates with its counterparts at other peers.
///
/// All methods are optional. A plugin has neither a clock nor a socket; the time passed to it never decreases. It keeps
/// state for each connection in a [`BySlot`]. It offers information to the application by its own methods, or
/// [injects](Self::inject) it as messages.
///
/// ```
/// use rakwire::endpoint::{
///     BySlot, ConnectionId, MessageIds, MessageSender, Plugin, PluginHost, Protocol, Side, Verdict,
/// };
/// use rakwire::raknet::{Config, Hooked, Peer, RakNet, Resources};
/// use rakwire::{Chunks, Instant};
///
/// /// Answers each message of the id 0x85 with the same byte, once.
/// #[derive(Default)]
/// struct Echo {
///     unanswered: BySlot<u8, 8>,
/// }
///
/// impl<P: Protocol> Plugin<P> for Echo {
///     fn message_ids(&self) -> MessageIds {
///         MessageIds::of(&[0x85])
///     }
///
///     fn on_message(
///         &mut self,
///         _now: Instant,
///         id: ConnectionId,
///         _delivery: P::Delivery,
///         _message: &dyn Chunks,
///     ) -> Verdict {
///         self.unanswered.insert(id, 1);
///         Verdict::Drop
///     }
///
///     fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: P::DisconnectReason) {
///         self.unanswered.remove(id);
///     }
///
///     fn poll_timeout(&self) -> Option<Instant> {
///         (!self.unanswered.is_empty()).then_some(Instant::ZERO)
///     }
///
///     fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<P>) {
///         self.unanswered.retain(|id, _| sender.send(id, &[0x85], P::Delivery::default()).is_err());
///     }
/// }
///
/// let mut host = PluginHost::<Echo, 4>::new();
/// let key = host.attach::<RakNet>(Echo::default())?;
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut hooked = Hooked::new(Peer::new(&mut resources, Config::new([7; 32])), host);
/// assert!(hooked.hook.attach::<RakNet>(Echo::default()).is_err(), "the id has an owner");
/// assert!(hooked.hook.detach(key).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Plugin<P: Protocol> {
    /// Returns the ids, which are the first bytes, of the messages that belong only to this plugin.
    ///
    /// They must not change while it is attached.
    fn message_ids(&self) -> MessageIds {
        MessageIds::NONE
    }

    /// Returns true if it also sees messages with other ids, and those that the application sends.
    fn watches_all(&self) -> bool {
        false
    }

    /// Called when a connection is open. A plugin attached while a connection opens may be notified twice.
    fn on_connected(
        &mut self,
        now: Instant,
        id: ConnectionId,
        remote: SocketAddr,
        identity: P::Identity,
        side: Side,
    ) {
        let _ = (now, id, remote, identity, side);
    }

    /// Called when a connection has ended, with the reason.
    fn on_disconnected(&mut self, now: Instant, id: ConnectionId, reason: P::DisconnectReason) {
        let _ = (now, id, reason);
    }

    /// Handles a received message: one with an id of the plugin, or any if the plugin [watches all](Self::watches_all).
    ///
    /// If it is dropped, neither the plugins behind this one nor the application see it. So a plugin drops its own
    /// messages, replaces a message by [injecting](Self::inject) another, or holds one back to inject it later.
    fn on_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        delivery: P::Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        let _ = (now, id, delivery, message);
        Verdict::Pass
    }

    /// Handles a message that the application sends, if the plugin [watches all](Self::watches_all).
    ///
    /// If it is dropped, the application receives an error.
    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        let _ = (now, id, message, delivery);
        Verdict::Pass
    }

    /// Handles the outcome of any message sent with a receipt; only in RakNet.
    ///
    /// A plugin drops receipts that [`MessageSender::send`] gave it, so that neither the plugins behind it nor the
    /// application see them.
    fn on_receipt(&mut self, now: Instant, id: ConnectionId, receipt: Receipt, outcome: Outcome) -> Verdict {
        let _ = (now, id, receipt, outcome);
        Verdict::Pass
    }

    /// Handles a message of a peer without a connection, with any first byte; only in RakNet.
    ///
    /// The configuration must accept such messages. The sender may be forged.
    fn on_out_of_band(
        &mut self,
        now: Instant,
        from: SocketAddr,
        identity: P::Identity,
        data: &dyn Chunks,
    ) -> Verdict {
        let _ = (now, from, identity, data);
        Verdict::Pass
    }

    /// Offers `take` a message for the application, as [`Hook::inject`](super::Hook::inject) does.
    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let _ = (of, take);
    }

    /// Does the work that is due, and sends.
    ///
    /// The plugin keeps messages for which there is no room, and is called again a little later.
    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        let _ = (now, sender);
    }

    /// Returns when [`update`](Self::update) is to be called next, if ever; a time in the past means now.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// Forwards every method to the plugin that `$self => $plugin` reaches.
macro_rules! forward {
    ($self:ident => shared $shared:expr, changed $changed:expr) => {
        fn message_ids(&$self) -> MessageIds {
            $shared.message_ids()
        }

        fn watches_all(&$self) -> bool {
            $shared.watches_all()
        }

        fn on_connected(
            &mut $self,
            now: Instant,
            id: ConnectionId,
            remote: SocketAddr,
            identity: P::Identity,
            side: Side,
        ) {
            $changed.on_connected(now, id, remote, identity, side);
        }

        fn on_disconnected(&mut $self, now: Instant, id: ConnectionId, reason: P::DisconnectReason) {
            $changed.on_disconnected(now, id, reason);
        }

        fn on_message(
            &mut $self,
            now: Instant,
            id: ConnectionId,
            delivery: P::Delivery,
            message: &dyn Chunks,
        ) -> Verdict {
            $changed.on_message(now, id, delivery, message)
        }

        fn on_send(
            &mut $self,
            now: Instant,
            id: ConnectionId,
            message: &[u8],
            delivery: P::Delivery,
        ) -> Verdict {
            $changed.on_send(now, id, message, delivery)
        }

        fn on_receipt(
            &mut $self,
            now: Instant,
            id: ConnectionId,
            receipt: Receipt,
            outcome: Outcome,
        ) -> Verdict {
            $changed.on_receipt(now, id, receipt, outcome)
        }

        fn on_out_of_band(
            &mut $self,
            now: Instant,
            from: SocketAddr,
            identity: P::Identity,
            data: &dyn Chunks,
        ) -> Verdict {
            $changed.on_out_of_band(now, from, identity, data)
        }

        fn inject(&mut $self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
            $changed.inject(of, take);
        }

        fn update(&mut $self, now: Instant, sender: &mut dyn MessageSender<P>) {
            $changed.update(now, sender);
        }

        fn poll_timeout(&$self) -> Option<Instant> {
            $shared.poll_timeout()
        }
    };
}

#[cfg(feature = "alloc")]
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for alloc::boxed::Box<T> {
    forward!(self => shared (**self), changed (**self));
}

/// A plugin that the application can access without an allocator while its peer runs.
///
/// The application must not keep it borrowed during a call of the peer.
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for &RefCell<T> {
    forward!(self => shared self.borrow(), changed self.borrow_mut());
}

/// The same with an allocator, if the driver keeps the plugin for as long as it likes.
#[cfg(feature = "alloc")]
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for alloc::rc::Rc<RefCell<T>> {
    forward!(self => shared self.borrow(), changed self.borrow_mut());
}

/// A set of message ids, which are the first bytes of messages.
///
/// ```
/// use rakwire::endpoint::MessageIds;
///
/// let ids = MessageIds::of(&[68, 69]);
/// assert!(ids.contains(68) && !ids.contains(70));
/// assert_eq!(ids.first_common(MessageIds::of(&[90, 69])), Some(69));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageIds([u64; 4]);

impl MessageIds {
    /// The empty set.
    pub const NONE: Self = Self([0; 4]);
    /// The set of all ids.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Creates the set of these ids.
    #[must_use]
    pub fn of(ids: &[u8]) -> Self {
        let mut set = Self::NONE;
        ids.iter().for_each(|id| set.insert(*id));
        set
    }

    /// Returns true if an id is in the set.
    #[must_use]
    pub fn contains(self, id: u8) -> bool {
        self.0.get(usize::from(id / 64)).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Adds an id to the set.
    pub fn insert(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word |= 1 << (id % 64);
        }
    }

    /// Removes an id from the set.
    pub fn remove(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word &= !(1 << (id % 64));
        }
    }

    /// Returns the lowest id that is in both sets.
    #[must_use]
    pub fn first_common(self, other: Self) -> Option<u8> {
        (0..=u8::MAX).find(|id| self.contains(*id) && other.contains(*id))
    }
}

/// A table with a value for each connection, indexed by slot: a look-up takes constant time.
///
/// `N` is the most connections that the peer can have; values for slots beyond it are not stored.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::endpoint::BySlot;
/// use rakwire::raknet::{Config, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let id = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// let mut names = BySlot::<&str, 1>::new();
/// assert!(names.insert(id, "a server"));
/// assert_eq!(names.get(id), Some(&"a server"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BySlot<T, const N: usize> {
    values: [Option<(ConnectionId, T)>; N],
}

impl<T, const N: usize> BySlot<T, N> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: [const { None }; N] }
    }

    /// Stores the value of a connection, replacing an older one of the same slot.
    ///
    /// Returns false if the slot is beyond the table.
    pub fn insert(&mut self, id: ConnectionId, value: T) -> bool {
        let place = self.values.get_mut(usize::from(id.slot));
        place.map(|place| *place = Some((id, value))).is_some()
    }

    /// Returns the value of a connection.
    #[must_use]
    pub fn get(&self, id: ConnectionId) -> Option<&T> {
        let (owner, value) = self.values.get(usize::from(id.slot))?.as_ref()?;
        (*owner == id).then_some(value)
    }

    /// Returns the mutable value of a connection.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        let (owner, value) = self.values.get_mut(usize::from(id.slot))?.as_mut()?;
        (*owner == id).then_some(value)
    }

    /// Removes and returns the value of a connection.
    pub fn remove(&mut self, id: ConnectionId) -> Option<T> {
        let place = self.values.get_mut(usize::from(id.slot))?;
        place.take_if(|(owner, _)| *owner == id).map(|(_, value)| value)
    }

    /// Returns true if no connection has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the connections with their values, in the order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &T)> {
        self.values.iter().flatten().map(|(id, value)| (*id, value))
    }

    /// Returns the connections with their mutable values, in the order of slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionId, &mut T)> {
        self.values.iter_mut().flatten().map(|(id, value)| (*id, value))
    }

    /// Removes the values for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(ConnectionId, &mut T) -> bool) {
        for place in &mut self.values {
            place.take_if(|(id, value)| !keep(*id, value));
        }
    }
}

impl<T, const N: usize> Default for BySlot<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

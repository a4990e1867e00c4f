//! Plugins, which exchange messages with their counterparts at other peers.
//!
//! A [`Hook`](super::Hook) inspects and filters all traffic of a peer, including datagrams. A [`Plugin`] has messages
//! of its own, which are identified by their first byte and never reach the application. [`PluginHost`] is the hook
//! that hosts plugins: it routes messages to them, and is attached to a peer like any hook.

mod host;

use core::cell::RefCell;
use core::net::SocketAddr;

use super::hook::{Injected, Verdict};
use super::protocol::Protocol;
use super::types::{ConnectionId, Outcome, Receipt, SendError, Side};
use crate::cursor::Chunks;
use crate::time::Instant;

pub use host::{AttachError, PluginHost, PluginKey, PluginStats};

/// Sends a plugin's messages: a peer, or a substitute in a test.
pub trait MessageSender<P: Protocol> {
    /// Sends a message that bypasses all hooks and plugins.
    ///
    /// If it has a receipt, [`Plugin::on_receipt`] gets the outcome.
    ///
    /// # Errors
    ///
    /// The errors of [`Peer::send`](super::Peer::send).
    fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;
}

/// A component that exchanges messages with its counterparts at other peers.
///
/// Every method but [`message_ids`](Self::message_ids) has a default. A plugin uses neither a clock nor a socket; the
/// times passed to it are monotonic. Keep per-connection state in a [`BySlot`]. Expose results to the application by
/// methods of your own, or [inject](Self::inject) them as messages.
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
    /// Returns the message IDs (first bytes) that belong exclusively to this plugin.
    ///
    /// The set must not change while the plugin is attached.
    fn message_ids(&self) -> MessageIds {
        MessageIds::NONE
    }

    /// Returns true if the plugin also inspects messages with other IDs and outgoing messages from the application.
    fn watches_all(&self) -> bool {
        false
    }

    /// Called when a connection has opened. If the plugin is attached while a connection opens, it may be called
    /// twice.
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

    /// Called when a connection has closed, with the reason.
    fn on_disconnected(&mut self, now: Instant, id: ConnectionId, reason: P::DisconnectReason) {
        let _ = (now, id, reason);
    }

    /// Inspects a received message with an ID of the plugin, or any message if the plugin [watches
    /// all](Self::watches_all).
    ///
    /// `Verdict::Drop` hides the message from the following plugins and the application. Drop the plugin's own
    /// messages. To replace or delay a message, drop it and [inject](Self::inject) another message, or the same message
    /// later.
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

    /// Inspects a message that the application sends, if the plugin [watches all](Self::watches_all).
    ///
    /// On `Verdict::Drop` the application gets [`SendError::Filtered`](super::SendError::Filtered).
    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        let _ = (now, id, message, delivery);
        Verdict::Pass
    }

    /// Inspects the outcome of a message sent with a receipt, whether or not it is the plugin's own; RakNet only.
    ///
    /// Drop the receipts that [`MessageSender::send`] returned to this plugin, so that the following plugins and the
    /// application do not see them.
    fn on_receipt(&mut self, now: Instant, id: ConnectionId, receipt: Receipt, outcome: Outcome) -> Verdict {
        let _ = (now, id, receipt, outcome);
        Verdict::Pass
    }

    /// Inspects an out-of-band message with any first byte from an unconnected peer; RakNet only.
    ///
    /// The configuration must enable out-of-band messages. The sender's address may be forged.
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

    /// Offers `take` a message for the application, like [`Hook::inject`](super::Hook::inject).
    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let _ = (of, take);
    }

    /// Performs the work that is due, and sends messages.
    ///
    /// Keep a message that `sender` refuses for lack of memory: the plugin is called again 5 ms later.
    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        let _ = (now, sender);
    }

    /// Returns when to call [`update`](Self::update) next, or `None`; a time in the past means immediately.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// Forwards every method of the trait to the plugin that the expression `$self => $plugin` yields.
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

/// A plugin that the application can access, without an allocator, while a peer uses it.
///
/// The application must not hold a borrow during a call of the peer.
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for &RefCell<T> {
    forward!(self => shared self.borrow(), changed self.borrow_mut());
}

/// A plugin that the application can access while a driver owns it; requires an allocator.
#[cfg(feature = "alloc")]
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for alloc::rc::Rc<RefCell<T>> {
    forward!(self => shared self.borrow(), changed self.borrow_mut());
}

/// A set of message IDs, the first bytes of messages.
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

    /// Creates a set from a list of IDs.
    #[must_use]
    pub fn of(ids: &[u8]) -> Self {
        let mut set = Self::NONE;
        ids.iter().for_each(|id| set.insert(*id));
        set
    }

    /// Returns true if the set contains `id`.
    #[must_use]
    pub fn contains(self, id: u8) -> bool {
        self.0.get(usize::from(id / 64)).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Adds `id` to the set.
    pub fn insert(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word |= 1 << (id % 64);
        }
    }

    /// Removes `id` from the set.
    pub fn remove(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word &= !(1 << (id % 64));
        }
    }

    /// Returns the lowest ID that both sets contain.
    #[must_use]
    pub fn first_common(self, other: Self) -> Option<u8> {
        (0..=u8::MAX).find(|id| self.contains(*id) && other.contains(*id))
    }
}

/// A map from connections to values, indexed by slot: a lookup takes constant time.
///
/// `N` is the maximum number of connections of the peer; values for slots beyond it are not stored.
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
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: [const { None }; N] }
    }

    /// Stores the value of a connection; it replaces the value of an earlier connection in the same slot.
    ///
    /// Returns false if the slot is not below `N`.
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

    /// Returns the connections and their values, in the order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &T)> {
        self.values.iter().flatten().map(|(id, value)| (*id, value))
    }

    /// Returns the connections and mutable references to their values, in the order of slots.
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

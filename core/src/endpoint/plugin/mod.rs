//! Plugins: what speaks with its like at other peers, between a peer and its application.
//!
//! A [`Hook`](super::Hook) sees what passes a peer, datagrams too, and says what goes on. A [`Plugin`] has messages of its own,
//! which are known by their first byte and which the application never sees. [`PluginHost`] is the hook that plugins live
//! in: it knows which message is whose, and is attached to a peer as any hook is.

mod host;

use core::cell::RefCell;
use core::net::SocketAddr;

use super::hook::{Injected, Verdict};
use super::protocol::Protocol;
use super::types::{ConnectionId, Outcome, Receipt, SendError, Side};
use crate::cursor::Chunks;
use crate::time::Instant;

pub use host::{AttachError, PluginHost, PluginKey, PluginStats};

/// What sends the messages of a plugin: a peer, or what stands for one in a test.
pub trait MessageSender<P: Protocol> {
    /// Sends a message past all hooks and plugins. A receipt comes to [`Plugin::on_receipt`].
    ///
    /// # Errors
    /// As [`Peer::send`](super::Peer::send).
    fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError>;
}

/// Something that speaks with its like at other peers. Every method may be left out. It has neither clock nor socket; the time
/// that it is told never steps back.
///
/// What it keeps of a connection it keeps in a [`BySlot`]. What it has to tell the application it offers by methods of its
/// own, or [injects](Self::inject) as a message.
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
    /// The ids, that is the first bytes, of the messages that belong to this plugin alone. They do not change while it is
    /// attached.
    fn message_ids(&self) -> MessageIds {
        MessageIds::NONE
    }

    /// Whether it is shown the messages with other ids too, and what the application sends.
    fn watches_all(&self) -> bool {
        false
    }

    /// A connection is open. A plugin that is attached while a connection opens may be told of that twice.
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

    /// A connection has ended, and why.
    fn on_disconnected(&mut self, now: Instant, id: ConnectionId, reason: P::DisconnectReason) {
        let _ = (now, id, reason);
    }

    /// A message arrived: with an id of its own, or with any if the plugin [watches all](Self::watches_all). Dropped, neither
    /// the plugins behind this one nor the application see it; so a plugin takes its own messages, replaces one by
    /// [injecting](Self::inject) another, or keeps one back to inject it later.
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

    /// The application sends a message, which a plugin that [watches all](Self::watches_all) is shown. Dropped, the
    /// application is told that it was refused.
    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        let _ = (now, id, message, delivery);
        Verdict::Pass
    }

    /// It is known what became of a message sent with a receipt, whoever has sent it; only in RakNet. A plugin drops what
    /// [`MessageSender::send`] has given it, so that neither the plugins behind it nor the application see it.
    fn on_receipt(&mut self, now: Instant, id: ConnectionId, receipt: Receipt, outcome: Outcome) -> Verdict {
        let _ = (now, id, receipt, outcome);
        Verdict::Pass
    }

    /// A peer without a connection sent a message, whatever its first byte is; only in RakNet, if the configuration accepts
    /// them. Who has sent it may be forged.
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

    /// As [`Hook::inject`](super::Hook::inject): offers `take` a message for the application.
    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        let _ = (of, take);
    }

    /// Does what is due, and sends. What finds no room is kept by the plugin, which is asked again a little later.
    fn update(&mut self, now: Instant, sender: &mut dyn MessageSender<P>) {
        let _ = (now, sender);
    }

    /// When [`update`](Self::update) wants to be called next, if ever; a time gone by means now.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// Passes every method on to the plugin that `$self => $plugin` reaches.
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

/// A plugin that the application reaches without an allocator while its peer runs. The application must not keep it borrowed
/// while the peer does anything.
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for &RefCell<T> {
    forward!(self => shared self.borrow(), changed self.borrow_mut());
}

/// The same with an allocator, where the driver keeps the plugin for as long as it likes.
#[cfg(feature = "alloc")]
impl<P: Protocol, T: Plugin<P> + ?Sized> Plugin<P> for alloc::rc::Rc<RefCell<T>> {
    forward!(self => shared self.borrow(), changed self.borrow_mut());
}

/// A set of the ids, that is the first bytes, of messages.
///
/// ```
/// use rakwire::endpoint::MessageIds;
///
/// let ids = MessageIds::of(&[68, 69]);
/// assert!(ids.contains(68) && !ids.contains(70));
/// assert_eq!(ids.first_of_both(MessageIds::of(&[90, 69])), Some(69));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageIds([u64; 4]);

impl MessageIds {
    /// No id.
    pub const NONE: Self = Self([0; 4]);
    /// Every id.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// The set of these ids.
    #[must_use]
    pub fn of(ids: &[u8]) -> Self {
        let mut set = Self::NONE;
        ids.iter().for_each(|id| set.insert(*id));
        set
    }

    /// Whether an id is in the set.
    #[must_use]
    pub fn contains(self, id: u8) -> bool {
        self.0.get(usize::from(id / 64)).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Puts an id into the set.
    pub fn insert(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word |= 1 << (id % 64);
        }
    }

    /// Takes an id out of the set.
    pub fn remove(&mut self, id: u8) {
        if let Some(word) = self.0.get_mut(usize::from(id / 64)) {
            *word &= !(1 << (id % 64));
        }
    }

    /// The lowest id that is in both sets.
    #[must_use]
    pub fn first_of_both(self, other: Self) -> Option<u8> {
        (0..=u8::MAX).find(|id| self.contains(*id) && other.contains(*id))
    }
}

/// A value for each connection, found by the slot of the connection: a look-up costs the same whatever their number. `N` is
/// the number of connections that the peer can have; what is for a slot beyond that is not kept.
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
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: [const { None }; N] }
    }

    /// Keeps the value of a connection, in the place of an older one of the same slot. False if the slot is beyond the table.
    pub fn insert(&mut self, id: ConnectionId, value: T) -> bool {
        let place = self.values.get_mut(usize::from(id.slot));
        place.map(|place| *place = Some((id, value))).is_some()
    }

    /// The value of a connection.
    #[must_use]
    pub fn get(&self, id: ConnectionId) -> Option<&T> {
        let (owner, value) = self.values.get(usize::from(id.slot))?.as_ref()?;
        (*owner == id).then_some(value)
    }

    /// The value of a connection, to be changed.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut T> {
        let (owner, value) = self.values.get_mut(usize::from(id.slot))?.as_mut()?;
        (*owner == id).then_some(value)
    }

    /// Takes the value of a connection out of the table.
    pub fn remove(&mut self, id: ConnectionId) -> Option<T> {
        let place = self.values.get_mut(usize::from(id.slot))?;
        place.take_if(|(owner, _)| *owner == id).map(|(_, value)| value)
    }

    /// Whether no connection has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The connections with their values, by slots.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &T)> {
        self.values.iter().flatten().map(|(id, value)| (*id, value))
    }

    /// The connections with their values, which may be changed, by slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionId, &mut T)> {
        self.values.iter_mut().flatten().map(|(id, value)| (*id, value))
    }

    /// Drops the values for which `keep` says no.
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

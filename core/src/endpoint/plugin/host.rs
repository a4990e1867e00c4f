//! The hook that hosts plugins.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::Vec;

use super::{MessageIds, MessageSender, Plugin};
use crate::cursor::{Chunks, Piece};
use crate::endpoint::event::Event;
use crate::endpoint::hook::{Hook, Injected, Verdict};
use crate::endpoint::protocol::{Peer, Protocol};
use crate::endpoint::types::{ConnectionId, ConnectionState, Receipt, SendError, Side};
use crate::time::Instant;

/// The delay before a plugin retries after its messages did not fit into the send queue.
const RETRY: Duration = Duration::from_millis(5);

/// Identifies an attached plugin. Keys are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PluginKey(u32);

/// The reason why a plugin was not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum AttachError {
    /// The host is full: detach a plugin, or use a host with a larger `N`.
    Full,
    /// Another plugin uses this message ID: detach it first.
    IdTaken(u8),
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Full => f.write_str("the host is full; detach a plugin, or use a host for more plugins"),
            Self::IdTaken(id) => write!(f, "another plugin has the message id {id:#04X}; detach it first"),
        }
    }
}

impl core::error::Error for AttachError {}

/// Counters of an attached plugin. They saturate and are never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PluginStats {
    /// Received messages that the plugin inspected.
    pub offered: u64,
    /// Received messages that the plugin dropped, usually because they were its own.
    pub consumed: u64,
    /// Outgoing messages from the application that the plugin dropped.
    pub refused: u64,
    /// Messages that the plugin injected for the application.
    pub injected: u64,
    /// Messages that the plugin sent.
    pub sent: u64,
    /// Messages that the plugin tried to send and the connection refused.
    pub unsent: u64,
}

#[derive(Debug)]
struct Attached<T> {
    key: PluginKey,
    plugin: T,
    message_ids: MessageIds,
    /// True until the plugin has been notified of the connections that were open when it was attached.
    is_new: bool,
    /// The earliest time of the next `update` after the connection refused a message from the plugin.
    retry_at: Option<Instant>,
    stats: PluginStats,
}

impl<T> Attached<T> {
    fn due<P: Protocol>(&self) -> Option<Instant>
    where
        T: Plugin<P>,
    {
        if self.is_new {
            return Some(Instant::ZERO);
        }
        let due = self.plugin.poll_timeout()?;
        Some(self.retry_at.map_or(due, |retry_at| due.max(retry_at)))
    }
}

/// A hook that hosts up to `N` plugins in order: a message that one plugin drops is hidden from the later ones.
///
/// As a hook, it works with every driver. `T` may be a plugin, an enum of several, or `&RefCell<dyn Plugin<P>>`. With
/// the feature `alloc` it may be `Box<dyn Plugin<P>>` or `Rc<RefCell<dyn Plugin<P>>>`.
///
/// Plugins process messages when the application polls events. [`Plugin`] has an example.
#[derive(Debug)]
pub struct PluginHost<T, const N: usize> {
    attached: Vec<Attached<T>, N>,
    next_key: u32,
}

impl<T, const N: usize> PluginHost<T, N> {
    /// Creates a host without plugins.
    #[must_use]
    pub const fn new() -> Self {
        Self { attached: Vec::new(), next_key: 0 }
    }

    /// Attaches a plugin after the others. It is notified of the connections that are already open.
    ///
    /// # Errors
    ///
    /// [`AttachError::Full`], or [`AttachError::IdTaken`] if another plugin uses one of its message IDs. The plugin
    /// is dropped.
    pub fn attach<P: Protocol>(&mut self, plugin: T) -> Result<PluginKey, AttachError>
    where
        T: Plugin<P>,
    {
        let message_ids = plugin.message_ids();
        let taken = self.attached.iter().find_map(|other| other.message_ids.first_common(message_ids));
        if let Some(id) = taken {
            return Err(AttachError::IdTaken(id));
        }
        let key = PluginKey(self.next_key);
        let stats = PluginStats::default();
        let attached = Attached { key, plugin, message_ids, is_new: true, retry_at: None, stats };
        self.attached.push(attached).map_err(|_| AttachError::Full)?;
        self.next_key = self.next_key.wrapping_add(1);
        Ok(key)
    }

    /// Detaches and returns a plugin. Messages with its IDs are delivered to the application from then on.
    pub fn detach(&mut self, key: PluginKey) -> Option<T> {
        let at = self.attached.iter().position(|attached| attached.key == key)?;
        Some(self.attached.remove(at).plugin)
    }

    /// Returns an attached plugin, or `None` if it has been detached.
    #[must_use]
    pub fn get(&self, key: PluginKey) -> Option<&T> {
        self.attached.iter().find(|attached| attached.key == key).map(|attached| &attached.plugin)
    }

    /// Returns an attached plugin mutably. If you make it send something, run the driver afterwards.
    pub fn get_mut(&mut self, key: PluginKey) -> Option<&mut T> {
        let attached = self.attached.iter_mut().find(|attached| attached.key == key)?;
        attached.retry_at = None;
        Some(&mut attached.plugin)
    }

    /// Returns the counters of an attached plugin.
    #[must_use]
    pub fn stats(&self, key: PluginKey) -> Option<PluginStats> {
        self.attached.iter().find(|attached| attached.key == key).map(|attached| attached.stats)
    }

    /// Returns the keys of the attached plugins, in the order in which they were attached.
    pub fn keys(&self) -> impl Iterator<Item = PluginKey> {
        self.attached.iter().map(|attached| attached.key)
    }

    fn on_connected<P: Protocol>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        remote: SocketAddr,
        identity: P::Identity,
        side: Side,
    ) where
        T: Plugin<P>,
    {
        for attached in &mut self.attached {
            attached.plugin.on_connected(now, id, remote, identity, side);
        }
    }

    fn on_message<P: Protocol>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        delivery: P::Delivery,
        message: &dyn Chunks,
        first: u8,
    ) -> Verdict
    where
        T: Plugin<P>,
    {
        for attached in &mut self.attached {
            if !attached.message_ids.contains(first) && !attached.plugin.watches_all() {
                continue;
            }
            attached.stats.offered = attached.stats.offered.saturating_add(1);
            if attached.plugin.on_message(now, id, delivery, message) == Verdict::Drop {
                attached.stats.consumed = attached.stats.consumed.saturating_add(1);
                return Verdict::Drop;
            }
        }
        Verdict::Pass
    }

    /// Calls `show` with each plugin in order, until one returns `Verdict::Drop`.
    fn first_to_drop(&mut self, mut show: impl FnMut(&mut T) -> Verdict) -> Verdict {
        let is_dropped = self.attached.iter_mut().any(|attached| show(&mut attached.plugin) == Verdict::Drop);
        if is_dropped { Verdict::Drop } else { Verdict::Pass }
    }
}

impl<T, const N: usize> Default for PluginHost<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol, T: Plugin<P>, const N: usize> Hook<P> for PluginHost<T, N> {
    fn on_event(&mut self, now: Instant, event: &Event<'_, P>) -> Verdict {
        match event {
            Event::Connected { id, remote, identity, side } => {
                self.on_connected::<P>(now, *id, *remote, *identity, *side);
            }
            Event::Disconnected { id, reason, .. } => {
                for attached in &mut self.attached {
                    attached.plugin.on_disconnected(now, *id, *reason);
                }
            }
            Event::Message { id, delivery, message } => {
                let (piece, _) = message.piece(Piece::FIRST);
                let first = piece.first().copied().unwrap_or(0);
                return self.on_message::<P>(now, *id, *delivery, message, first);
            }
            Event::Receipt { id, receipt, outcome } => {
                return self.first_to_drop(|plugin| plugin.on_receipt(now, *id, *receipt, *outcome));
            }
            Event::OutOfBand { from, identity, data } => {
                return self.first_to_drop(|plugin| plugin.on_out_of_band(now, *from, *identity, data));
            }
            Event::ConnectFailed { .. }
            | Event::Refused { .. }
            | Event::Progress { .. }
            | Event::MtuChanged { .. }
            | Event::Pong { .. }
            | Event::Advertisement { .. } => {}
        }
        Verdict::Pass
    }

    fn inject(&mut self, of: Option<ConnectionId>, take: &mut dyn FnMut(Injected<'_, P>) -> bool) {
        for attached in &mut self.attached {
            let (mut is_offered, mut is_taken) = (false, false);
            attached.plugin.inject(of, &mut |injected| {
                is_offered = true;
                is_taken = take(injected);
                is_taken
            });
            attached.stats.injected = attached.stats.injected.saturating_add(u64::from(is_taken));
            if is_offered {
                return;
            }
        }
    }

    fn watches_events(&self) -> bool {
        !self.attached.is_empty()
    }

    fn on_send(&mut self, now: Instant, id: ConnectionId, message: &[u8], delivery: P::Delivery) -> Verdict {
        for attached in &mut self.attached {
            if attached.plugin.watches_all()
                && attached.plugin.on_send(now, id, message, delivery) == Verdict::Drop
            {
                attached.stats.refused = attached.stats.refused.saturating_add(1);
                return Verdict::Drop;
            }
        }
        Verdict::Pass
    }

    fn update(&mut self, now: Instant, peer: &mut Peer<'_, P>) {
        for attached in &mut self.attached {
            if core::mem::take(&mut attached.is_new) {
                show_connections(now, peer, &mut attached.plugin);
            }
            if attached.due().is_none_or(|due| due > now) {
                continue;
            }
            let mut sender = PeerSender { now, peer: &mut *peer, stats: &mut attached.stats };
            attached.plugin.update(now, &mut sender);
            let is_still_due = attached.plugin.poll_timeout().is_some_and(|due| due <= now);
            attached.retry_at = is_still_due.then_some(now + RETRY);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.attached.iter().filter_map(Attached::due).min()
    }
}

/// Notifies a plugin of all open connections.
fn show_connections<P: Protocol>(now: Instant, peer: &Peer<'_, P>, plugin: &mut impl Plugin<P>) {
    for id in peer.connections() {
        let Some(info) = peer.connection(id) else { continue };
        if info.state == ConnectionState::Connected {
            plugin.on_connected(now, id, info.remote, info.identity, info.side);
        }
    }
}

/// Sends the messages of one plugin through the peer.
struct PeerSender<'s, 'a, P: Protocol> {
    now: Instant,
    peer: &'s mut Peer<'a, P>,
    stats: &'s mut PluginStats,
}

impl<P: Protocol> MessageSender<P> for PeerSender<'_, '_, P> {
    fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        let sent = self.peer.send(self.now, id, message, delivery);
        let count = if sent.is_ok() { &mut self.stats.sent } else { &mut self.stats.unsent };
        *count = count.saturating_add(1);
        sent
    }
}

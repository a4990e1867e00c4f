//! Plugins on connections over TCP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Injected, MessageSender, Plugin, SendError, Side, Verdict};
use rakwire::raknet::{self, Delivery, Guid, RakNet, Receipt};
use rakwire_native::Clock;
use rakwire_native::endpoint::SharedHook;
use tokio::sync::Notify;

use super::connection::{Connection, DisconnectReason, Message};
use super::options::Framing;

/// The id of the connection in the plugin.
const ID: ConnectionId = ConnectionId::without_peer(0);

/// Pause before a plugin that could not send everything is called again; usually the send queue was full. Without the
/// pause, each received message would make the plugin retry.
const RETRY: Duration = Duration::from_millis(5);

/// The connection has the framing [`Framing::Stream`], and therefore no messages for a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a byte stream has no messages for a plugin; both sides need Framing::Packets")]
pub struct NoMessages;

/// A connection over TCP with its own plugin. The plugin sees it as the only connection of a peer.
///
/// The plugin runs while the application waits in [`recv`](Self::recv), so a program must wait there even if it expects
/// no messages. A plugin that identifies peers by GUID gets [`Guid::UNASSIGNED`], because TCP transmits no GUID. Clones
/// are handles of the same connection.
///
/// ```
/// use rakwire::endpoint::{ConnectionId, MessageIds, Plugin, Protocol, Side, Verdict};
/// use rakwire::{Chunks, Instant};
/// use rakwire_native::Delivery;
/// use rakwire_extras::tcp::{Endpoint, Options, PluginConnection};
///
/// /// Counts the messages of the id 0x85, and keeps them from the application.
/// #[derive(Default)]
/// struct Counter(u32);
///
/// impl<P: Protocol> Plugin<P> for Counter {
///     fn message_ids(&self) -> MessageIds {
///         MessageIds::of(&[0x85])
///     }
///
///     fn on_message(&mut self, _: Instant, _: ConnectionId, _: P::Delivery, _: &dyn Chunks) -> Verdict {
///         self.0 += 1;
///         Verdict::Drop
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// let there = PluginConnection::new(there, Side::Server, Counter::default())?;
///
/// here.send(b"\x85", Delivery::RELIABLE_ORDERED).await?;
/// here.send(b"\x86hello", Delivery::RELIABLE_ORDERED).await?;
/// assert_eq!(there.recv().await.ok_or("the client is gone")?.bytes, b"\x86hello");
/// assert_eq!(there.with(|counter| counter.0), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PluginConnection<T> {
    connection: Connection,
    attached: Arc<Attached<T>>,
}

/// State shared by all handles.
#[derive(Debug)]
struct Attached<T> {
    plugin: SharedHook<T>,
    /// The earliest time of the next call that lets the plugin send.
    retry_at: Mutex<Option<Instant>>,
    clock: Clock,
    /// Notified when the application has changed the plugin.
    changed: Notify,
    /// True once the plugin has been notified of the disconnect.
    is_ended: AtomicBool,
}

impl<T> Clone for PluginConnection<T> {
    fn clone(&self) -> Self {
        Self { connection: self.connection.clone(), attached: Arc::clone(&self.attached) }
    }
}

impl<T: Plugin<RakNet>> PluginConnection<T> {
    /// Attaches a plugin to a connection opened by `side`. Receive messages on the returned connection only.
    ///
    /// # Errors
    /// Returns [`NoMessages`] if the connection has no framing.
    pub fn new(connection: Connection, side: Side, mut plugin: T) -> Result<Self, NoMessages> {
        if connection.framing() == Framing::Stream {
            return Err(NoMessages);
        }
        let clock = Clock::start();
        plugin.on_connected(clock.now(), ID, connection.remote(), Guid::UNASSIGNED, side);
        let attached = Attached {
            plugin: SharedHook::new(plugin),
            retry_at: Mutex::new(None),
            clock,
            changed: Notify::new(),
            is_ended: AtomicBool::new(false),
        };
        Ok(Self { connection, attached: Arc::new(attached) })
    }

    /// Returns the id that the connection has in calls to the plugin.
    #[must_use]
    pub const fn id(&self) -> ConnectionId {
        ID
    }

    /// Returns the connection without its plugin, to close it or read its counters.
    ///
    /// The plugin does not see messages received on it.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Reads or changes the plugin, and sends messages that the change has queued. The closure must not wait for
    /// messages.
    ///
    /// # Panics
    /// If the closure uses this connection, or an endpoint or a connection over UDP: that might deadlock.
    #[track_caller]
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = self.attached.plugin.with(change);
        *self.retry_at() = None;
        self.attached.changed.notify_one();
        result
    }

    /// Waits until `poll` returns a value, such as the next event of the plugin.
    ///
    /// `poll` is called immediately, and again whenever the plugin may have changed. The plugin changes only while
    /// another task waits in [`recv`](Self::recv). If the future is dropped, nothing is taken.
    pub async fn next<R>(&self, poll: impl FnMut(&mut T) -> Option<R>) -> R {
        self.attached.plugin.next(poll).await
    }

    /// Sends a message like [`Connection::send`], if the plugin lets it pass.
    ///
    /// # Errors
    /// The same errors as [`Connection::send`], and [`SendError::Filtered`] if the plugin drops the message.
    pub async fn send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        if self.refuses(message, delivery) {
            return Err(SendError::Filtered);
        }
        self.connection.send(message, delivery).await
    }

    /// Waits for the next message for the application, like [`Connection::recv`].
    ///
    /// The plugin runs meanwhile. If the future is dropped earlier, no message is lost.
    pub async fn recv(&self) -> Option<Message> {
        loop {
            let due = self.update();
            if let Some(message) = self.injected() {
                return Some(message);
            }
            let received = tokio::select! {
                received = self.connection.recv() => received,
                () = self.attached.changed.notified() => continue,
                () = self.sleep_until(due) => continue,
            };
            match received {
                Some(message) if self.passes(&message) => return Some(message),
                Some(_) => {}
                None => {
                    self.end();
                    return self.injected();
                }
            }
        }
    }

    /// Returns the plugin. Its methods lock the plugin.
    fn plugin(&self) -> SharedHook<T> {
        self.attached.plugin.clone()
    }

    fn retry_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.attached.retry_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the plugin send. Returns the time at which the plugin wants to send next.
    fn update(&self) -> Option<Instant> {
        let (now, mut plugin) = (self.attached.clock.now(), self.plugin());
        let mut due = plugin_due(&plugin)?;
        // If several handles are used, only one of them calls the plugin at a time.
        let mut retry_at = self.retry_at();
        if retry_at.map_or(due, |retry_at| due.max(retry_at)) <= now {
            Plugin::<RakNet>::update(&mut plugin, now, &mut Sender(&self.connection));
            due = plugin_due(&plugin)?;
            *retry_at = (due <= now).then_some(now + RETRY);
        }
        Some(retry_at.map_or(due, |retry_at| due.max(retry_at)))
    }

    async fn sleep_until(&self, due: Option<Instant>) {
        match due.and_then(|due| self.attached.clock.deadline(due)) {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    fn refuses(&self, message: &[u8], delivery: Delivery) -> bool {
        let (now, mut plugin) = (self.attached.clock.now(), self.plugin());
        Plugin::<RakNet>::watches_all(&plugin)
            && Plugin::<RakNet>::on_send(&mut plugin, now, ID, message, delivery) == Verdict::Drop
    }

    /// Passes a message to the plugin if it has one of the plugin's ids. Returns true if the message is for the
    /// application.
    fn passes(&self, message: &Message) -> bool {
        let (now, mut plugin) = (self.attached.clock.now(), self.plugin());
        let first = message.bytes.first().copied().unwrap_or(0);
        let is_shown =
            Plugin::<RakNet>::watches_all(&plugin) || Plugin::<RakNet>::message_ids(&plugin).contains(first);
        let bytes = message.bytes.as_slice();
        !is_shown
            || Plugin::<RakNet>::on_message(&mut plugin, now, ID, message.delivery, &bytes) == Verdict::Pass
    }

    /// Returns the next message of the plugin for the application. Empty messages and those for another connection are
    /// dropped.
    fn injected(&self) -> Option<Message> {
        let mut plugin = self.plugin();
        loop {
            let (mut is_offered, mut message) = (false, None);
            Plugin::<RakNet>::inject(&mut plugin, Some(ID), &mut |injected: Injected<'_, RakNet>| {
                is_offered = true;
                let is_delivered = injected.id == ID && !injected.message.is_empty();
                message = is_delivered
                    .then(|| Message { bytes: injected.message.to_vec(), delivery: injected.delivery });
                true
            });
            if message.is_some() || !is_offered {
                return message;
            }
        }
    }

    /// Notifies the plugin of the disconnect, once.
    fn end(&self) {
        if !self.attached.is_ended.swap(true, Ordering::Relaxed) {
            let reason = self.connection.closed_reason().map_or(raknet::DisconnectReason::Local, of_raknet);
            Plugin::<RakNet>::on_disconnected(&mut self.plugin(), self.attached.clock.now(), ID, reason);
        }
    }
}

/// Returns the time at which the plugin wants to send next.
fn plugin_due<T: Plugin<RakNet>>(plugin: &SharedHook<T>) -> Option<Instant> {
    Plugin::<RakNet>::poll_timeout(plugin)
}

/// Returns the most similar reason of a RakNet connection.
const fn of_raknet(reason: DisconnectReason) -> raknet::DisconnectReason {
    match reason {
        DisconnectReason::Local => raknet::DisconnectReason::Local,
        DisconnectReason::Remote => raknet::DisconnectReason::Remote,
        DisconnectReason::TimedOut | DisconnectReason::NoFirstMessage | DisconnectReason::Lost(_) => {
            raknet::DisconnectReason::Lost
        }
        DisconnectReason::MessageTooLong(_) => raknet::DisconnectReason::MessageTooLarge,
    }
}

/// Sends messages on behalf of the plugin.
struct Sender<'c>(&'c Connection);

impl MessageSender<RakNet> for Sender<'_> {
    fn send(
        &mut self,
        id: ConnectionId,
        message: &[u8],
        delivery: Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        if id == ID { self.0.try_send(message, delivery) } else { Err(SendError::NotConnected) }
    }
}

//! Plugins on connections over TCP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Injected, MessageSender, Plugin, SendError, Side, Verdict};
use rakwire::raknet::{self, Delivery, Guid, RakNet, Receipt};
use tokio::sync::Notify;

use super::connection::{Connection, DisconnectReason, Message};
use super::options::Framing;
use crate::clock::Clock;
use crate::endpoint::hooks::{self, HookScope};
use crate::endpoint::retry;

/// The connection, as its plugin knows it.
const ID: ConnectionId = ConnectionId::without_peer(0);

/// How long a plugin waits that has more to do than it could, most often because its messages found no room: otherwise each
/// message that arrives would have it try all of them again.
const RETRY: Duration = Duration::from_millis(5);

/// A plugin was to be attached to a connection without messages: its framing is [`Framing::Stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stream of bytes has no messages for a plugin; both sides need Framing::Packets")]
pub struct NoMessages;

/// A connection over TCP with a plugin, which has it for itself: its messages are those of a connection to one peer.
///
/// The plugin acts while the application waits in [`recv`](Self::recv), so a program that expects no messages of its own waits
/// there all the same. A plugin that knows peers by their GUIDs gets [`Guid::UNASSIGNED`] here, since nothing on the wire says
/// more. Clones are handles of the same connection.
///
/// ```
/// use rakwire::endpoint::{ConnectionId, MessageIds, Plugin, Protocol, Side, Verdict};
/// use rakwire::{Chunks, Instant};
/// use rakwire_native::Delivery;
/// use rakwire_native::tcp::{Endpoint, Options, PluginConnection};
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

/// What all handles share.
#[derive(Debug)]
struct Attached<T> {
    asked: Mutex<Asked<T>>,
    clock: Clock,
    /// The application has changed the plugin.
    changed: Notify,
    /// The plugin may have changed.
    acted: Notify,
    /// The plugin was told that the connection has ended.
    is_ended: AtomicBool,
}

/// The plugin, and when it may be asked to send.
#[derive(Debug)]
struct Asked<T> {
    plugin: T,
    /// Before this time it is not asked again.
    retry_at: Option<Instant>,
}

impl<T: Plugin<RakNet>> Asked<T> {
    fn due(&self) -> Option<Instant> {
        let due = self.plugin.poll_timeout()?;
        Some(self.retry_at.map_or(due, |retry_at| due.max(retry_at)))
    }
}

impl<T> Clone for PluginConnection<T> {
    fn clone(&self) -> Self {
        Self { connection: self.connection.clone(), attached: Arc::clone(&self.attached) }
    }
}

impl<T: Plugin<RakNet>> PluginConnection<T> {
    /// Attaches a plugin to a connection that `side` has opened. Everything is received by the connection that this returns.
    ///
    /// # Errors
    /// [`NoMessages`].
    pub fn new(connection: Connection, side: Side, mut plugin: T) -> Result<Self, NoMessages> {
        if connection.framing() == Framing::Stream {
            return Err(NoMessages);
        }
        let clock = Clock::start();
        plugin.on_connected(clock.now(), ID, connection.remote(), Guid::UNASSIGNED, side);
        let asked = Mutex::new(Asked { plugin, retry_at: None });
        let (changed, acted, is_ended) = (Notify::new(), Notify::new(), AtomicBool::new(false));
        Ok(Self { connection, attached: Arc::new(Attached { asked, clock, changed, acted, is_ended }) })
    }

    /// The connection as its plugin knows it, whom calls are made to.
    #[must_use]
    pub const fn id(&self) -> ConnectionId {
        ID
    }

    /// The connection without its plugin: to close it, and for its counters. What is received by it the plugin does not see.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Reads or changes the plugin, and has it send what that made it want to send. The closure must not wait for messages.
    ///
    /// # Panics
    /// When the closure uses this connection, or an endpoint or a connection over UDP: they might wait for the closure, and the
    /// closure for them.
    #[track_caller]
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut asked = self.asked();
        let _scope = HookScope::of_with(&self.attached.asked);
        asked.retry_at = None;
        let result = change(&mut asked.plugin);
        drop(asked);
        self.attached.changed.notify_one();
        self.attached.acted.notify_waiters();
        result
    }

    /// Waits until `poll` returns something, such as the next event of the plugin. It is asked at once and whenever the plugin may have
    /// changed, which it does while another task waits in [`recv`](Self::recv). If the future is dropped, nothing is taken.
    pub async fn next<R>(&self, mut poll: impl FnMut(&mut T) -> Option<R>) -> R {
        let attempt = || {
            let mut asked = self.asked();
            let _scope = HookScope::of_with(&self.attached.asked);
            poll(&mut asked.plugin)
        };
        retry(&self.attached.acted, attempt).await
    }

    /// As [`Connection::send`], if the plugin lets the message pass.
    ///
    /// # Errors
    /// Those of [`Connection::send`], and [`SendError::Filtered`] when the plugin drops the message.
    pub async fn send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        if self.refuses(message, delivery) {
            return Err(SendError::Filtered);
        }
        self.connection.send(message, delivery).await
    }

    /// As [`Connection::recv`]: the next message that is the application's. The plugin acts meanwhile. If the future is dropped
    /// earlier, no message is lost.
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

    /// A plugin that has panicked goes on, since what it keeps is its own.
    #[track_caller]
    fn asked(&self) -> MutexGuard<'_, Asked<T>> {
        hooks::check_with(&self.attached.asked);
        self.attached.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the plugin send. Returns when it wants to do so next.
    fn update(&self) -> Option<Instant> {
        let (now, mut asked) = (self.attached.clock.now(), self.asked());
        if asked.due()? <= now {
            asked.plugin.update(now, &mut Sender(&self.connection));
            let is_still_due = asked.plugin.poll_timeout().is_some_and(|due| due <= now);
            asked.retry_at = is_still_due.then_some(now + RETRY);
            self.attached.acted.notify_waiters();
        }
        asked.due()
    }

    async fn sleep_until(&self, due: Option<Instant>) {
        match due.and_then(|due| self.attached.clock.deadline(due)) {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    fn refuses(&self, message: &[u8], delivery: Delivery) -> bool {
        let (now, plugin) = (self.attached.clock.now(), &mut self.asked().plugin);
        plugin.watches_all() && plugin.on_send(now, ID, message, delivery) == Verdict::Drop
    }

    /// Shows the plugin a message if it is one of its own.
    fn passes(&self, message: &Message) -> bool {
        let (now, plugin) = (self.attached.clock.now(), &mut self.asked().plugin);
        let first = message.bytes.first().copied().unwrap_or(0);
        let is_shown = plugin.watches_all() || plugin.message_ids().contains(first);
        let passes = !is_shown
            || plugin.on_message(now, ID, message.delivery, &message.bytes.as_slice()) == Verdict::Pass;
        self.attached.acted.notify_waiters();
        passes
    }

    /// The next message of the plugin for the application. Those that are empty or for another connection are dropped.
    fn injected(&self) -> Option<Message> {
        let mut asked = self.asked();
        loop {
            let (mut is_offered, mut message) = (false, None);
            asked.plugin.inject(Some(ID), &mut |injected: Injected<'_, RakNet>| {
                is_offered = true;
                let is_told = injected.id == ID && !injected.message.is_empty();
                message = is_told
                    .then(|| Message { bytes: injected.message.to_vec(), delivery: injected.delivery });
                true
            });
            if message.is_some() || !is_offered {
                return message;
            }
        }
    }

    /// Tells the plugin once that the connection has ended.
    fn end(&self) {
        if !self.attached.is_ended.swap(true, Ordering::Relaxed) {
            let reason = self.connection.closed_reason().map_or(raknet::DisconnectReason::Local, of_raknet);
            self.asked().plugin.on_disconnected(self.attached.clock.now(), ID, reason);
            self.attached.acted.notify_waiters();
        }
    }
}

/// The reason that says most nearly the same of a connection of RakNet.
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

/// Sends for the plugin.
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

//! Connections over TCP: the application's handle, and the state that it shares with the connection's task.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rakwire::endpoint::SendError;
use rakwire::raknet::{Delivery, Receipt};
use rakwire_native::endpoint::{self, TryRecvError};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::options::{Framing, Options};
use super::spans::ConnectionSpan;

/// A received message. Its delivery is [`Delivery::RELIABLE_ORDERED`].
pub type Message = endpoint::Message<Delivery>;

/// An open connection to a peer over TCP.
///
/// A clone is another handle of the same connection. If several tasks receive, each message goes to one of them.
/// Dropping the last handle closes the connection like [`disconnect`](Self::disconnect), without waiting.
///
/// ```
/// use rakwire_extras::tcp::{Delivery, DisconnectReason, Endpoint, Options, SendError};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// assert_eq!(here.remote(), server.local_addr());
///
/// here.send(&[0x90, 1], Delivery::RELIABLE_ORDERED).await?;
/// here.try_send(&[0x90, 2], Delivery::RELIABLE_ORDERED)?;
/// here.disconnect().await;
/// assert_eq!(here.closed_reason(), Some(DisconnectReason::Local));
/// assert_eq!(here.try_send(&[0x90, 3], Delivery::RELIABLE), Err(SendError::NotConnected));
///
/// let mut messages = Vec::new();
/// while let Some(message) = there.recv().await {
///     assert_eq!(message.delivery, Delivery::RELIABLE_ORDERED);
///     messages.push(message.bytes);
/// }
/// assert_eq!(messages, [[0x90, 1], [0x90, 2]]);
/// assert_eq!(there.stats().messages_received, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    handle: Arc<Handle>,
}

/// State shared by all handles; dropped with the last of them.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { handle: Arc::new(Handle(shared)) }
    }

    fn shared(&self) -> &Shared {
        &self.handle.0
    }

    /// Sends a message.
    ///
    /// Waits while the [send queue](super::Options::send_queue) is full. When this method returns, the message is
    /// queued but not yet delivered. If the future is dropped earlier, nothing is sent.
    ///
    /// TCP delivers everything in order, so `delivery` has no effect. The result is always `None`, because there are no
    /// receipts.
    ///
    /// # Errors
    /// - [`SendError::NotConnected`] once the connection is closed or closing
    /// - [`SendError::Empty`] for a message without bytes
    /// - [`SendError::NeverFits`] for a message that exceeds [`max_message`](super::Options::max_message)
    pub async fn send(&self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        match self.try_send(message, delivery) {
            Err(SendError::QuotaExceeded) => {}
            result => return result,
        }
        let room = self.shared().send_room.take(message.len()).await;
        self.shared().frame(message, room.ok_or(SendError::NotConnected)?).map(|()| None)
    }

    /// Sends a message if the send queue has space for it now.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send), and [`SendError::QuotaExceeded`] while the send queue is full.
    pub fn try_send(&self, message: &[u8], _delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        self.shared().try_send(message).map(|()| None)
    }

    /// Returns true if this is a handle of that connection.
    pub(super) fn is(&self, shared: &Shared) -> bool {
        core::ptr::eq(self.shared(), shared)
    }

    /// Waits for the next message.
    ///
    /// Returns `None` once the connection is closed and all messages have been received; see
    /// [`closed_reason`](Self::closed_reason). If the future is dropped earlier, no message is lost.
    pub async fn recv(&self) -> Option<Message> {
        self.shared().receive_queue.lock().await.recv().await.map(message)
    }

    /// Returns the next message, if one has arrived.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if no message is waiting, or another handle waits for it; [`TryRecvError::Closed`] once
    /// the connection is closed and all messages have been received.
    pub fn try_recv(&self) -> Result<Message, TryRecvError> {
        let mut receive_queue = self.shared().receive_queue.try_lock().map_err(|_| TryRecvError::Empty)?;
        receive_queue.try_recv().map(message).map_err(|error| match error {
            mpsc::error::TryRecvError::Empty => TryRecvError::Empty,
            mpsc::error::TryRecvError::Disconnected => TryRecvError::Closed,
        })
    }

    /// Waits until the connection is closed, and returns the reason.
    ///
    /// Messages that arrived earlier can still be received. While the [receive queue](super::Options::receive_queue) is
    /// full, the end of the stream is not detected.
    pub async fn closed(&self) -> DisconnectReason {
        self.shared().ended().await
    }

    /// Returns why the connection was closed, or `None` while it is open. [`closed`](Self::closed) waits for it.
    #[must_use]
    pub fn closed_reason(&self) -> Option<DisconnectReason> {
        match self.shared().phase() {
            Phase::Open | Phase::Closing => None,
            Phase::Ended(reason) => Some(reason),
        }
    }

    /// Closes the connection, and waits until the close is complete.
    ///
    /// Messages sent earlier are transmitted first, for at most [`close_timeout`](super::Options::close_timeout). The
    /// close continues if the future is dropped.
    pub async fn disconnect(&self) {
        self.shared().close();
        self.shared().ended().await;
    }

    /// Returns the counters of the connection, even after it was closed.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.shared().counters.read()
    }

    pub(super) fn framing(&self) -> Framing {
        self.shared().options.framing
    }

    /// Returns the address of the peer.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.shared().remote
    }
}

fn message(queued: Queued) -> Message {
    Message { bytes: queued.bytes, delivery: Delivery::RELIABLE_ORDERED }
}

/// The reason why a connection was closed.
///
/// ```
/// use rakwire_extras::tcp::{DisconnectReason, Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// here.disconnect().await;
/// assert_eq!(there.closed().await, DisconnectReason::Remote);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This side closed the connection.
    #[error("closed by this application")]
    Local,
    /// The peer closed the connection between two messages.
    #[error("closed by the peer")]
    Remote,
    /// The peer accepted no data for [`timeout`](super::Options::timeout).
    #[error("the peer did not accept data in time")]
    TimedOut,
    /// The peer opened the connection, and no message arrived within
    /// [`first_message_timeout`](super::Options::first_message_timeout).
    #[error("the peer has sent no message since it connected")]
    NoFirstMessage,
    /// The system lost the connection, or the peer closed it within a message.
    #[error("the connection was lost: {0}")]
    Lost(io::ErrorKind),
    /// The peer announced a message that is longer than [`max_message`](super::Options::max_message).
    #[error("the peer announced a message of {0} bytes, which exceeds max_message")]
    MessageTooLong(u32),
}

/// The counters of a connection since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages passed to the system.
    pub messages_sent: u64,
    /// Bytes of these messages, without headers.
    pub bytes_sent: u64,
    /// Messages received from the peer.
    pub messages_received: u64,
    /// Bytes of these messages, without headers.
    pub bytes_received: u64,
    /// Messages dropped because they arrived after [`disconnect`](super::Connection::disconnect), while the receive
    /// queue was full.
    pub messages_dropped: u64,
}

/// Bytes charged for each message in addition to its payload, so that empty messages cannot exhaust the memory.
const CHARGE: usize = 64;
/// Maximum number of bytes read by one system call. Without framing, the bytes of one call form a message.
pub(super) const READ_BUFFER: usize = 16 << 10;

/// The state of a connection, shared by its handles and its task.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) remote: SocketAddr,
    span: ConnectionSpan,
    pub(super) counters: ConnectionCounters,
    /// Received messages that the application has not read.
    pub(super) receive_queue: AsyncMutex<mpsc::UnboundedReceiver<Queued>>,
    pub(super) receive_room: Room,
    send_room: Room,
    /// The sender of the queue of outgoing messages, while the connection is open.
    send_queue: Mutex<Option<mpsc::UnboundedSender<Queued>>>,
    phase: watch::Sender<Phase>,
}

impl Shared {
    pub(super) fn new(
        options: &Options,
        remote: SocketAddr,
        span: ConnectionSpan,
        receive_queue: mpsc::UnboundedReceiver<Queued>,
        send_queue: mpsc::UnboundedSender<Queued>,
    ) -> Self {
        Self {
            remote,
            span,
            counters: ConnectionCounters::default(),
            receive_queue: AsyncMutex::new(receive_queue),
            receive_room: Room::new(options.receive_queue, options.max_message),
            send_room: Room::new(options.send_queue, options.max_message),
            send_queue: Mutex::new(Some(send_queue)),
            phase: watch::Sender::new(Phase::Open),
            options: options.clone(),
        }
    }

    /// Sends a message if the send queue has space for it now.
    pub(super) fn try_send(&self, message: &[u8]) -> Result<(), SendError> {
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        let is_short = u32::try_from(message.len()).is_ok_and(|len| len <= self.options.max_message);
        if !is_short || !self.send_room.fits(message.len()) {
            return Err(SendError::NeverFits);
        }
        if !self.is_open() {
            return Err(SendError::NotConnected);
        }
        let room = self.send_room.try_take(message.len()).ok_or(SendError::QuotaExceeded)?;
        self.frame(message, room)
    }

    /// Frames a message and queues it.
    fn frame(&self, message: &[u8], room: OwnedSemaphorePermit) -> Result<(), SendError> {
        let bytes = self.options.framing.frame(message).ok_or(SendError::NeverFits)?;
        let send_queue = self.send_queue.lock().unwrap_or_else(PoisonError::into_inner);
        let is_queued =
            send_queue.as_ref().is_some_and(|send_queue| send_queue.send(Queued { bytes, room }).is_ok());
        is_queued.then_some(()).ok_or(SendError::NotConnected)
    }

    /// Returns true if messages can be sent.
    pub(super) fn is_open(&self) -> bool {
        self.phase() == Phase::Open
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Closes the send queue: messages already in it are still sent.
    pub(super) fn close(&self) {
        self.stop_sending();
        self.phase.send_if_modified(|phase| {
            let is_open = *phase == Phase::Open;
            if is_open {
                self.span.closing();
                *phase = Phase::Closing;
            }
            is_open
        });
    }

    fn stop_sending(&self) {
        self.send_queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Records why the connection closed.
    pub(super) fn end(&self, reason: DisconnectReason) {
        self.stop_sending();
        self.send_room.free.close();
        self.span.ended(&reason);
        self.phase.send_modify(|phase| *phase = Phase::Ended(reason));
    }

    /// Waits until this side closes the connection.
    pub(super) async fn closing(&self) {
        // This cannot fail: the sender lives as long as this value.
        let _ = self.phase.subscribe().wait_for(|phase| *phase != Phase::Open).await;
    }

    pub(super) async fn ended(&self) -> DisconnectReason {
        let mut phase = self.phase.subscribe();
        loop {
            if let Phase::Ended(reason) = *phase.borrow_and_update() {
                return reason;
            }
            if phase.changed().await.is_err() {
                return DisconnectReason::Local;
            }
        }
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// This side has closed the connection, and queued messages are being sent.
    Closing,
    Ended(DisconnectReason),
}

/// The properties of a new connection.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) remote: SocketAddr,
    pub(super) span: ConnectionSpan,
    /// Time limit for the peer's first message.
    pub(super) first_message_timeout: Duration,
}

/// Bytes in a queue, and the permit for the space that they occupy until they are dropped.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) bytes: Vec<u8>,
    pub(super) room: OwnedSemaphorePermit,
}

/// The capacity of a queue.
#[derive(Debug)]
pub(super) struct Room {
    free: Arc<Semaphore>,
    size: usize,
}

impl Room {
    fn new(size: usize, max_message: u32) -> Self {
        let largest = charge(READ_BUFFER.max(max_message as usize));
        let size = size.max(largest).min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(size)), size }
    }

    /// Returns true if a message of this length can ever fit.
    const fn fits(&self, len: usize) -> bool {
        charge(len) <= self.size
    }

    /// Waits for space for a message that [fits](Self::fits).
    pub(super) async fn take(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(charge(len)).ok()?;
        self.free.clone().acquire_many_owned(permits).await.ok()
    }

    fn try_take(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        let permits = u32::try_from(charge(len)).ok()?;
        self.free.clone().try_acquire_many_owned(permits).ok()
    }
}

const fn charge(len: usize) -> usize {
    len.saturating_add(CHARGE)
}

/// The counters of a connection, as updated by its tasks.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounters {
    pub(super) messages_sent: Counter,
    pub(super) bytes_sent: Counter,
    pub(super) messages_received: Counter,
    pub(super) bytes_received: Counter,
    pub(super) messages_dropped: Counter,
}

impl ConnectionCounters {
    pub(super) fn read(&self) -> ConnectionStats {
        ConnectionStats {
            messages_sent: self.messages_sent.get(),
            bytes_sent: self.bytes_sent.get(),
            messages_received: self.messages_received.get(),
            bytes_received: self.bytes_received.get(),
            messages_dropped: self.messages_dropped.get(),
        }
    }
}

/// A counter shared by tasks.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

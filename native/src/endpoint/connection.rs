//! Connections as the application sees them: methods to send and receive, a stream of received messages, and a sink.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use rakwire::Instant;
use rakwire::endpoint::{ConnectionId, Protocol, Receipt, SendError};

use super::admission::Unaccepted;
use super::hooks;
use super::inbox::{Inbox, Message, Phase};
use super::shared::Shared;
use super::state::State;
use super::wakes::{BlockedSenders, PendingWake, WaitId, WakerId};

/// An open connection to a peer.
///
/// A clone is another handle of the same connection, for example for a task that sends while another one receives. If
/// several tasks receive, each message goes to one of them. Dropping the last handle closes the connection like
/// [`disconnect`](Self::disconnect), without waiting.
///
/// ```
/// use rakwire_native::{Delivery, DisconnectReason, Endpoint, Options, SendError};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let here = client.connect(server.local_addr()).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// assert_eq!((here.remote(), there.remote()), (server.local_addr(), client.local_addr()));
///
/// here.send(&[0x90, 1], Delivery::RELIABLE_ORDERED).await?;
/// here.try_send(&[0x90, 2], Delivery::RELIABLE_ORDERED)?;
/// assert!(here.stats().is_some_and(|stats| stats.messages_sent >= 2));
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
/// assert_eq!(there.closed_reason(), Some(DisconnectReason::Remote));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Connection<P: Protocol> {
    pub(crate) reference: ConnectionRef<P>,
    pub(crate) identity: P::Identity,
}

impl<P: Protocol> Connection<P> {
    pub(crate) fn accepted(shared: Arc<Shared<P>>, accepted: Unaccepted<P>) -> Self {
        let Unaccepted { id, identity, inbox } = accepted;
        Self { reference: ConnectionRef::new(shared, id, inbox), identity }
    }

    /// Sends a message, waiting until it can be queued.
    ///
    /// In RakNet its first byte is the message id; applications can use ids from [`id::USER`](crate::id::USER), 0x86.
    /// In the Game Protocol a message has at most 129,024 bytes.
    ///
    /// Waits while the connection's send memory is full. Acknowledgements of this connection's messages free memory for
    /// a message that fits the guaranteed share of a connection ([`Options::capacity`](super::Options::capacity)). A
    /// larger message may also have to wait for other connections that have borrowed the rest. When this method
    /// returns, the message is queued but not yet delivered. If the future is dropped earlier, nothing is sent.
    ///
    /// With a RakNet reliability with receipt, returns the receipt;
    /// [`recv_receipt`](crate::raknet::Connection::recv_receipt) later returns the outcome.
    ///
    /// # Errors
    /// - [`SendError::NotConnected`] once the connection is closed or closing
    /// - [`SendError::Empty`] for a message without bytes
    /// - [`SendError::ReservedId`] for a RakNet message with an id below 0x1B
    /// - [`SendError::TooLong`] for a Game Protocol message of more than 129,024 bytes
    /// - [`SendError::NeverFits`] for a message that exceeds the memory of a connection
    /// - [`SendError::Filtered`] if a hook drops the message
    pub async fn send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        match self.try_send(message, delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {}
            result => return result,
        }
        // Boxed to keep this future small, because it rarely has to wait.
        Box::pin(self.reference.send_when_room(Bytes::Borrowed(message), delivery)).await
    }

    /// Sends a message like [`send`](Self::send), without copying a large one.
    ///
    /// A RakNet message of 64 KiB or more is sent from this vector, which is kept until the peer has acknowledged all
    /// of it. Such a message takes one block of memory per part, and none for its bytes; the maximum length is the same
    /// as with a copy. A smaller message, or one of the Game Protocol, is copied.
    ///
    /// If the future is dropped before the message is queued, or returns an error, the vector is dropped.
    /// [`try_send_vec`](Self::try_send_vec) leaves it to the caller.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send).
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// # let here = client.connect(server.local_addr()).await?;
    /// # let there = server.accept().await.ok_or("the server is closed")?;
    /// let level = vec![0x90; 200_000];
    /// here.send_vec(level, Delivery::RELIABLE_ORDERED).await?;
    /// let received = there.recv().await.ok_or("the connection has ended")?;
    /// assert_eq!(received.bytes, [0x90; 200_000]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_vec(
        &self,
        mut message: Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        match self.reference.try_send(Bytes::Owned(&mut message), delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {}
            result => return result,
        }
        Box::pin(self.reference.send_when_room(Bytes::Owned(&mut message), delivery)).await
    }

    /// Sends a message if it can be queued now.
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send), and [`SendError::QuotaExceeded`] or [`SendError::PoolExhausted`] while
    /// the memory is full. Retry once earlier messages have been acknowledged.
    pub fn try_send(&self, message: &[u8], delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.reference.try_send(Bytes::Borrowed(message), delivery)
    }

    /// Sends a message like [`send_vec`](Self::send_vec) if it can be queued now.
    ///
    /// On success the message is taken out of the vector; otherwise the vector is unchanged.
    ///
    /// # Errors
    /// The same errors as [`try_send`](Self::try_send).
    pub fn try_send_vec(
        &self,
        message: &mut Vec<u8>,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        self.reference.try_send(Bytes::Owned(message), delivery)
    }

    /// Waits for the next message.
    ///
    /// Returns `None` once the connection is closed and all messages have been received; see
    /// [`closed_reason`](Self::closed_reason). If the future is dropped earlier, no message is lost.
    pub async fn recv(&self) -> Option<Message<P::Delivery>> {
        self.reference.inbox.recv().await
    }

    /// Returns the next message, if one has arrived.
    ///
    /// Returns only messages that the tasks of the endpoint have already processed: this call does not read the socket.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if no message is waiting; [`TryRecvError::Closed`] once the connection is closed and all
    /// messages have been received.
    ///
    /// ```
    /// use rakwire_native::endpoint::TryRecvError;
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(connection.try_recv(), Err(TryRecvError::Empty));
    /// connection.disconnect().await;
    /// assert_eq!(connection.try_recv(), Err(TryRecvError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_recv(&self) -> Result<Message<P::Delivery>, TryRecvError> {
        match self.reference.inbox.try_recv() {
            Some(Some(message)) => Ok(message),
            Some(None) => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Waits until the connection is closed by either side, or the peer is lost, and returns the reason.
    ///
    /// Messages that arrived earlier can still be received.
    ///
    /// ```
    /// use rakwire_native::{DisconnectReason, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let here = client.connect(server.local_addr()).await?;
    /// let there = server.accept().await.ok_or("the server is closed")?;
    /// let watch = there.clone();
    /// let ended = tokio::spawn(async move { watch.closed().await });
    /// here.disconnect().await;
    /// assert_eq!(ended.await?, DisconnectReason::Remote);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn closed(&self) -> P::DisconnectReason {
        self.reference.inbox.closed().await
    }

    /// Returns why the connection was closed, or `None` while it is open. [`closed`](Self::closed) waits for it.
    #[must_use]
    pub fn closed_reason(&self) -> Option<P::DisconnectReason> {
        match self.reference.inbox.phase() {
            // A `Connection` exists only after it has been open.
            Phase::Connecting | Phase::Connected | Phase::Failed(_) => None,
            Phase::Disconnected(reason) => Some(reason),
        }
    }

    /// Closes the connection, and waits until the close is complete.
    ///
    /// Reliable messages sent earlier are delivered first, for at most the `close_timeout` of the configuration; then
    /// the peer is notified. The close continues if the future is dropped.
    pub async fn disconnect(&self) {
        let Self { reference, .. } = self;
        reference.shared.act(|state, now| state.disconnect(now, reference.id));
        reference.inbox.ended().await;
    }

    /// Returns the maximum message length in bytes for [`send`](Self::send), or `None` once the connection is closed.
    ///
    /// A peer with the same configuration and memory can receive a message of this length. By default it is 4,000,000
    /// in RakNet and 129,024 in the Game Protocol. See
    /// [`Peer::max_message_len`](rakwire::endpoint::Peer::max_message_len) for details.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(connection.max_message_len(), Some(4_000_000));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn max_message_len(&self) -> Option<usize> {
        self.reference.shared.act(|state, _| state.hooked.peer.max_message_len(self.reference.id))
    }

    /// Sends a final message and closes the connection.
    ///
    /// This message and earlier reliable messages are delivered before the peer is notified of the disconnect. The call
    /// waits until the message can be queued, and then for the close, like [`disconnect`](Self::disconnect).
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// # let here = client.connect(server.local_addr()).await?;
    /// # let there = server.accept().await.ok_or("the server is closed")?;
    /// there.disconnect_with(b"\x90you were kicked", Delivery::RELIABLE_ORDERED).await?;
    /// assert_eq!(here.recv().await.ok_or("it came")?.bytes, b"\x90you were kicked");
    /// assert!(here.recv().await.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The same errors as [`send`](Self::send). The connection is closed in any case.
    pub async fn disconnect_with(&self, message: &[u8], delivery: P::Delivery) -> Result<(), SendError> {
        let sent = self.send(message, delivery).await;
        self.disconnect().await;
        sent.map(|_| ())
    }

    /// Returns the counters and measurements of the connection, or `None` once it is closed.
    #[must_use]
    pub fn stats(&self) -> Option<P::ConnectionStats> {
        let stats =
            self.reference.shared.act(|state, _| state.hooked.peer.connection_stats(self.reference.id));
        // A closed Game Protocol connection keeps its slot for a while to answer late datagrams.
        stats.filter(|_| self.closed_reason().is_none())
    }

    /// Returns the span of this connection (feature `tracing`).
    ///
    /// Its fields are the protocol, the peer's address, the local side, and in RakNet the peer's GUID. Enter it to
    /// record an application's own events inside it.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    /// use tracing::Instrument;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// let span = connection.span().clone();
    /// let play = async move {
    ///     tracing::info!("the game begins");
    ///     connection.disconnect().await;
    /// };
    /// tokio::spawn(play.instrument(span)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn span(&self) -> &tracing::Span {
        &self.reference.inbox.span.0
    }

    /// Returns the id that identifies the connection in hooks.
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.reference.id
    }

    /// Returns the address of the peer.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.reference.inbox.remote
    }
}

/// The reason why [`Connection::try_recv`](super::Connection::try_recv) returned no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryRecvError {
    /// No unread message is available.
    #[error("no message is waiting")]
    Empty,
    /// The connection is closed and all messages have been received.
    #[error("the connection has ended")]
    Closed,
}

/// The application's reference to a connection. Dropping the last reference closes the connection.
#[derive(Debug)]
pub(crate) struct ConnectionRef<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) id: ConnectionId,
    pub(crate) inbox: Arc<Inbox<P>>,
}

impl<P: Protocol> ConnectionRef<P> {
    pub(crate) fn new(shared: Arc<Shared<P>>, id: ConnectionId, inbox: Arc<Inbox<P>>) -> Self {
        inbox.add_handle();
        Self { shared, id, inbox }
    }

    /// Returns the identity of the peer, or `None` once the connection is closed.
    pub(crate) fn identity(&self) -> Option<P::Identity> {
        self.shared.lock().hooked.peer.connection(self.id).map(|connection| connection.identity)
    }

    /// Sends a message if it can be queued now.
    fn try_send(&self, mut message: Bytes<'_>, delivery: P::Delivery) -> Result<Option<Receipt>, SendError> {
        self.try_send_or(&mut message, delivery, |_| {})
    }

    /// Sends a message if it can be queued now; otherwise calls `otherwise` before the lock is released. The driver is
    /// woken only if the message was queued: a blocked sender waits for the driver, so the two would wake each other
    /// forever.
    fn try_send_or(
        &self,
        message: &mut Bytes<'_>,
        delivery: P::Delivery,
        otherwise: impl FnOnce(&mut BlockedSenders),
    ) -> Result<Option<Receipt>, SendError> {
        let io = &self.shared.io;
        let mut state = self.shared.lock();
        if let Some(woken_at) = state.pending_wake.as_mut().and_then(PendingWake::share) {
            let sent = message.send(&mut state, woken_at, self.id, delivery);
            if !has_no_room(&sent) {
                return sent;
            }
        }
        let now = state.catch_up(&io.arrival_queue, &io.clock);
        let sent = message.send(&mut state, now, self.id, delivery);
        if has_no_room(&sent) {
            otherwise(&mut state.dispatcher.blocked_senders);
        }
        if sent.is_ok() {
            state.send_inline(now);
            state.pending_wake = Some(PendingWake::new(now));
        }
        drop(state);
        if sent.is_ok() {
            io.wake.notify();
        }
        sent
    }

    /// Sends a message if it can be queued now; otherwise registers the task to be woken when it can. `wait` identifies
    /// the registration; a caller that stops polling must [remove it](Self::stop_waiting).
    pub(crate) fn poll_send(
        &self,
        cx: &Context<'_>,
        wait: &mut Option<WaitId>,
        message: &mut Bytes<'_>,
        delivery: P::Delivery,
    ) -> Poll<Result<Option<Receipt>, SendError>> {
        self.stop_waiting(wait);
        let sent = self.try_send_or(message, delivery, |senders| {
            *wait = Some(senders.register(self.id, cx.waker()));
        });
        if has_no_room(&sent) { Poll::Pending } else { Poll::Ready(sent) }
    }

    /// Cancels the registration of a blocked task.
    pub(crate) fn stop_waiting(&self, wait: &mut Option<WaitId>) {
        let Some(wait) = wait.take() else { return };
        let id = self.id;
        if hooks::forbids(self.shared.hook) {
            self.shared.act_on_drop(move |state, _| state.dispatcher.blocked_senders.wake_one(id, wait));
            return;
        }
        let removed = self.shared.lock().dispatcher.blocked_senders.remove(id, wait);
        // A waker may own its task, and dropping that needs the lock.
        drop(removed);
    }

    /// Sends a message as soon as it can be queued.
    fn send_when_room<'m>(&self, message: Bytes<'m>, delivery: P::Delivery) -> SendWhenRoom<'_, 'm, P> {
        SendWhenRoom { reference: self, message, delivery, wait: None }
    }
}

impl<P: Protocol> Clone for ConnectionRef<P> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), self.id, Arc::clone(&self.inbox))
    }
}

impl<P: Protocol> Drop for ConnectionRef<P> {
    fn drop(&mut self) {
        if self.inbox.drop_handle() {
            let id = self.id;
            self.shared.act_on_drop(move |state, now| state.abandon(now, id));
        }
    }
}

/// The bytes of a message to send.
#[derive(Debug)]
pub(crate) enum Bytes<'m> {
    /// Borrowed from the application, and copied.
    Borrowed(&'m [u8]),
    /// Taken out of the vector if the message is accepted.
    Owned(&'m mut Vec<u8>),
}

impl Bytes<'_> {
    fn send<P: Protocol>(
        &mut self,
        state: &mut State<P>,
        now: Instant,
        id: ConnectionId,
        delivery: P::Delivery,
    ) -> Result<Option<Receipt>, SendError> {
        match self {
            Self::Borrowed(bytes) => state.hooked.send(now, id, bytes, delivery),
            Self::Owned(bytes) => state.hooked.send_vec(now, id, bytes, delivery),
        }
    }
}

const fn has_no_room(sent: &Result<Option<Receipt>, SendError>) -> bool {
    matches!(sent, Err(SendError::QuotaExceeded | SendError::PoolExhausted))
}

/// The future that sends a message as soon as it can be queued. Its task is woken only when the connection has memory
/// again.
#[derive(Debug)]
struct SendWhenRoom<'c, 'm, P: Protocol> {
    reference: &'c ConnectionRef<P>,
    message: Bytes<'m>,
    delivery: P::Delivery,
    /// The registration of the waiting task; `None` only if it is not registered.
    wait: Option<WaitId>,
}

impl<P: Protocol> Unpin for SendWhenRoom<'_, '_, P> {}

impl<P: Protocol> Future for SendWhenRoom<'_, '_, P> {
    type Output = Result<Option<Receipt>, SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { reference, message, delivery, wait } = &mut *self;
        reference.poll_send(cx, wait, message, *delivery)
    }
}

impl<P: Protocol> Drop for SendWhenRoom<'_, '_, P> {
    fn drop(&mut self) {
        self.reference.stop_waiting(&mut self.wait);
    }
}

/// The messages of a connection as a [`Stream`], created by [`Connection::messages`]. The stream ends when the
/// connection is closed.
#[derive(Debug)]
pub struct Messages<P: Protocol> {
    connection: Connection<P>,
    waker: Option<WakerId>,
}

/// A [`Sink`] for the messages of a connection, created by [`Connection::message_sink`].
///
/// An item is the bytes of a message and its delivery. A message that cannot be queued yet stays in the sink. Flushing
/// waits until the endpoint has queued it, not until it is delivered. Closing the sink closes the connection like
/// [`Connection::disconnect`], and waits for that.
pub struct MessageSink<P: Protocol, B> {
    connection: Connection<P>,
    /// The message that could not be queued yet.
    unsent: Option<(B, P::Delivery)>,
    wait: Option<WaitId>,
    waker: Option<WakerId>,
    is_closing: bool,
}

impl<P: Protocol> Connection<P> {
    /// Returns the messages of this connection as a [`Stream`], which counts as another handle.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use std::pin::Pin;
    ///
    /// use futures_core::Stream;
    /// use futures_sink::Sink;
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// let mut sink = connection.message_sink();
    /// poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)).await?;
    /// Pin::new(&mut sink).start_send((b"\x90state", Delivery::RELIABLE))?;
    /// poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)).await?;
    ///
    /// let mut messages = server.accept().await.ok_or("the server is closed")?.messages();
    /// let message = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await;
    /// assert_eq!(message.map(|message| message.bytes), Some(b"\x90state".to_vec()));
    /// assert_eq!(poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await, None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn messages(&self) -> Messages<P> {
        Messages { connection: self.clone(), waker: None }
    }

    /// Returns a [`Sink`] of messages for this connection, which counts as another handle.
    ///
    /// [`messages`](Self::messages) has an example.
    #[must_use]
    pub fn message_sink<B: AsRef<[u8]>>(&self) -> MessageSink<P, B> {
        MessageSink { connection: self.clone(), unsent: None, wait: None, waker: None, is_closing: false }
    }
}

impl<P: Protocol> Unpin for Messages<P> {}

impl<P: Protocol> Stream for Messages<P> {
    type Item = Message<P::Delivery>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { connection, waker } = &mut *self;
        connection.reference.inbox.poll_recv(cx, waker)
    }
}

impl<P: Protocol> Drop for Messages<P> {
    fn drop(&mut self) {
        self.connection.reference.inbox.forget(&mut self.waker);
    }
}

impl<P: Protocol, B> Unpin for MessageSink<P, B> {}

impl<P: Protocol, B: AsRef<[u8]>> Sink<(B, P::Delivery)> for MessageSink<P, B> {
    type Error = SendError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let Self { connection, unsent, wait, .. } = &mut *self;
        let Some((message, delivery)) = unsent else { return Poll::Ready(Ok(())) };
        let sent = ready!(connection.reference.poll_send(
            cx,
            wait,
            &mut Bytes::Borrowed(message.as_ref()),
            *delivery
        ));
        *unsent = None;
        Poll::Ready(sent.map(drop))
    }

    fn start_send(mut self: Pin<&mut Self>, item: (B, P::Delivery)) -> Result<(), SendError> {
        let (message, delivery) = item;
        match self.connection.try_send(message.as_ref(), delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                self.unsent = Some((message, delivery));
                Ok(())
            }
            result => result.map(drop),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_ready(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        ready!(self.as_mut().poll_ready(cx))?;
        let Self { connection, waker, is_closing, .. } = &mut *self;
        let reference = &connection.reference;
        if !*is_closing {
            *is_closing = true;
            reference.shared.act(|state, now| state.disconnect(now, reference.id));
        }
        reference.inbox.poll_ended(cx, waker).map(Ok)
    }
}

impl<P: Protocol, B> Drop for MessageSink<P, B> {
    fn drop(&mut self) {
        let Self { connection, wait, waker, .. } = self;
        connection.reference.stop_waiting(wait);
        connection.reference.inbox.forget(waker);
    }
}

impl<P: Protocol, B> fmt::Debug for MessageSink<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_waiting = self.unsent.is_some();
        f.debug_struct("MessageSink").field("is_waiting", &is_waiting).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rakwire::game_protocol::GameProtocol;
    use rakwire::raknet::RakNet;

    use super::super::hooks::BoxedHook;
    use super::super::options::Options;
    use super::*;
    use crate::host::Clock;

    /// A wake would make the driver and the sender wake each other endlessly while the peer acknowledges nothing.
    async fn a_failed_send_does_not_wake_the_driver<P: Protocol>() {
        let shared =
            Arc::new(Shared::<P>::new(Options::new(P::config([7; 32])), BoxedHook::NONE, Clock::start()));
        let remote = ([127, 0, 0, 1], 9).into();
        let opened = shared.act(|state, now| state.connect(now, remote, &P::ConnectOptions::default()));
        let (id, inbox) = opened.expect("space for a connection");
        let connection = ConnectionRef::new(Arc::clone(&shared), id, inbox);
        let wakes = || tokio::time::timeout(Duration::ZERO, shared.io.wake.notified());
        assert!(wakes().await.is_ok(), "an attempt to connect wakes the driver");
        let sent = connection.try_send(Bytes::Borrowed(&[0x86]), P::Delivery::default());
        assert_eq!(sent, Err(SendError::NotConnected));
        assert!(wakes().await.is_err());
    }

    #[tokio::test]
    async fn a_failed_raknet_send_does_not_wake_the_driver() {
        a_failed_send_does_not_wake_the_driver::<RakNet>().await;
    }

    #[tokio::test]
    async fn a_failed_game_protocol_send_does_not_wake_the_driver() {
        a_failed_send_does_not_wake_the_driver::<GameProtocol>().await;
    }
}

//! The inbox of a connection: its phase and its received messages. The inboxes of an endpoint are stored by connection
//! slot.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use rakwire::endpoint::{ConnectionId, Outcome, Progress, Protocol, Receipt};

use super::telemetry::ConnectionSpan;
use super::wakes::{WakerId, Wakers};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes charged for each message in addition to its payload.
const OVERHEAD: usize = 64;
/// Maximum number of large messages with unread progress; the progress of a further message replaces the oldest.
const MAX_PROGRESS: usize = 64;

/// A received message. `D` is its delivery: in RakNet a reliability and a channel, in the Game Protocol a reliability.
///
/// [`Connection`](super::Connection) has an example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<D> {
    /// The bytes; in RakNet the first one is the message id.
    ///
    /// The bytes are copied once, from the memory of the connection; RakNet messages of 64 KiB or more are assembled in
    /// this vector. `Bytes::from(message)` of the crate `bytes` takes them without another copy (feature `bytes`).
    pub bytes: Vec<u8>,
    /// The delivery with which the message was sent. RakNet does not transmit the priority, so it has its default value
    /// here.
    pub delivery: D,
}

/// Takes the bytes without a copy (feature `bytes`).
///
/// ```
/// use bytes::Bytes;
/// use rakwire_native::{Delivery, Message};
///
/// let message = Message { bytes: vec![0x86, 1, 2], delivery: Delivery::RELIABLE };
/// let memory = message.bytes.as_ptr();
/// let bytes = Bytes::from(message);
/// assert_eq!((bytes.as_ptr(), &bytes[..]), (memory, &[0x86, 1, 2][..]));
/// ```
#[cfg(feature = "bytes")]
impl<D> From<Message<D>> for bytes::Bytes {
    fn from(message: Message<D>) -> Self {
        Self::from(message.bytes)
    }
}

/// The phase of a connection, as its application sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase<P: Protocol> {
    Connecting,
    Connected,
    Failed(P::ConnectFailure),
    Disconnected(P::DisconnectReason),
}

/// Passes data received by one connection from the driver to the application. Most connections of a large server are
/// idle, and the driver allocates nothing else for an idle connection.
#[derive(Debug)]
pub(crate) struct Inbox<P: Protocol> {
    pub(crate) remote: SocketAddr,
    pub(crate) span: ConnectionSpan,
    inner: Mutex<Inner<P>>,
}

#[derive(Debug)]
struct Inner<P: Protocol> {
    /// Allocated when a message arrives, or if the peer announced addresses.
    arrived: Option<Box<Arrived<P>>>,
    phase: Phase<P>,
    wakers: Wakers,
    /// Number of handles that the application has. A count behind the lock takes no extra memory, unlike an atomic
    /// beside it.
    handles: u32,
}

/// State that an idle connection rarely needs.
#[derive(Debug)]
struct Arrived<P: Protocol> {
    /// The addresses that the peer has announced as its own.
    internal_addresses: Box<[SocketAddr]>,
    /// Allocated when a message arrives.
    queue: Option<Box<ReceiveQueue<P>>>,
}

impl<P: Protocol> Default for Arrived<P> {
    fn default() -> Self {
        Self { internal_addresses: Box::default(), queue: None }
    }
}

/// Items that the application has not read yet.
#[derive(Debug)]
struct ReceiveQueue<P: Protocol> {
    messages: VecDeque<Message<P::Delivery>>,
    bytes: usize,
    /// Outcomes of messages sent with a receipt. The application bounds their number, because it requests each receipt.
    receipts: VecDeque<(Receipt, Outcome)>,
    /// The latest progress of each large message.
    progress: VecDeque<Progress>,
    /// The MTU, if it has changed since it was last read.
    new_mtu: Option<u16>,
}

impl<P: Protocol> Default for ReceiveQueue<P> {
    fn default() -> Self {
        let (messages, receipts, progress) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { messages, bytes: 0, receipts, progress, new_mtu: None }
    }
}

impl<P: Protocol> ReceiveQueue<P> {
    fn pop_message(&mut self) -> Option<Message<P::Delivery>> {
        let message = self.messages.pop_front()?;
        self.bytes -= size(&message);
        Some(message)
    }
}

/// Returns the bytes that a message is charged.
const fn size<D>(message: &Message<D>) -> usize {
    // A large message keeps the vector in which it was assembled, which may be slightly longer.
    message.bytes.capacity() + OVERHEAD
}

impl<P: Protocol> Inner<P> {
    /// Takes the next item from the queue; `Some(None)` if the connection is closed and none is left.
    fn pop<T>(&mut self, pop: impl FnOnce(&mut ReceiveQueue<P>) -> Option<T>) -> Option<Option<T>> {
        let found = self.arrived.as_mut().and_then(|arrived| arrived.queue.as_deref_mut()).and_then(pop);
        match (found, self.phase) {
            (None, Phase::Connecting | Phase::Connected) => None,
            (found, _) => Some(found),
        }
    }
}

impl<P: Protocol> Inbox<P> {
    pub(crate) fn new(remote: SocketAddr, phase: Phase<P>, span: ConnectionSpan) -> Self {
        let inner = Inner { arrived: None, phase, wakers: Wakers::default(), handles: 0 };
        Self { remote, span, inner: Mutex::new(inner) }
    }

    /// Adds a handle. The count cannot overflow: 2^32 handles would take 128 GiB.
    pub(crate) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Removes a handle. Returns true if it was the last one.
    pub(crate) fn drop_handle(&self) -> bool {
        let mut inner = self.lock();
        inner.handles -= 1;
        inner.handles == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner<P>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. Returns true if the queue is now full: its messages take more than `limit` bytes.
    pub(crate) fn push(&self, message: Message<P::Delivery>, limit: usize) -> bool {
        self.update_queue(|queue| {
            queue.bytes += size(&message);
            queue.messages.push_back(message);
            queue.bytes > limit
        })
    }

    fn update_queue<R>(&self, update: impl FnOnce(&mut ReceiveQueue<P>) -> R) -> R {
        self.update(|inner| update(inner.arrived.get_or_insert_default().queue.get_or_insert_default()))
    }

    /// Applies a change and wakes all waiting tasks.
    fn update<R>(&self, update: impl FnOnce(&mut Inner<P>) -> R) -> R {
        let mut inner = self.lock();
        let result = update(&mut inner);
        let wakers = inner.wakers.take();
        drop(inner);
        wakers.wake();
        result
    }

    /// Returns true if the application has read a full queue down to half of `limit`, so that the peer may send again.
    pub(crate) fn has_room(&self, limit: usize) -> bool {
        let inner = self.lock();
        let queue = inner.arrived.as_ref().and_then(|arrived| arrived.queue.as_ref());
        let bytes = queue.map_or(0, |queue| queue.bytes);
        bytes <= limit / 2
    }

    pub(crate) fn phase(&self) -> Phase<P> {
        self.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: Phase<P>) {
        self.update(|inner| inner.phase = phase);
    }

    /// Polls for the next message; `None` once the connection is closed and all messages have been read. `waker` is the
    /// registration of the last poll; a caller that stops polling must [forget](Self::forget) it.
    pub(crate) fn poll_recv(
        &self,
        cx: &Context<'_>,
        waker: &mut Option<WakerId>,
    ) -> Poll<Option<Message<P::Delivery>>> {
        self.poll(cx, waker, |inner| inner.pop(ReceiveQueue::pop_message))
    }

    /// Polls until the connection is closed, like [`poll_recv`](Self::poll_recv).
    pub(crate) fn poll_ended(&self, cx: &Context<'_>, waker: &mut Option<WakerId>) -> Poll<()> {
        self.poll(cx, waker, |inner| has_ended(inner.phase).then_some(()))
    }

    /// Polls until `found` returns a value.
    fn poll<T>(
        &self,
        cx: &Context<'_>,
        waker: &mut Option<WakerId>,
        found: impl FnOnce(&mut Inner<P>) -> Option<T>,
    ) -> Poll<T> {
        let mut inner = self.lock();
        let found = found(&mut inner);
        let removed = waker.take().map(|id| inner.wakers.remove(id));
        if found.is_none() {
            *waker = Some(inner.wakers.register(cx.waker()));
        }
        drop(inner);
        // Dropping a waker may drop its task, and the task's futures may lock this inbox.
        drop(removed);
        found.map_or(Poll::Pending, Poll::Ready)
    }

    /// Removes the waker of a caller that stops polling.
    pub(crate) fn forget(&self, waker: &mut Option<WakerId>) {
        let Some(id) = waker.take() else { return };
        let removed = self.lock().wakers.remove(id);
        drop(removed);
    }

    /// Marks the connection as open; `addresses` are those that the peer announced as its own.
    pub(crate) fn set_connected(&self, addresses: Box<[SocketAddr]>) {
        self.update(|inner| {
            inner.phase = Phase::Connected;
            if !addresses.is_empty() {
                inner.arrived.get_or_insert_default().internal_addresses = addresses;
            }
        });
    }

    /// Returns the addresses that the peer announced as its own.
    pub(crate) fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.lock().arrived.as_ref().map_or_else(Vec::new, |arrived| arrived.internal_addresses.to_vec())
    }

    /// Waits for the next message; `None` once the connection is closed and all messages have been read.
    pub(crate) fn recv(&self) -> impl Future<Output = Option<Message<P::Delivery>>> {
        self.wait_for(|inner| inner.pop(ReceiveQueue::pop_message))
    }

    /// Returns the next message, if there is one; `Some(None)` once the connection is closed and all messages have been
    /// read.
    pub(crate) fn try_recv(&self) -> Option<Option<Message<P::Delivery>>> {
        self.lock().pop(ReceiveQueue::pop_message)
    }

    pub(crate) fn push_receipt(&self, receipt: Receipt, outcome: Outcome) {
        self.update_queue(|queue| queue.receipts.push_back((receipt, outcome)));
    }

    /// Waits for the next receipt; `None` once the connection is closed and all receipts have been read.
    pub(crate) fn recv_receipt(&self) -> impl Future<Output = Option<(Receipt, Outcome)>> {
        self.wait_for(|inner| inner.pop(|queue| queue.receipts.pop_front()))
    }

    /// Adds the progress of a message, which replaces its earlier progress.
    pub(crate) fn push_progress(&self, progress: Progress) {
        self.update_queue(|queue| {
            let same =
                |known: &Progress| known.direction == progress.direction && known.message == progress.message;
            queue.progress.retain(|known| !same(known));
            if queue.progress.len() == MAX_PROGRESS {
                queue.progress.pop_front();
            }
            queue.progress.push_back(progress);
        });
    }

    /// Waits for the next progress; `None` once the connection is closed and all progress has been read.
    pub(crate) fn recv_progress(&self) -> impl Future<Output = Option<Progress>> {
        self.wait_for(|inner| inner.pop(|queue| queue.progress.pop_front()))
    }

    pub(crate) fn set_new_mtu(&self, mtu: u16) {
        self.update_queue(|queue| queue.new_mtu = Some(mtu));
    }

    /// Waits until the MTU has changed; `None` once the connection is closed and every change has been read.
    pub(crate) fn new_mtu(&self) -> impl Future<Output = Option<u16>> {
        self.wait_for(|inner| inner.pop(|queue| queue.new_mtu.take()))
    }

    /// Waits until the connection is open. The error is `None` if the connection opened and closed before this call
    /// observed it.
    pub(crate) fn opened(&self) -> impl Future<Output = Result<(), Option<P::ConnectFailure>>> {
        self.wait_for(|inner| match inner.phase {
            Phase::Connecting => None,
            Phase::Connected => Some(Ok(())),
            Phase::Failed(failure) => Some(Err(Some(failure))),
            Phase::Disconnected(_) => Some(Err(None)),
        })
    }

    /// Waits until the connection is closed.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> {
        self.wait_for(|inner| has_ended(inner.phase).then_some(()))
    }

    /// Waits until a connection that was open is closed, and returns the reason.
    pub(crate) fn closed(&self) -> impl Future<Output = P::DisconnectReason> {
        self.wait_for(|inner| match inner.phase {
            Phase::Connecting | Phase::Connected | Phase::Failed(_) => None,
            Phase::Disconnected(reason) => Some(reason),
        })
    }

    /// Waits until `poll` returns a value.
    fn wait_for<T, F: FnMut(&mut Inner<P>) -> Option<T> + Unpin>(&self, poll: F) -> Wait<'_, P, F> {
        Wait { inbox: self, poll, waker: None }
    }
}

const fn has_ended<P: Protocol>(phase: Phase<P>) -> bool {
    matches!(phase, Phase::Failed(_) | Phase::Disconnected(_))
}

/// The future of [`Inbox::wait_for`].
struct Wait<'i, P: Protocol, F> {
    inbox: &'i Inbox<P>,
    poll: F,
    /// The registration of the last poll. It may have been taken since.
    waker: Option<WakerId>,
}

impl<P: Protocol, T, F: FnMut(&mut Inner<P>) -> Option<T> + Unpin> Future for Wait<'_, P, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { inbox, poll, waker } = &mut *self;
        inbox.poll(cx, waker, poll)
    }
}

impl<P: Protocol, F> Drop for Wait<'_, P, F> {
    fn drop(&mut self) {
        self.inbox.forget(&mut self.waker);
    }
}

/// The inboxes of the connections to which the application has handles. The table extends to the highest slot ever
/// used, so that a look-up takes constant time.
#[derive(Debug)]
pub(crate) struct Inboxes<P: Protocol>(Vec<Option<(ConnectionId, Arc<Inbox<P>>)>>);

impl<P: Protocol> Inboxes<P> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Stores the inbox of a connection, replacing that of an earlier connection in the same slot.
    pub(crate) fn insert(&mut self, id: ConnectionId, inbox: Arc<Inbox<P>>) {
        let slot = usize::from(id.slot());
        if slot >= self.0.len() {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some((id, inbox));
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Arc<Inbox<P>>> {
        let (owner, inbox) = self.0.get(usize::from(id.slot()))?.as_ref()?;
        (*owner == id).then_some(inbox)
    }

    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Arc<Inbox<P>>> {
        let place = self.0.get_mut(usize::from(id.slot()))?;
        place.take_if(|(owner, _)| *owner == id).map(|(_, inbox)| inbox)
    }
}

#[cfg(test)]
mod tests {
    use rakwire::Instant;
    use rakwire::endpoint::Capacity;
    use rakwire::raknet::{Config, Direction, DisconnectReason, Peer, RakNet};

    use super::*;

    /// Tokio aligns a task to 128 bytes. With glibc, a task of 256 bytes and an inbox of at most 104 bytes, with its
    /// reference counts, together take 384 bytes. A larger inbox would make that 512 bytes per connection of a server
    /// with one task per connection.
    #[cfg(all(target_pointer_width = "64", not(feature = "tracing")))]
    #[test]
    fn an_inbox_takes_at_most_104_bytes() {
        assert!(size_of::<Inbox<RakNet>>() + 2 * size_of::<usize>() <= 104);
    }

    #[tokio::test]
    async fn a_message_wakes_all_waiting_tasks_and_goes_to_one() {
        let inbox =
            Inbox::<RakNet>::new(([127, 0, 0, 1], 1).into(), Phase::Connected, ConnectionSpan::default());
        let message = Message { bytes: vec![0x86], delivery: Default::default() };
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, inbox.recv()).await;
        assert!(given_up.is_err());
        let send = async {
            tokio::task::yield_now().await;
            assert!(inbox.push(message.clone(), 0));
            tokio::task::yield_now().await;
            inbox.set_phase(Phase::Disconnected(DisconnectReason::Remote));
        };
        let (first, second, receipt, (), ()) =
            tokio::join!(inbox.recv(), inbox.recv(), inbox.recv_receipt(), inbox.ended(), send);
        assert_eq!((first, second, receipt), (Some(message), None, None));
        assert!(inbox.has_room(0));
    }

    /// A late reader gets the latest progress of each message. The memory is bounded even if the peer starts many
    /// messages and completes none.
    #[tokio::test]
    async fn unread_progress_is_the_latest_of_each_message_and_bounded() {
        let inbox =
            Inbox::<RakNet>::new(([127, 0, 0, 1], 1).into(), Phase::Connected, ConnectionSpan::default());
        let progress = |direction, message, done| Progress { direction, message, done, parts: 9 };
        for done in 1..=3 {
            inbox.push_progress(progress(Direction::Receiving, 7, done));
            inbox.push_progress(progress(Direction::Sending, 7, done + 1));
        }
        assert_eq!(inbox.recv_progress().await, Some(progress(Direction::Receiving, 7, 3)));
        assert_eq!(inbox.recv_progress().await, Some(progress(Direction::Sending, 7, 4)));
        (0..1_000).for_each(|message| inbox.push_progress(progress(Direction::Receiving, message, 1)));
        inbox.set_phase(Phase::Disconnected(DisconnectReason::Remote));
        let first_kept = 1_000 - u16::try_from(MAX_PROGRESS).expect("a small bound");
        for message in first_kept..1_000 {
            assert_eq!(inbox.recv_progress().await, Some(progress(Direction::Receiving, message, 1)));
        }
        assert_eq!(inbox.recv_progress().await, None);
    }

    #[test]
    fn a_reused_slot_does_not_return_the_inbox_of_an_earlier_connection() {
        let id = |number| {
            let mut peer = Peer::with_capacity(Capacity::default(), Config::new([7; 32]));
            peer.partition_ids(number, 2).expect("a peer without connections");
            peer.connect(Instant::ZERO, ([127, 0, 0, 1], 1).into()).expect("a free slot")
        };
        let mut inboxes = Inboxes::<RakNet>::new();
        let [first, second] = [0, 1].map(id);
        assert_eq!(first.slot(), second.slot());
        let inbox = || {
            let remote = ([127, 0, 0, 1], 1).into();
            Arc::new(Inbox::new(remote, Phase::Connecting, ConnectionSpan::default()))
        };
        inboxes.insert(first, inbox());
        assert!(inboxes.get(first).is_some() && inboxes.get(second).is_none());
        assert!(inboxes.remove(second).is_none());
        inboxes.insert(second, inbox());
        assert!(inboxes.get(first).is_none() && inboxes.remove(first).is_none());
        assert!(inboxes.remove(second).is_some() && inboxes.get(second).is_none());
    }
}

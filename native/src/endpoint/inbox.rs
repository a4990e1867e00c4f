//! What one connection has for its application: messages, and how far it has come.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rakwire::endpoint::{Outcome, Progress, Protocol, Receipt};

use super::message::Incoming;
use crate::wakers::{WakerId, Wakers};

/// Bytes that a message is counted with on top of its own.
const OVERHEAD: usize = 64;
/// Large messages whose progress waits to be read; that of further ones pushes the oldest out.
const PROGRESS: usize = 64;

/// How far a connection has come, as its application may know it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase<P: Protocol> {
    Opening,
    Open(P::Identity),
    Failed(P::ConnectFailure),
    Closed(P::DisconnectReason),
}

/// The messages of one connection, between the driver and the application.
#[derive(Debug)]
pub(crate) struct Inbox<P: Protocol> {
    pub(crate) remote: SocketAddr,
    queue: Mutex<Queue<P>>,
}

#[derive(Debug)]
struct Queue<P: Protocol> {
    /// Most connections of a large server are idle: nothing until something has come.
    unread: Option<Box<Unread<P>>>,
    phase: Phase<P>,
    wakers: Wakers,
}

/// What has come for the application.
#[derive(Debug)]
struct Unread<P: Protocol> {
    messages: VecDeque<Incoming<P::Delivery>>,
    bytes: usize,
    /// What became of messages; each was sent by this application, so it knows how many there are.
    receipts: VecDeque<(Receipt, Outcome)>,
    /// How far each large message has come.
    progress: VecDeque<Progress>,
}

impl<P: Protocol> Default for Unread<P> {
    fn default() -> Self {
        Self { messages: VecDeque::new(), bytes: 0, receipts: VecDeque::new(), progress: VecDeque::new() }
    }
}

impl<P: Protocol> Unread<P> {
    fn take_message(&mut self) -> Option<Incoming<P::Delivery>> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.bytes.len() + OVERHEAD;
        Some(message)
    }
}

impl<P: Protocol> Queue<P> {
    /// Takes something that has come; `Some(None)` once the connection has ended and all was taken.
    fn take<T>(&mut self, take: impl FnOnce(&mut Unread<P>) -> Option<T>) -> Option<Option<T>> {
        let found = self.unread.as_deref_mut().and_then(take);
        match (found, self.phase) {
            (None, Phase::Opening | Phase::Open(_)) => None,
            (found, _) => Some(found),
        }
    }
}

impl<P: Protocol> Inbox<P> {
    pub(crate) fn new(remote: SocketAddr, phase: Phase<P>) -> Self {
        Self { remote, queue: Mutex::new(Queue { unread: None, phase, wakers: Wakers::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<P>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. True if the inbox is full now: its messages take more than `limit` bytes.
    pub(crate) fn push(&self, message: Incoming<P::Delivery>, limit: usize) -> bool {
        self.put(|unread| {
            unread.bytes += message.bytes.len() + OVERHEAD;
            unread.messages.push_back(message);
            unread.bytes > limit
        })
    }

    fn put<R>(&self, put: impl FnOnce(&mut Unread<P>) -> R) -> R {
        self.change(|queue| put(queue.unread.get_or_insert_default()))
    }

    /// Changes something and wakes the tasks that wait.
    fn change<R>(&self, change: impl FnOnce(&mut Queue<P>) -> R) -> R {
        let mut queue = self.lock();
        let result = change(&mut queue);
        let wakers = queue.wakers.take();
        drop(queue);
        wakers.wake();
        result
    }

    /// Whether so much was read of an inbox that was full that the other peer may send again.
    pub(crate) fn has_room(&self, limit: usize) -> bool {
        let bytes = self.lock().unread.as_ref().map_or(0, |unread| unread.bytes);
        bytes <= limit / 2
    }

    pub(crate) fn phase(&self) -> Phase<P> {
        self.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: Phase<P>) {
        self.change(|queue| queue.phase = phase);
    }

    /// The next message; nothing once the connection has ended and everything was read.
    pub(crate) fn recv(&self) -> impl Future<Output = Option<Incoming<P::Delivery>>> {
        self.wait_for(|queue| queue.take(Unread::take_message))
    }

    pub(crate) fn push_receipt(&self, receipt: Receipt, outcome: Outcome) {
        self.put(|unread| unread.receipts.push_back((receipt, outcome)));
    }

    /// The next receipt; nothing once the connection has ended and all were read.
    pub(crate) fn recv_receipt(&self) -> impl Future<Output = Option<(Receipt, Outcome)>> {
        self.wait_for(|queue| queue.take(|unread| unread.receipts.pop_front()))
    }

    /// Keeps how far a message has come, instead of what was known of it before.
    pub(crate) fn push_progress(&self, progress: Progress) {
        self.put(|unread| {
            let same =
                |known: &Progress| known.direction == progress.direction && known.message == progress.message;
            unread.progress.retain(|known| !same(known));
            if unread.progress.len() == PROGRESS {
                unread.progress.pop_front();
            }
            unread.progress.push_back(progress);
        });
    }

    /// The progress of the next large message that has come further; nothing once the connection has ended and all were read.
    pub(crate) fn recv_progress(&self) -> impl Future<Output = Option<Progress>> {
        self.wait_for(|queue| queue.take(|unread| unread.progress.pop_front()))
    }

    /// Waits until the connection is open; no reason means that it ended before anybody saw it open.
    pub(crate) fn opened(&self) -> impl Future<Output = Result<P::Identity, Option<P::ConnectFailure>>> {
        self.wait_for(|queue| match queue.phase {
            Phase::Opening => None,
            Phase::Open(identity) => Some(Ok(identity)),
            Phase::Failed(failure) => Some(Err(Some(failure))),
            Phase::Closed(_) => Some(Err(None)),
        })
    }

    /// Waits until the connection has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> {
        self.wait_for(|queue| match queue.phase {
            Phase::Opening | Phase::Open(_) => None,
            Phase::Failed(_) | Phase::Closed(_) => Some(()),
        })
    }

    /// Waits until `take` finds what it wants.
    fn wait_for<T, F: FnMut(&mut Queue<P>) -> Option<T> + Unpin>(&self, take: F) -> Wait<'_, P, F> {
        Wait { inbox: self, take, waker: None }
    }
}

/// Waits for what `take` wants of an inbox.
struct Wait<'i, P: Protocol, F> {
    inbox: &'i Inbox<P>,
    take: F,
    /// The waker of this future, unless it is certain that there is none.
    waker: Option<WakerId>,
}

impl<P: Protocol, T, F: FnMut(&mut Queue<P>) -> Option<T> + Unpin> Future for Wait<'_, P, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let mut queue = this.inbox.lock();
        let found = (this.take)(&mut queue);
        let removed = this.waker.take().map(|id| queue.wakers.remove(id));
        if found.is_none() {
            this.waker = Some(queue.wakers.register(cx.waker()));
        }
        drop(queue);
        // A waker may own its task, whose other futures may wait for this inbox: they need the lock when they are dropped.
        drop(removed);
        found.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<P: Protocol, F> Drop for Wait<'_, P, F> {
    fn drop(&mut self) {
        let Some(id) = self.waker else { return };
        let removed = self.inbox.lock().wakers.remove(id);
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use rakwire::raknet::{Direction, DisconnectReason, Guid, RakNet};

    use super::*;

    #[tokio::test]
    async fn a_message_wakes_all_that_wait_and_goes_to_one() {
        let inbox = Inbox::<RakNet>::new(([127, 0, 0, 1], 1).into(), Phase::Open(Guid(1)));
        let message = Incoming { bytes: vec![0x86], delivery: Default::default() };
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, inbox.recv()).await;
        assert!(given_up.is_err());
        let send = async {
            tokio::task::yield_now().await;
            assert!(inbox.push(message.clone(), 0));
            tokio::task::yield_now().await;
            inbox.set_phase(Phase::Closed(DisconnectReason::Remote));
        };
        let (first, second, receipt, (), ()) =
            tokio::join!(inbox.recv(), inbox.recv(), inbox.recv_receipt(), inbox.ended(), send);
        assert_eq!((first, second, receipt), (Some(message), None, None));
        assert!(inbox.has_room(0));
    }

    /// A reader that comes late gets the last progress of each message; a sender that begins message after message and ends
    /// none takes no more memory than this.
    #[tokio::test]
    async fn progress_that_nobody_reads_is_the_last_of_each_message_and_bounded() {
        let inbox = Inbox::<RakNet>::new(([127, 0, 0, 1], 1).into(), Phase::Open(Guid(1)));
        let progress = |direction, message, done| Progress { direction, message, done, parts: 9 };
        for done in 1..=3 {
            inbox.push_progress(progress(Direction::Receiving, 7, done));
            inbox.push_progress(progress(Direction::Sending, 7, done + 1));
        }
        assert_eq!(inbox.recv_progress().await, Some(progress(Direction::Receiving, 7, 3)));
        assert_eq!(inbox.recv_progress().await, Some(progress(Direction::Sending, 7, 4)));
        (0..1_000).for_each(|message| inbox.push_progress(progress(Direction::Receiving, message, 1)));
        inbox.set_phase(Phase::Closed(DisconnectReason::Remote));
        let first_kept = 1_000 - u16::try_from(PROGRESS).expect("a small bound");
        for message in first_kept..1_000 {
            assert_eq!(inbox.recv_progress().await, Some(progress(Direction::Receiving, message, 1)));
        }
        assert_eq!(inbox.recv_progress().await, None);
    }
}

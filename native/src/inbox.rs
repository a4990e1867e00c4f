//! What one connection has for its application: messages, and how far it has come.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use rakwire::raknet::{ConnectFailure, DisconnectReason, Guid, Outcome, Progress, Receipt};

use crate::connection::Incoming;
use crate::waiters::{Ticket, Waiters};

/// Bytes that a message is counted with on top of its own.
const OVERHEAD: usize = 64;
/// Large messages of which the last news wait to be read; those of further ones push the oldest out.
const PROGRESS: usize = 64;

/// What a protocol has to tell of its connections.
pub(crate) trait Protocol: 'static {
    type Message: Letter + Debug + Send;
    /// What is known once a connection is open.
    type Opened: Copy + Debug + Send;
    type Failure: Copy + Debug + Send;
    type Reason: Copy + Debug + Send;
}

/// A message, as far as its size is concerned.
pub(crate) trait Letter {
    fn bytes(&self) -> usize;
}

/// The protocol of an [`Endpoint`](crate::Endpoint).
#[derive(Debug)]
pub(crate) enum RakNet {}

impl Protocol for RakNet {
    type Message = Incoming;
    type Opened = Guid;
    type Failure = ConnectFailure;
    type Reason = DisconnectReason;
}

impl Letter for Incoming {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// How far a connection has come, as its application may know it.
#[derive(Debug)]
pub(crate) enum Phase<P: Protocol = RakNet> {
    Opening,
    Open(P::Opened),
    Failed(P::Failure),
    Closed(P::Reason),
}

impl<P: Protocol> Clone for Phase<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Phase<P> {}

/// The messages of one connection, between the driver and the application.
#[derive(Debug)]
pub(crate) struct Inbox<P: Protocol = RakNet> {
    pub(crate) remote: SocketAddr,
    mail: Mutex<Mail<P>>,
}

#[derive(Debug)]
struct Mail<P: Protocol> {
    /// Most connections of a large server are idle: nothing until something has come.
    letters: Option<Box<Letters<P>>>,
    phase: Phase<P>,
    waiters: Waiters,
}

/// What has come for the application.
#[derive(Debug)]
struct Letters<P: Protocol> {
    messages: VecDeque<P::Message>,
    bytes: usize,
    /// What became of messages; each was sent by this application, so it knows how many there are.
    receipts: VecDeque<(Receipt, Outcome)>,
    /// The last news of each large message.
    progress: VecDeque<Progress>,
}

impl<P: Protocol> Default for Letters<P> {
    fn default() -> Self {
        Self { messages: VecDeque::new(), bytes: 0, receipts: VecDeque::new(), progress: VecDeque::new() }
    }
}

impl<P: Protocol> Letters<P> {
    fn take_message(&mut self) -> Option<P::Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.bytes() + OVERHEAD;
        Some(message)
    }
}

impl<P: Protocol> Mail<P> {
    /// Takes something that has come; `Some(None)` once the connection has ended and all was taken.
    fn take<T>(&mut self, take: impl FnOnce(&mut Letters<P>) -> Option<T>) -> Option<Option<T>> {
        let found = self.letters.as_deref_mut().and_then(take);
        match (found, self.phase) {
            (None, Phase::Opening | Phase::Open(_)) => None,
            (found, _) => Some(found),
        }
    }
}

/// Whether the other peer may send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Free,
    Full,
}

impl<P: Protocol> Inbox<P> {
    pub(crate) fn new(remote: SocketAddr, phase: Phase<P>) -> Self {
        Self { remote, mail: Mutex::new(Mail { letters: None, phase, waiters: Waiters::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Mail<P>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message; the inbox is full when its messages take more than `limit` bytes.
    pub(crate) fn push(&self, message: P::Message, limit: usize) -> Level {
        self.put(|letters| {
            letters.bytes += message.bytes() + OVERHEAD;
            letters.messages.push_back(message);
            if letters.bytes > limit { Level::Full } else { Level::Free }
        })
    }

    fn put<R>(&self, put: impl FnOnce(&mut Letters<P>) -> R) -> R {
        self.change(|mail| put(mail.letters.get_or_insert_default()))
    }

    /// Changes something and wakes those that wait.
    fn change<R>(&self, change: impl FnOnce(&mut Mail<P>) -> R) -> R {
        let mut mail = self.lock();
        let result = change(&mut mail);
        let waiters = mail.waiters.take();
        drop(mail);
        waiters.wake();
        result
    }

    /// Whether so much was read of an inbox that was full that the other peer may send again.
    pub(crate) fn level(&self, limit: usize) -> Level {
        let bytes = self.lock().letters.as_ref().map_or(0, |letters| letters.bytes);
        if bytes > limit / 2 { Level::Full } else { Level::Free }
    }

    pub(crate) fn phase(&self) -> Phase<P> {
        self.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: Phase<P>) {
        self.change(|mail| mail.phase = phase);
    }

    /// The next message; nothing once the connection has ended and everything was read.
    pub(crate) fn recv(&self) -> impl Future<Output = Option<P::Message>> {
        self.wait_for(|mail| mail.take(Letters::take_message))
    }

    pub(crate) fn push_receipt(&self, receipt: Receipt, outcome: Outcome) {
        self.put(|letters| letters.receipts.push_back((receipt, outcome)));
    }

    /// The next receipt; nothing once the connection has ended and all were read.
    pub(crate) fn recv_receipt(&self) -> impl Future<Output = Option<(Receipt, Outcome)>> {
        self.wait_for(|mail| mail.take(|letters| letters.receipts.pop_front()))
    }

    /// Keeps how far a message has come, instead of what was known of it before.
    pub(crate) fn push_progress(&self, progress: Progress) {
        self.put(|letters| {
            let same =
                |known: &Progress| known.direction == progress.direction && known.message == progress.message;
            letters.progress.retain(|known| !same(known));
            if letters.progress.len() == PROGRESS {
                letters.progress.pop_front();
            }
            letters.progress.push_back(progress);
        });
    }

    /// The next news of a large message; nothing once the connection has ended and all were read.
    pub(crate) fn recv_progress(&self) -> impl Future<Output = Option<Progress>> {
        self.wait_for(|mail| mail.take(|letters| letters.progress.pop_front()))
    }

    /// Waits until the connection is open; no reason means that it ended before anybody saw it open.
    pub(crate) fn opened(&self) -> impl Future<Output = Result<P::Opened, Option<P::Failure>>> {
        self.wait_for(|mail| match mail.phase {
            Phase::Opening => None,
            Phase::Open(guid) => Some(Ok(guid)),
            Phase::Failed(failure) => Some(Err(Some(failure))),
            Phase::Closed(_) => Some(Err(None)),
        })
    }

    /// Waits until the connection has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> {
        self.wait_for(|mail| match mail.phase {
            Phase::Opening | Phase::Open(_) => None,
            Phase::Failed(_) | Phase::Closed(_) => Some(()),
        })
    }

    /// Waits until `take` finds what it wants.
    fn wait_for<T, F: FnMut(&mut Mail<P>) -> Option<T> + Unpin>(&self, take: F) -> Wait<'_, P, F> {
        Wait { inbox: self, take, ticket: None }
    }
}

/// Waits for what `take` wants of an inbox.
struct Wait<'i, P: Protocol, F> {
    inbox: &'i Inbox<P>,
    take: F,
    /// Nothing while it is certain that this does not stand among those that wait.
    ticket: Option<Ticket>,
}

impl<P: Protocol, T, F: FnMut(&mut Mail<P>) -> Option<T> + Unpin> Future for Wait<'_, P, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let mut mail = this.inbox.lock();
        let found = (this.take)(&mut mail);
        let left = this.ticket.take().map(|ticket| mail.waiters.leave(ticket));
        if found.is_none() {
            this.ticket = Some(mail.waiters.enter(cx.waker()));
        }
        drop(mail);
        // A waker may be the last that is left of a task, which may wait here, too.
        drop(left);
        found.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<P: Protocol, F> Drop for Wait<'_, P, F> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let left = self.inbox.lock().waiters.leave(ticket);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use rakwire::raknet::Direction;

    use super::*;

    #[tokio::test]
    async fn a_message_wakes_all_that_wait_and_goes_to_one() {
        let inbox = Inbox::<RakNet>::new(([127, 0, 0, 1], 1).into(), Phase::Open(Guid(1)));
        let message = Incoming { bytes: vec![0x86], delivery: Default::default() };
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, inbox.recv()).await;
        assert!(given_up.is_err());
        let send = async {
            tokio::task::yield_now().await;
            assert_eq!(inbox.push(message.clone(), 0), Level::Full);
            tokio::task::yield_now().await;
            inbox.set_phase(Phase::Closed(DisconnectReason::Remote));
        };
        let (first, second, receipt, (), ()) =
            tokio::join!(inbox.recv(), inbox.recv(), inbox.recv_receipt(), inbox.ended(), send);
        assert_eq!((first, second, receipt), (Some(message), None, None));
        assert_eq!(inbox.level(0), Level::Free);
    }

    /// A reader that comes late gets the last news of each message; a sender that begins message after message and ends
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

//! What one connection has for its application: messages, and how far it has come.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rakwire::raknet::{ConnectFailure, DisconnectReason, Guid, Outcome, Progress, Receipt};
use tokio::sync::Notify;

use crate::connection::Incoming;

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
    limit: usize,
    mail: Mutex<Mail<P>>,
    changed: Notify,
}

#[derive(Debug)]
struct Mail<P: Protocol> {
    messages: VecDeque<P::Message>,
    bytes: usize,
    /// What became of messages; each was sent by this application, so it knows how many there are.
    receipts: VecDeque<(Receipt, Outcome)>,
    /// The last news of each large message.
    progress: VecDeque<Progress>,
    phase: Phase<P>,
    /// Whether somebody may wait for a change: mostly nobody does, and nobody need be woken.
    awaited: Awaited,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    No,
    Yes,
}

/// Whether the other peer may send more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Free,
    Full,
}

impl<P: Protocol> Inbox<P> {
    /// An inbox that is full when its messages take more than `limit` bytes.
    pub(crate) fn new(limit: usize, phase: Phase<P>) -> Self {
        Self {
            limit,
            mail: Mutex::new(Mail {
                messages: VecDeque::new(),
                bytes: 0,
                receipts: VecDeque::new(),
                progress: VecDeque::new(),
                phase,
                awaited: Awaited::No,
            }),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail<P>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, message: P::Message) -> Level {
        self.change(|mail| {
            mail.bytes += message.bytes() + OVERHEAD;
            mail.messages.push_back(message);
            if mail.bytes > self.limit { Level::Full } else { Level::Free }
        })
    }

    /// Changes something and wakes those that wait.
    fn change<R>(&self, change: impl FnOnce(&mut Mail<P>) -> R) -> R {
        let mut mail = self.lock();
        let result = change(&mut mail);
        let awaited = std::mem::take(&mut mail.awaited);
        drop(mail);
        if awaited == Awaited::Yes {
            self.changed.notify_waiters();
        }
        result
    }

    /// Whether so much was read that the other peer may send again.
    pub(crate) fn level(&self) -> Level {
        if self.lock().bytes > self.limit / 2 { Level::Full } else { Level::Free }
    }

    pub(crate) fn phase(&self) -> Phase<P> {
        self.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: Phase<P>) {
        self.change(|mail| mail.phase = phase);
    }

    /// The next message; nothing once the connection has ended and everything was read.
    pub(crate) async fn recv(&self) -> Option<P::Message> {
        self.wait_for(|mail| match mail.messages.pop_front() {
            Some(message) => {
                mail.bytes -= message.bytes() + OVERHEAD;
                Some(Some(message))
            }
            None => match mail.phase {
                Phase::Opening | Phase::Open(_) => None,
                Phase::Failed(_) | Phase::Closed(_) => Some(None),
            },
        })
        .await
    }

    pub(crate) fn push_receipt(&self, receipt: Receipt, outcome: Outcome) {
        self.change(|mail| mail.receipts.push_back((receipt, outcome)));
    }

    /// The next receipt; nothing once the connection has ended and all were read.
    pub(crate) async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.wait_for(|mail| match (mail.receipts.pop_front(), mail.phase) {
            (Some(receipt), _) => Some(Some(receipt)),
            (None, Phase::Opening | Phase::Open(_)) => None,
            (None, Phase::Failed(_) | Phase::Closed(_)) => Some(None),
        })
        .await
    }

    /// Keeps how far a message has come, instead of what was known of it before.
    pub(crate) fn push_progress(&self, progress: Progress) {
        self.change(|mail| {
            let same =
                |known: &Progress| known.direction == progress.direction && known.message == progress.message;
            mail.progress.retain(|known| !same(known));
            if mail.progress.len() == PROGRESS {
                mail.progress.pop_front();
            }
            mail.progress.push_back(progress);
        });
    }

    /// The next news of a large message; nothing once the connection has ended and all were read.
    pub(crate) async fn recv_progress(&self) -> Option<Progress> {
        self.wait_for(|mail| match (mail.progress.pop_front(), mail.phase) {
            (Some(progress), _) => Some(Some(progress)),
            (None, Phase::Opening | Phase::Open(_)) => None,
            (None, Phase::Failed(_) | Phase::Closed(_)) => Some(None),
        })
        .await
    }

    /// Waits until the connection is open; no reason means that it ended before anybody saw it open.
    pub(crate) async fn opened(&self) -> Result<P::Opened, Option<P::Failure>> {
        self.wait_for(|mail| match mail.phase {
            Phase::Opening => None,
            Phase::Open(guid) => Some(Ok(guid)),
            Phase::Failed(failure) => Some(Err(Some(failure))),
            Phase::Closed(_) => Some(Err(None)),
        })
        .await
    }

    /// Waits until the connection has ended.
    pub(crate) async fn ended(&self) {
        self.wait_for(|mail| match mail.phase {
            Phase::Opening | Phase::Open(_) => None,
            Phase::Failed(_) | Phase::Closed(_) => Some(()),
        })
        .await;
    }

    /// Waits until `take` finds what it wants.
    async fn wait_for<T>(&self, mut take: impl FnMut(&mut Mail<P>) -> Option<T>) -> T {
        if let Some(found) = take(&mut self.lock()) {
            return found;
        }
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            {
                let mut mail = self.lock();
                if let Some(found) = take(&mut mail) {
                    return found;
                }
                mail.awaited = Awaited::Yes;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use rakwire::raknet::Direction;

    use super::*;

    /// A reader that comes late gets the last news of each message; a sender that begins message after message and ends
    /// none takes no more memory than this.
    #[tokio::test]
    async fn progress_that_nobody_reads_is_the_last_of_each_message_and_bounded() {
        let inbox = Inbox::<RakNet>::new(0, Phase::Open(Guid(1)));
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

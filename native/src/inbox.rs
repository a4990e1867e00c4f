//! What one connection has for its application: messages, and how far it has come.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rakwire::raknet::{ConnectFailure, DisconnectReason, Guid, Outcome, Receipt};
use tokio::sync::Notify;

use crate::connection::Incoming;

/// Bytes that a message is counted with on top of its own.
const OVERHEAD: usize = 64;

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
    phase: Phase<P>,
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
            mail: Mutex::new(Mail { messages: VecDeque::new(), bytes: 0, receipts: VecDeque::new(), phase }),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail<P>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, message: P::Message) -> Level {
        let mut mail = self.lock();
        mail.bytes += message.bytes() + OVERHEAD;
        mail.messages.push_back(message);
        let level = if mail.bytes > self.limit { Level::Full } else { Level::Free };
        drop(mail);
        self.changed.notify_waiters();
        level
    }

    /// Whether so much was read that the other peer may send again.
    pub(crate) fn level(&self) -> Level {
        if self.lock().bytes > self.limit / 2 { Level::Full } else { Level::Free }
    }

    pub(crate) fn phase(&self) -> Phase<P> {
        self.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: Phase<P>) {
        self.lock().phase = phase;
        self.changed.notify_waiters();
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
        self.lock().receipts.push_back((receipt, outcome));
        self.changed.notify_waiters();
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
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if let Some(found) = take(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

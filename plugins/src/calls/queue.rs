//! A queue of messages to send.

use heapless::{Deque, Vec};
use rakwire::endpoint::{ConnectionId, MessageSender, Protocol, SendError};

/// A queued message, and the number of its call if it is a call.
#[derive(Debug)]
pub(super) struct Queued<P: Protocol, const BYTES: usize> {
    pub(super) to: ConnectionId,
    pub(super) delivery: P::Delivery,
    pub(super) call: Option<u32>,
    pub(super) bytes: Vec<u8, BYTES>,
}

/// A queue of up to `N` messages. A connection that accepts no messages delays only its own.
#[derive(Debug)]
pub(super) struct SendQueue<P: Protocol, const N: usize, const BYTES: usize> {
    messages: Deque<Queued<P, BYTES>, N>,
}

impl<P: Protocol, const N: usize, const BYTES: usize> SendQueue<P, N, BYTES> {
    pub(super) const fn new() -> Self {
        Self { messages: Deque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of messages queued for one connection.
    pub(super) fn waiting_for(&self, to: ConnectionId) -> usize {
        self.messages.iter().filter(|message| message.to == to).count()
    }

    pub(super) fn is_full(&self) -> bool {
        self.messages.is_full()
    }

    /// Queues a message. Returns false if the queue is full.
    pub(super) fn push(&mut self, message: Queued<P, BYTES>) -> bool {
        self.messages.push_back(message).is_ok()
    }

    /// Removes the oldest message of the connection with the most queued messages.
    pub(super) fn pop_of_fullest(&mut self) -> Option<Queued<P, BYTES>> {
        let counted = self.messages.iter().map(|message| (self.waiting_for(message.to), message.to));
        let (_, fullest) = counted.max_by_key(|(count, _)| *count)?;
        let mut popped = None;
        for _ in 0..self.messages.len() {
            let message = self.messages.pop_front()?;
            if popped.is_none() && message.to == fullest {
                popped = Some(message);
            } else {
                self.push(message);
            }
        }
        popped
    }

    /// Removes the messages for which `keep` returns false, and keeps the order of the others.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Queued<P, BYTES>) -> bool) {
        for _ in 0..self.messages.len() {
            let Some(message) = self.messages.pop_front() else { return };
            if keep(&message) {
                self.push(message);
            }
        }
    }

    /// Sends messages while connections accept them. Calls `failed` with each message that can never be sent, and
    /// sends the message that it returns instead.
    pub(super) fn send(
        &mut self,
        sender: &mut dyn MessageSender<P>,
        mut failed: impl FnMut(&Queued<P, BYTES>, SendError) -> Option<Vec<u8, BYTES>>,
    ) {
        let mut blocked: Vec<ConnectionId, N> = Vec::new();
        for _ in 0..self.messages.len() {
            let Some(message) = self.messages.pop_front() else { return };
            let sent = if blocked.contains(&message.to) {
                Err(SendError::QuotaExceeded)
            } else {
                sender.send(message.to, &message.bytes, message.delivery).map(|_| ())
            };
            match sent {
                Ok(()) => {}
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                    // This cannot fail, because there is at most one entry per message.
                    let _ = blocked.push(message.to);
                    self.push(message);
                }
                Err(error) => {
                    if let Some(bytes) = failed(&message, error) {
                        self.push(Queued { bytes, ..message });
                    }
                }
            }
        }
    }
}

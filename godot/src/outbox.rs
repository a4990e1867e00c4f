//! Messages of one connection that wait for room.

use std::borrow::Cow;
use std::collections::VecDeque;

use rakwire_native::raknet::ConnectionId;
use rakwire_native::rakwire::endpoint::SendError;
use rakwire_native::{Delivery, RakNet, polled};

/// The outcome of a message that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is queued in the connection, or in the outbox.
    Queued,
    /// It is unreliable, and the queue of the connection is full.
    Dropped,
    /// It is reliable, and the waiting bytes would exceed the limit.
    Overflow,
}

/// The reliable messages of one connection that wait for room, in order.
#[derive(Debug)]
pub(crate) struct Outbox {
    id: ConnectionId,
    waiting: VecDeque<(Delivery, Vec<u8>)>,
    bytes: usize,
    limit: usize,
    /// Set if the connection is closed once nothing waits.
    is_closing: bool,
}

impl Outbox {
    pub(crate) const fn new(id: ConnectionId, limit: usize) -> Self {
        Self { id, waiting: VecDeque::new(), bytes: 0, limit, is_closing: false }
    }

    /// Sends a message, or queues it. A large owned message is not copied.
    pub(crate) fn send(
        &mut self,
        endpoint: &mut polled::Endpoint<RakNet>,
        mut message: Cow<'_, [u8]>,
        delivery: Delivery,
    ) -> Result<Sent, SendError> {
        let is_reliable = delivery.reliability.is_reliable();
        if is_reliable && !self.waiting.is_empty() {
            return Ok(self.wait(message, delivery));
        }
        let sent = match &mut message {
            Cow::Borrowed(bytes) => endpoint.send(self.id, bytes, delivery),
            Cow::Owned(bytes) => endpoint.send_vec(self.id, bytes, delivery),
        };
        match sent {
            Ok(_) => Ok(Sent::Queued),
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) if is_reliable => {
                Ok(self.wait(message, delivery))
            }
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => Ok(Sent::Dropped),
            Err(error) => Err(error),
        }
    }

    fn wait(&mut self, message: Cow<'_, [u8]>, delivery: Delivery) -> Sent {
        let bytes = self.bytes.saturating_add(message.len());
        if bytes > self.limit {
            return Sent::Overflow;
        }
        self.bytes = bytes;
        self.waiting.push_back((delivery, message.into_owned()));
        Sent::Queued
    }

    /// Sends the waiting messages for which there is room now.
    pub(crate) fn retry(&mut self, endpoint: &mut polled::Endpoint<RakNet>) {
        while let Some((delivery, mut message)) = self.waiting.pop_front() {
            let length = message.len();
            if let Err(SendError::QuotaExceeded | SendError::PoolExhausted) =
                endpoint.send_vec(self.id, &mut message, delivery)
            {
                self.waiting.push_front((delivery, message));
                return;
            }
            self.bytes -= length;
        }
        if self.is_closing {
            endpoint.disconnect(self.id);
        }
    }

    /// Closes the connection when the messages that wait for room have been sent.
    pub(crate) fn close(&mut self, endpoint: &mut polled::Endpoint<RakNet>) {
        self.is_closing = true;
        self.retry(endpoint);
    }

    /// Closes the connection without the messages that wait for room.
    pub(crate) fn abort(&mut self, endpoint: &mut polled::Endpoint<RakNet>) {
        self.waiting.clear();
        self.bytes = 0;
        endpoint.disconnect(self.id);
    }
}

//! Outgoing messages, including those that wait for room in a connection.

use std::collections::VecDeque;

use bevy_replicon::prelude::Channel;
use rakwire::endpoint::SendError;
use rakwire::raknet::{ConnectionStats, Delivery, Receipt, Reliability};

use crate::channels::{ChannelId, delivery_of};
use crate::counters::Dropped;

/// Default limit of waiting reliable messages in a connection, in bytes: 16 MiB.
pub const DEFAULT_BACKLOG: usize = 16 << 20;

/// Bytes of a datagram that are not payload: the headers of IP, UDP, datagram and capsule, twice those of a secure
/// connection, and the channel. A message that fits the rest is sent in one datagram.
const HEADERS: usize = 28 + 9 + 23 + 2 * 19 + 3;

/// Returns the length of the longest payload that fits one datagram.
const fn max_unsplit(mtu: u16) -> usize {
    (mtu as usize).saturating_sub(HEADERS)
}

/// An open connection, as implemented for this target.
pub(crate) trait Link {
    /// Sends a message, and may move its bytes out. Returns its receipt number, if it has one.
    fn send(&mut self, message: &mut Vec<u8>, delivery: Delivery) -> Result<Option<Receipt>, SendError>;

    /// Returns the counters and measurements, or `None` once the connection has ended.
    fn stats(&mut self) -> Option<ConnectionStats>;

    /// Starts to disconnect. Reliable messages sent before arrive first.
    fn disconnect(&mut self);
}

/// Limit of the bytes of split unreliable messages in flight, if there are several.
///
/// RakNet retransmits the parts of such a message, and replicon sends a mutation in each tick until it is acknowledged.
/// Without a bound, copies of a large component would fill the connection.
const MOST_IN_PARTS: usize = 256 << 10;

/// The treatment of a reliable message that cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Overflow {
    #[error("more reliable messages wait than the backlog may hold")]
    Backlog,
    #[error("a reliable message is larger than the connection may hold")]
    TooLarge,
}

/// The messages of one connection that wait for room.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Reliable messages with their prefix, in order.
    waiting: VecDeque<(Delivery, Vec<u8>)>,
    bytes: usize,
    limit: usize,
    /// Length of the longest payload in one datagram.
    unsplit: usize,
    /// Split unreliable messages in flight, with their lengths.
    in_parts: Vec<(Receipt, usize)>,
    /// Set if the connection is closed once nothing waits.
    is_closing: bool,
}

impl Outbox {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit,
            unsplit: 0,
            in_parts: Vec::new(),
            is_closing: false,
        }
    }

    /// Updates the sizes of the connection, once it is open and when its MTU has changed. Returns the length of the
    /// longest payload in one datagram.
    pub(crate) fn measure(&mut self, link: &mut impl Link) -> usize {
        self.unsplit = link.stats().map_or(0, |stats| max_unsplit(stats.mtu));
        self.unsplit
    }

    /// Records that a message has arrived or is lost.
    pub(crate) fn settle(&mut self, receipt: Receipt) {
        self.in_parts.retain(|(open, _)| *open != receipt);
    }

    /// Sends a message of a channel, or queues it.
    pub(crate) fn send(
        &mut self,
        link: &mut impl Link,
        (channel, id): (Channel, ChannelId),
        payload: &[u8],
        dropped: &mut Dropped,
    ) -> Result<(), Overflow> {
        let mut delivery = delivery_of(channel, id.number());
        let mut message = Vec::with_capacity(id.prefix().len() + payload.len());
        message.extend_from_slice(id.prefix());
        message.extend_from_slice(payload);
        let is_reliable = delivery.reliability.is_reliable();
        if is_reliable && !self.waiting.is_empty() {
            return self.wait(delivery, message);
        }
        let length = payload.len();
        if !is_reliable && length > self.unsplit {
            let on_their_way: usize = self.in_parts.iter().map(|(_, length)| length).sum();
            if on_their_way > 0 && on_their_way + length > MOST_IN_PARTS {
                dropped.unreliable += 1;
                return Ok(());
            }
            delivery.reliability = Reliability::UnreliableWithReceipt;
        }
        match link.send(&mut message, delivery) {
            Ok(receipt) => {
                self.in_parts.extend(receipt.map(|receipt| (receipt, length)));
                Ok(())
            }
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) if is_reliable => {
                self.wait(delivery, message)
            }
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                dropped.unreliable += 1;
                Ok(())
            }
            Err(error) => refused(error, is_reliable, dropped),
        }
    }

    fn wait(&mut self, delivery: Delivery, message: Vec<u8>) -> Result<(), Overflow> {
        let bytes = self.bytes.saturating_add(message.len());
        if bytes > self.limit {
            return Err(Overflow::Backlog);
        }
        self.bytes = bytes;
        self.waiting.push_back((delivery, message));
        Ok(())
    }

    /// Sends the waiting messages for which there is room now.
    pub(crate) fn retry(&mut self, link: &mut impl Link, dropped: &mut Dropped) -> Result<(), Overflow> {
        while let Some((delivery, mut message)) = self.waiting.pop_front() {
            let length = message.len();
            match link.send(&mut message, delivery) {
                Ok(_) => self.bytes -= length,
                Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                    self.waiting.push_front((delivery, message));
                    break;
                }
                Err(error) => {
                    self.bytes -= length;
                    refused(error, true, dropped)?;
                }
            }
        }
        if self.is_closing && self.waiting.is_empty() {
            link.disconnect();
        }
        Ok(())
    }

    /// Closes the connection when the messages that wait for room have been sent.
    pub(crate) fn close(&mut self, link: &mut impl Link) {
        self.is_closing = true;
        if self.waiting.is_empty() {
            link.disconnect();
        }
    }

    /// Closes the connection without the messages that wait for room.
    pub(crate) fn abort(&mut self, link: &mut impl Link) {
        self.waiting.clear();
        self.bytes = 0;
        link.disconnect();
    }

    /// Returns true if reliable messages wait for room.
    #[cfg(all(feature = "server", not(target_arch = "wasm32")))]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Counts a message that can never be sent.
fn refused(error: SendError, is_reliable: bool, dropped: &mut Dropped) -> Result<(), Overflow> {
    if error == SendError::NotConnected {
        dropped.not_connected += 1;
        return Ok(());
    }
    dropped.too_large += 1;
    if is_reliable { Err(Overflow::TooLarge) } else { Ok(()) }
}

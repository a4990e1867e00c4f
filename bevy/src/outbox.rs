//! Outgoing messages of a connection, including those queued while its send memory is full.

use bevy_replicon::prelude::Channel;
use rakwire::endpoint::{ConnectionId, QueueError, QueueTarget, Queued, SendError, SendQueue};
use rakwire::raknet::{ConnectionStats, RakNet, Receipt, Reliability};

use crate::channels::{ChannelId, delivery_of};
use crate::counters::Dropped;

/// The default limit of queued reliable messages per connection, in bytes: 16 MiB.
pub const DEFAULT_BACKLOG: usize = 16 << 20;

/// Bytes of a datagram that are not payload: IPv4 and UDP headers, datagram header, capsule header, overhead of a
/// secure connection (twice), and channel prefix. A payload that fits the remaining bytes is sent unsplit.
const HEADERS: usize = 28 + 9 + 23 + 2 * 19 + 3;

/// Returns the length of the longest payload that fits one datagram.
const fn max_unsplit(mtu: u16) -> usize {
    (mtu as usize).saturating_sub(HEADERS)
}

/// Limit for the bytes of split unreliable messages in flight per connection. One such message is always allowed.
///
/// RakNet retransmits the parts of a split message, even if it is unreliable. Replicon sends a mutation again in each
/// tick until it is acknowledged. Without a limit, copies of a large component would fill the send queue.
const MAX_IN_PARTS: usize = 256 << 10;

/// The reason why a reliable message cannot be queued. The connection is then closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Overflow {
    #[error("more reliable bytes are queued than `backlog` allows; send less, or raise `backlog`")]
    Backlog,
    #[error("a reliable message is longer than the connection allows; split it")]
    TooLarge,
}

/// The outgoing messages of one connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Reliable messages with their channel prefix.
    pub(crate) queue: SendQueue<RakNet>,
    /// Length of the longest payload that fits one datagram.
    unsplit: usize,
    /// Split unreliable messages in flight, with their lengths.
    in_parts: Vec<(Receipt, usize)>,
}

impl Outbox {
    pub(crate) const fn new(id: ConnectionId, limit: usize) -> Self {
        Self { queue: SendQueue::new(id, limit), unsplit: 0, in_parts: Vec::new() }
    }

    /// Updates the limit for unsplit messages from the MTU of the connection. Returns the length of the longest payload
    /// that fits one datagram, or 0 without statistics.
    pub(crate) fn measure(&mut self, stats: Option<ConnectionStats>) -> usize {
        self.unsplit = stats.map_or(0, |stats| max_unsplit(stats.mtu));
        self.unsplit
    }

    /// Records that a message was acknowledged or declared lost.
    pub(crate) fn settle(&mut self, receipt: Receipt) {
        self.in_parts.retain(|(open, _)| *open != receipt);
    }

    /// Sends a message on a channel. If the send memory is full, a reliable message is queued and an unreliable one is
    /// dropped.
    pub(crate) fn send(
        &mut self,
        target: &mut impl QueueTarget<RakNet>,
        (channel, id): (Channel, ChannelId),
        payload: &[u8],
        dropped: &mut Dropped,
    ) -> Result<(), Overflow> {
        let mut delivery = delivery_of(channel, id.number());
        let mut message = Vec::with_capacity(id.prefix().len() + payload.len());
        message.extend_from_slice(id.prefix());
        message.extend_from_slice(payload);
        let is_reliable = delivery.reliability.is_reliable();
        let length = payload.len();
        if !is_reliable && length > self.unsplit {
            let on_their_way: usize = self.in_parts.iter().map(|(_, length)| length).sum();
            if on_their_way > 0 && on_their_way + length > MAX_IN_PARTS {
                dropped.unreliable += 1;
                return Ok(());
            }
            delivery.reliability = Reliability::UnreliableWithReceipt;
        }
        match self.queue.send(target, message, delivery) {
            Ok(Queued::Sent(receipt)) => self.in_parts.extend(receipt.map(|receipt| (receipt, length))),
            Ok(Queued::Waiting) => {}
            Ok(Queued::Dropped) => dropped.unreliable += 1,
            Err(QueueError::Refused(SendError::NotConnected)) => dropped.not_connected += 1,
            Err(QueueError::Refused(_)) => {
                dropped.too_large += 1;
                return if is_reliable { Err(Overflow::TooLarge) } else { Ok(()) };
            }
            Err(_) => return Err(Overflow::Backlog),
        }
        Ok(())
    }

    /// Sends queued messages until the send memory is full.
    pub(crate) fn retry(
        &mut self,
        target: &mut impl QueueTarget<RakNet>,
        dropped: &mut Dropped,
    ) -> Result<(), Overflow> {
        let waiting = self.queue.len() as u64;
        match self.queue.retry(target) {
            Ok(discarded) => {
                if discarded > 0 {
                    log::warn!(
                        "{discarded} queued reliable messages were discarded: the connection closed before they could be sent"
                    );
                }
                dropped.not_connected += discarded as u64;
                Ok(())
            }
            // The connection has closed, and its queued messages are lost.
            Err(SendError::NotConnected) => {
                dropped.not_connected += waiting;
                Ok(())
            }
            Err(_) => {
                dropped.too_large += 1;
                Err(Overflow::TooLarge)
            }
        }
    }

    /// Closes the connection, and discards its queued messages.
    pub(crate) fn abort(&mut self, target: &mut impl QueueTarget<RakNet>, dropped: &mut Dropped) {
        dropped.not_connected += self.queue.abort(target) as u64;
    }
}

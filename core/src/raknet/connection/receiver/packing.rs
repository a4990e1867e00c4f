//! Messages that wait for their turn in a common block.
//!
//! While a lost datagram is sent again, everything behind it on its channel waits, and a message takes a block however short
//! it is. So a message that directly follows the one that was kept last goes behind it into its block, after two bytes with
//! its length. When its turn comes it gets a block of its own.

use super::Receiver;
use super::reorder_buffer::Disposition;
use crate::raknet::connection::block_header::{BlockHeader, IncomingMessage};
use crate::raknet::connection::context::Context;
use crate::raknet::features::PACKING;
use crate::storage::{Block, BlockLink};

impl Receiver {
    /// Puts a message behind the one that was kept last; false if it does not follow that one, or does not fit.
    pub(super) fn pack(&self, cx: &mut Context<'_, '_>, message: &IncomingMessage, payload: &[u8]) -> bool {
        let Some(block) = self.packing else { return false };
        let Some(mut first) = cx.pool.header(block).received().copied() else { return false };
        let follows = first.channel == message.channel
            && first.reliability == message.reliability
            && first.order.plus(u32::from(first.followers) + 1) == message.order
            && first.followers < u8::MAX;
        let (size, Ok(length)) = (cx.pool.size(block), u16::try_from(payload.len())) else { return false };
        if !follows || !cx.pool.append(block, [&length.to_le_bytes(), payload]) {
            return false;
        }
        if first.followers == 0 {
            first.length = u16::try_from(size).unwrap_or(u16::MAX);
        }
        first.followers += 1;
        *cx.pool.header_mut(block) = BlockHeader::Received(first);
        true
    }

    /// Takes the first message of a channel, which shares its block, and moves it to a block of its own; `None` if there is no
    /// room for that.
    pub(super) fn unpack_first(&mut self, cx: &mut Context<'_, '_>, first: IncomingMessage) -> BlockLink {
        if !self.budget.take(cx, 1, Disposition::Deliver) {
            self.no_room(cx);
            self.stalled |= 1_u32.checked_shl(first.channel.into()).unwrap_or(0);
            return None;
        }
        let front = self.split_first(cx, first);
        if front.is_none() {
            self.budget.give_back(cx, 1);
        }
        front
    }

    /// Moves the first message of a channel out of the block that it shares.
    fn split_first(&mut self, cx: &mut Context<'_, '_>, first: IncomingMessage) -> BlockLink {
        let packed = self.channels.update(cx.pool, first.channel, |channel, pool| channel.pop(pool))?;
        let alone = IncomingMessage { followers: 0, length: 0, ..first };
        let front = cx.pool.split_front(packed, first.length.into(), &BlockHeader::Received(alone));
        let rest = if front.is_some() { without_first(cx, packed, first) } else { first };
        *cx.pool.header_mut(packed) = BlockHeader::Received(rest);
        self.channels.update(cx.pool, first.channel, |channel, pool| channel.push(pool, packed));
        front
    }

    /// Whether messages whose turn has come wait for blocks.
    pub(in super::super) const fn is_stalled(&self) -> bool {
        PACKING && self.stalled != 0
    }

    /// Takes the channels on which that is so, a bit for each.
    pub(in super::super) const fn take_stalled(&mut self) -> u32 {
        if PACKING { core::mem::replace(&mut self.stalled, 0) } else { 0 }
    }
}

/// The message that is the first one of a block now that the bytes of the one before it are gone.
fn without_first(cx: &mut Context<'_, '_>, packed: Block, first: IncomingMessage) -> IncomingMessage {
    let length = cx.pool.bytes(packed).first_chunk().copied().map_or(0, u16::from_le_bytes);
    cx.pool.drop_front(packed, 2);
    IncomingMessage {
        order: first.order.next(),
        followers: first.followers.saturating_sub(1),
        length,
        ..first
    }
}

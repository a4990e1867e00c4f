//! Messages that are sent in parts and whose delivery somebody wants to know.

use crate::endpoint::{Direction, Progress};
use crate::raknet::connection::block_header::{BlockHeader, OutgoingMessage, SplitSend, key};
use crate::raknet::connection::context::Context;
use crate::storage::{Block, BlockLink, List};

/// Records of such messages, which count the parts that were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SplitSends {
    records: List,
    next_id: u16,
    pub(super) progress: Option<Progress>,
}

impl SplitSends {
    /// An id for a message that is sent in parts.
    pub(super) const fn take_id(&mut self) -> u16 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    /// The place of an id among others that are in use: the greater, the later it was taken.
    pub(super) const fn place(&self, id: u16) -> u16 {
        id.wrapping_sub(self.next_id)
    }

    /// Keeps a record of a message until all parts are acknowledged.
    pub(super) fn insert(&mut self, cx: &mut Context<'_, '_>, message: &OutgoingMessage) {
        let header = BlockHeader::SplitSend(SplitSend {
            owner: cx.slot,
            split_id: message.split_id(),
            parts: message.split_count(),
            acknowledged: 0,
            receipt: message.receipt,
        });
        let Some(record) = cx.pool.store(&[], &header) else { return };
        cx.index.insert(cx.pool, key::split_send(cx.slot, message.split_id()), record);
        self.records.push(cx.pool, record);
    }

    /// A part was acknowledged. If it was the last one, takes out the record and returns it with its contents.
    pub(super) fn on_part_acked(
        &mut self,
        cx: &mut Context<'_, '_>,
        split_id: u16,
    ) -> Option<(Block, SplitSend)> {
        let record = find(cx, split_id)?;
        let BlockHeader::SplitSend(send) = cx.pool.header_mut(record) else { return None };
        send.acknowledged += 1;
        let send = *send;
        let (done, parts) = (send.acknowledged, send.parts);
        if done.checked_rem(cx.config.progress_interval) == Some(0) {
            self.progress = Some(Progress { direction: Direction::Sending, message: split_id, done, parts });
        }
        if done < parts {
            return None;
        }
        self.remove(cx, record, split_id);
        Some((record, send))
    }

    fn remove(&mut self, cx: &mut Context<'_, '_>, record: Block, split_id: u16) {
        cx.index.remove(cx.pool, key::split_send(cx.slot, split_id), record);
        self.records.remove(cx.pool, record);
    }

    /// Forgets all records and returns how many blocks that freed.
    pub(super) fn clear(&mut self, cx: &mut Context<'_, '_>) -> usize {
        let mut freed = 0;
        while let Some(record) = self.records.oldest() {
            let BlockHeader::SplitSend(send) = *cx.pool.header(record) else { break };
            self.remove(cx, record, send.split_id);
            freed += cx.pool.free(record);
        }
        self.progress = None;
        freed
    }
}

/// A message of which no part was acknowledged is sent under another id.
pub(super) fn renew(cx: &mut Context<'_, '_>, split_id: u16, message: &OutgoingMessage) {
    let Some(record) = find(cx, split_id) else { return };
    cx.index.remove(cx.pool, key::split_send(cx.slot, split_id), record);
    if let BlockHeader::SplitSend(send) = cx.pool.header_mut(record) {
        (send.split_id, send.parts) = (message.split_id(), message.split_count());
    }
    cx.index.insert(cx.pool, key::split_send(cx.slot, message.split_id()), record);
}

/// The record of the message with this id.
fn find(cx: &mut Context<'_, '_>, split_id: u16) -> BlockLink {
    let owner = cx.slot;
    cx.index.find(cx.pool, key::split_send(owner, split_id), |header| {
        matches!(header, BlockHeader::SplitSend(send) if send.owner == owner && send.split_id == split_id)
    })
}

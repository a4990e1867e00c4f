//! Messages that arrive in parts (supplement 4.15).
//!
//! The first part to arrive makes a record and has the pool promise room for all the others; without that room it is
//! refused before it is acknowledged. So whatever was acknowledged can always be completed. Parts are found by index,
//! whatever order they come in.

use super::block_header::{BlockHeader, Role, key};
use super::receive::{Content, ReceiveError};
use super::{Connection, Context};
use crate::raknet::event::{ConnectFailure, Direction, DisconnectReason, Progress};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::capsule::Split;
use crate::storage::{Block, Link, Purpose};

impl Connection {
    pub(super) fn handle_part(
        &mut self,
        cx: &mut Context<'_, '_>,
        header: BlockHeader,
        split: Split,
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        let record = match find_partial(cx, split.id) {
            Some(record) if contradicts(cx.pool.header(record), &header) => {
                cx.stats.drop(DropReason::BadSplit);
                return Ok(());
            }
            Some(record) => record,
            None => self.admit(cx, &header, split)?,
        };
        if find_part(cx, split.id, split.index).is_some() {
            cx.stats.drop(DropReason::DuplicateMessage);
            return Ok(());
        }
        self.store_part(cx, record, &header, payload)?;
        let partial = cx.pool.header_mut(record);
        partial.count += 1;
        let (done, parts) = (partial.count, partial.split_count);
        if done.checked_rem(cx.config.progress_interval) == Some(0) {
            let (direction, message) = (Direction::Receiving, split.id);
            self.inbox.progress = Some(Progress { direction, message, done, parts });
        }
        if done < parts {
            return Ok(());
        }
        // The sender waits for this message with all its parts acknowledged but the last.
        self.times.acknowledge_at = Some(cx.now);
        match self.complete(cx, record) {
            Some(message) => self.handle_whole(cx, &header, Content::Stored(message)),
            None => Ok(()),
        }
    }

    /// Makes the record of a message, with room promised for all of it.
    fn admit(
        &mut self,
        cx: &mut Context<'_, '_>,
        header: &BlockHeader,
        split: Split,
    ) -> Result<Block, ReceiveError> {
        let blocks_per_part = cx.pool.blocks_for(self.sizes.foreign_part());
        let count = usize::try_from(split.count).unwrap_or(usize::MAX);
        let promised = count.saturating_mul(blocks_per_part);
        if promised >= cx.receive_quota.min(cx.pool.most(Purpose::Receive)) {
            self.abort(cx, DisconnectReason::MessageTooLarge, ConnectFailure::Closed);
            return Err(ReceiveError::NoMemory);
        }
        let disposition = self.disposition(cx, header);
        if !self.inbox.admits(cx, promised + 1, disposition) || !cx.pool.promise(promised) {
            return Err(self.starve(cx));
        }
        let Some(record) = cx.pool.store(&[], Purpose::Receive, header) else {
            cx.pool.release_promise(promised);
            return Err(self.starve(cx));
        };
        let header = cx.pool.header_mut(record);
        header.role = Role::Partial;
        header.count = 0;
        header.promised = u32::try_from(promised).unwrap_or(u32::MAX);
        cx.index.insert(cx.pool, key::partial(cx.slot, split.id), record);
        self.inbox.partials.push(cx.pool, record);
        self.inbox.promised += promised;
        self.times.starved_since = None;
        self.inbox.take(1);
        Ok(record)
    }

    fn store_part(
        &mut self,
        cx: &mut Context<'_, '_>,
        record: Block,
        header: &BlockHeader,
        payload: &[u8],
    ) -> Result<(), ReceiveError> {
        let kept = BlockHeader { role: Role::Part, ..*header };
        let blocks = cx.pool.blocks_for(payload.len());
        // A part longer than the MTU allows takes more than was promised for it.
        let excess = blocks.saturating_sub(cx.pool.blocks_for(self.sizes.foreign_part()));
        let fits = excess == 0
            || self.inbox.admits(cx, excess, self.disposition(cx, header))
                && cx.pool.room(Purpose::Receive) >= excess;
        let stored = if fits { cx.pool.store(payload, Purpose::Promised, &kept) } else { None };
        let Some(part) = stored else {
            return Err(self.starve(cx));
        };
        self.times.starved_since = None;
        cx.index.insert(cx.pool, key::part(cx.slot, header.split_id, header.split_index), part);
        self.inbox.take(blocks);
        self.fulfil(cx, record, blocks - excess);
        Ok(())
    }

    /// Takes `blocks` blocks, or what is left, off a promise.
    fn fulfil(&mut self, cx: &mut Context<'_, '_>, record: Block, blocks: usize) {
        let header = cx.pool.header_mut(record);
        let part = blocks.min(header.promised as usize);
        header.promised -= u32::try_from(part).unwrap_or(header.promised);
        cx.pool.release_promise(part);
        self.inbox.promised = self.inbox.promised.saturating_sub(part);
    }

    /// Puts the parts of a complete message together and forgets its record.
    fn complete(&mut self, cx: &mut Context<'_, '_>, record: Block) -> Link {
        let split_id = cx.pool.header(record).split_id;
        let count = cx.pool.header(record).split_count;
        let mut whole: Link = None;
        for index in 0..count {
            let Some(part) = take_part(cx, split_id, index) else {
                continue;
            };
            match whole {
                None => whole = Some(part),
                Some(head) => cx.pool.join(head, part),
            }
        }
        self.inbox.partials.remove(cx.pool, record);
        self.forget_partial(cx, record);
        if let Some(whole) = whole {
            let header = cx.pool.header_mut(whole);
            header.role = Role::Message;
            header.split_count = 0;
        }
        whole
    }

    fn forget_partial(&mut self, cx: &mut Context<'_, '_>, record: Block) {
        let split_id = cx.pool.header(record).split_id;
        self.fulfil(cx, record, usize::MAX);
        cx.index.remove(cx.pool, key::partial(cx.slot, split_id), record);
        cx.pool.free(record);
        self.inbox.give_back(1);
    }

    /// Gives back the parts of messages that will never be complete. Work is bounded by the blocks promised to them.
    pub(super) fn clear_partials(&mut self, cx: &mut Context<'_, '_>) {
        while let Some(record) = self.inbox.partials.pop(cx.pool) {
            let (split_id, count) = (cx.pool.header(record).split_id, cx.pool.header(record).split_count);
            for index in 0..count {
                if let Some(part) = take_part(cx, split_id, index) {
                    let freed = cx.pool.free(part);
                    self.inbox.give_back(freed);
                }
            }
            self.forget_partial(cx, record);
        }
    }
}

/// Whether a part tells another story than the first one of its message.
fn contradicts(record: &BlockHeader, part: &BlockHeader) -> bool {
    record.split_count != part.split_count
        || record.reliability != part.reliability
        || record.channel != part.channel
        || record.order != part.order
        || record.sequence != part.sequence
}

fn find_partial(cx: &mut Context<'_, '_>, split_id: u16) -> Link {
    let owner = cx.slot;
    cx.index.find(cx.pool, key::partial(owner, split_id), |header| {
        header.role == Role::Partial && header.owner == owner && header.split_id == split_id
    })
}

fn find_part(cx: &mut Context<'_, '_>, split_id: u16, index: u32) -> Link {
    let owner = cx.slot;
    cx.index.find(cx.pool, key::part(owner, split_id, index), |header| {
        header.role == Role::Part
            && header.owner == owner
            && header.split_id == split_id
            && header.split_index == index
    })
}

fn take_part(cx: &mut Context<'_, '_>, split_id: u16, index: u32) -> Link {
    let part = find_part(cx, split_id, index)?;
    cx.index.remove(cx.pool, key::part(cx.slot, split_id, index), part);
    Some(part)
}

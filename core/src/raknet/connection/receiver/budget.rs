//! The memory that a connection may take for what it receives.

use super::reorder_buffer::Disposition;
use crate::raknet::connection::context::Context;
use crate::time::Instant;

/// Blocks that received messages take, within the quota of the connection. A pool has fewer than 2^32 blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveBudget {
    /// Blocks of messages and parts that are buffered or wait for the application.
    used: u32,
    /// Blocks that the pool promised to messages that arrive in parts.
    promised: u32,
    /// Since when nothing more has fitted although the application has read everything.
    exhausted_since: Option<Instant>,
}

impl ReceiveBudget {
    /// Whether `blocks` blocks more are within the quota. A message that has to wait for others gets half of it, so that
    /// those others find room.
    pub(super) const fn admits(&self, cx: &Context<'_, '_>, blocks: usize, disposition: Disposition) -> bool {
        let quota = match disposition {
            Disposition::Deliver | Disposition::Discard => cx.receive_quota,
            Disposition::Buffer => cx.receive_quota / 2,
        };
        self.used as usize + self.promised as usize + blocks <= quota
    }

    /// Counts blocks that were taken.
    pub(super) const fn take(&mut self, blocks: usize) {
        self.used += blocks as u32;
    }

    /// Counts blocks that went back to the pool.
    pub(super) const fn give_back(&mut self, blocks: usize) {
        self.used = self.used.saturating_sub(blocks as u32);
    }

    pub(super) const fn promise(&mut self, blocks: usize) {
        self.promised += blocks as u32;
    }

    pub(super) const fn release_promise(&mut self, blocks: usize) {
        self.promised = self.promised.saturating_sub(blocks as u32);
    }

    /// Something found room.
    pub(super) const fn on_fit(&mut self) {
        self.exhausted_since = None;
    }

    /// Something found no room. The other peer is to blame only while the application has nothing to read.
    pub(super) fn on_no_room(&mut self, now: Instant, inbox_is_empty: bool) {
        if inbox_is_empty {
            self.exhausted_since.get_or_insert(now);
        }
    }

    pub(super) const fn exhausted_since(&self) -> Option<Instant> {
        self.exhausted_since
    }

    pub(super) const fn set_exhausted_since(&mut self, since: Option<Instant>) {
        self.exhausted_since = since;
    }
}

//! The share of the memory that a connection has for what it receives, and why a capsule is refused.

use super::reorder_buffer::Disposition;
use crate::raknet::connection::block_header::Context;
use crate::storage::{Purpose, Share};
use crate::time::Instant;

/// Why a capsule could not be taken: its datagram is not acknowledged, so the other peer sends it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::raknet::connection) enum ReceiveError {
    NoMemory,
    OutsideWindow,
    /// The message can never fit into the memory of one connection.
    MessageTooLarge,
}

/// The share of received messages, with the blocks that were promised to messages which arrive in parts. Aligned to four bytes,
/// which takes four less of every connection.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(4))]
pub(super) struct ReceiveShare {
    pub(super) held: Share,
    /// Since when nothing more has fitted although the application has read everything.
    exhausted_since: Option<Instant>,
}

/// Returns the purpose of the blocks of a message with this disposition. One that has to wait for others gets half of the share, so
/// that those others find room.
const fn purpose(disposition: Disposition) -> Purpose {
    match disposition {
        Disposition::Deliver | Disposition::Discard => Purpose::Receive,
        Disposition::Buffer => Purpose::Early,
    }
}

impl ReceiveShare {
    /// Whether `blocks` blocks more are within the share.
    pub(super) fn admits(&self, cx: &Context<'_, '_>, blocks: usize, disposition: Disposition) -> bool {
        cx.pool.shares.check(&self.held, blocks, purpose(disposition)).is_ok()
    }

    /// Charges blocks to the share; false if they are not within it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(super) fn take(&mut self, cx: &mut Context<'_, '_>, blocks: usize, disposition: Disposition) -> bool {
        cx.pool.shares.charge(&mut self.held, blocks, purpose(disposition)).is_ok()
    }

    /// Releases blocks that went back to the pool, or that were promised and are not needed.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(super) fn give_back(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        cx.pool.shares.release(&mut self.held, blocks);
    }

    /// Something found room.
    pub(super) const fn on_fit(&mut self) {
        self.exhausted_since = None;
    }

    /// Something found no room. The other peer is to blame only while the application has nothing to read.
    pub(super) fn on_no_room(&mut self, now: Instant, inbox_is_empty: bool) {
        if inbox_is_empty && self.exhausted_since().is_none() {
            self.exhausted_since = Some(now);
        }
    }

    pub(super) const fn exhausted_since(&self) -> Option<Instant> {
        self.exhausted_since
    }

    pub(super) const fn set_exhausted_since(&mut self, since: Option<Instant>) {
        self.exhausted_since = since;
    }
}

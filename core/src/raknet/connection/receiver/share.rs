//! The memory share of a connection for received data, and the errors of receiving a capsule.

use super::reorder_buffer::Disposition;
use crate::raknet::connection::block_header::Context;
use crate::storage::{Purpose, Share};
use crate::time::Instant;

/// The reason why a capsule was not accepted.
///
/// Its datagram is not acknowledged, so the remote peer retransmits the reliable capsules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::raknet::connection) enum ReceiveError {
    NoMemory,
    OutsideWindow,
    /// The message can never fit into the memory of one connection.
    MessageTooLarge,
}

/// The receive share of a connection, including blocks reserved for split messages.
///
/// Four-byte alignment saves four bytes in every connection.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(4))]
pub(super) struct ReceiveShare {
    pub(super) held: Share,
    /// The time since which no charge has succeeded, although the application has read all messages.
    exhausted_since: Option<Instant>,
}

/// Returns the purpose for which the blocks of a message with this disposition are charged.
///
/// Messages that have to be buffered may use only half of the share; the other half is for their missing
/// predecessors.
const fn purpose(disposition: Disposition) -> Purpose {
    match disposition {
        Disposition::Deliver | Disposition::Discard => Purpose::Receive,
        Disposition::Buffer => Purpose::Early,
    }
}

impl ReceiveShare {
    /// Returns true if the share has `blocks` blocks left.
    pub(super) fn admits(&self, cx: &Context<'_, '_>, blocks: usize, disposition: Disposition) -> bool {
        cx.pool.shares.check(&self.held, blocks, purpose(disposition)).is_ok()
    }

    /// Charges blocks to the share; returns false if it has too few left.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(super) fn take(&mut self, cx: &mut Context<'_, '_>, blocks: usize, disposition: Disposition) -> bool {
        cx.pool.shares.charge(&mut self.held, blocks, purpose(disposition)).is_ok()
    }

    /// Releases blocks that were freed, or reserved and not needed.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(super) fn release(&mut self, cx: &mut Context<'_, '_>, blocks: usize) {
        cx.pool.shares.release(&mut self.held, blocks);
    }

    /// Called when a charge succeeded.
    pub(super) const fn on_fit(&mut self) {
        self.exhausted_since = None;
    }

    /// Called when a charge failed.
    ///
    /// Memory counts as exhausted only if the application has nothing left to read: then only the remote peer can free
    /// it.
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

//! Datagrams that were declared lost, and which of them is sent again next.

use super::{LossRecovery, MAY_BE_BLOCKED};
use crate::raknet::connection::block_header::{BlockHeader, OutgoingMessage, SendStatus};
use crate::raknet::connection::congestion::{Loss, LossTrigger};
use crate::raknet::connection::context::Context;
use crate::raknet::connection::send_source::SendSource;
use crate::storage::{Block, BlockLink};

/// How many of the oldest lost datagrams a newly lost one is compared with to find its place. Messages wait for the oldest
/// one, so it should be sent first.
const SORTED_LOST: usize = 128;
/// How many lost datagrams are searched for the next one to send while the receiver seems to be blocked.
const SEARCHED_LOST: usize = 1_024;

impl LossRecovery {
    /// Queues the messages of a datagram to be sent again. Without a trigger the datagram is only probed for, and the
    /// congestion window stays.
    pub(super) fn declare_lost(
        &mut self,
        cx: &mut Context<'_, '_>,
        first: Block,
        trigger: Option<LossTrigger>,
    ) {
        let ordinal = self.datagrams_lost as u32;
        let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) else { return };
        let SendStatus::InFlight { owner, number, bytes, sent_at, source } = *status else {
            debug_assert!(false, "not in flight: {status:?}");
            return;
        };
        *status = SendStatus::Lost { owner, number, bytes, sent_at, ordinal };
        if let (true, Some(blocked)) = (MAY_BE_BLOCKED, &mut self.blocked_receiver) {
            blocked.on_lost(source);
        }
        if let Some(black_hole) = self.black_hole.first_mut() {
            black_hole.on_lost(cx.now, sent_at, bytes, source == SendSource::PathProbe);
        }
        if let Some(trigger) = trigger {
            self.congestion.on_lost(&Loss { now: cx.now, sent_at, bytes, ordinal, trigger });
        }
        self.datagrams_lost += 1;
        self.in_flight.remove(cx.pool, first);
        self.bytes_in_flight = self.bytes_in_flight.saturating_sub(bytes);
        self.lost.insert(cx.pool, first, SORTED_LOST, |this, other| {
            let (Some(this), Some(other)) = (this.outgoing(), other.outgoing()) else { return false };
            this.reliable.is_older_than(other.reliable)
        });
    }

    /// Where the messages of the next datagram come from.
    pub(in super::super) fn source(&mut self) -> SendSource {
        match &mut self.blocked_receiver {
            Some(blocked) if MAY_BE_BLOCKED => blocked.source(),
            Some(_) | None => SendSource::Usual,
        }
    }

    /// Another source, if the last one had nothing to send.
    pub(in super::super) fn next_source(&mut self) -> SendSource {
        match &mut self.blocked_receiver {
            Some(blocked) if MAY_BE_BLOCKED => blocked.next_probe(),
            Some(_) | None => SendSource::Usual,
        }
    }

    /// Whether nothing is lost, and so [`take_lost`](Self::take_lost) has nothing to do.
    pub(in super::super) fn is_calm(&self) -> bool {
        self.lost.is_empty() && self.blocked_receiver.is_none()
    }

    /// Takes the lost datagram whose messages `source` sends next; they hang on the block that is returned.
    pub(in super::super) fn take_lost(&mut self, cx: &mut Context<'_, '_>, source: SendSource) -> BlockLink {
        let next = match source {
            SendSource::Usual => self.lost.oldest(),
            SendSource::OldestLost => self.oldest_lost(cx),
            SendSource::PartlyAcknowledged => self.preferred_lost(cx),
            SendSource::NewestLost => self.lost.newest(),
            SendSource::New(_) | SendSource::PathProbe => return None,
        };
        if MAY_BE_BLOCKED && self.lost.is_empty() {
            self.blocked_receiver = None;
        }
        let first = next?;
        self.untrack(cx, first);
        let BlockHeader::Outgoing(_, status) = cx.pool.header_mut(first) else { return None };
        if let SendStatus::Lost { number, ordinal, .. } = core::mem::replace(status, SendStatus::RESEND) {
            let replaced = self.recently_lost.push(cx.state.loss_history.lost(cx.slot), number, ordinal);
            self.reordering_window = self.reordering_window.saturating_sub(replaced);
        }
        Some(first)
    }

    /// The lost datagrams that may be searched for one datagram to send.
    fn searched<'c>(
        &self,
        cx: &'c Context<'_, '_>,
    ) -> impl Iterator<Item = (Block, &'c OutgoingMessage)> + use<'c> {
        let lost = self.lost.members(cx.pool).take(SEARCHED_LOST);
        lost.filter_map(|(first, header)| Some((first, header.outgoing()?)))
    }

    /// The lost datagram whose first message has the oldest number. The list is sorted only as far as that is cheap, but
    /// while the receiver is blocked everything may depend on this message.
    fn oldest_lost(&self, cx: &Context<'_, '_>) -> BlockLink {
        let oldest = self.searched(cx).reduce(|oldest, other| {
            if other.1.reliable.is_older_than(oldest.1.reliable) { other } else { oldest }
        });
        oldest.map(|(first, _)| first)
    }

    fn preferred_lost(&self, cx: &Context<'_, '_>) -> BlockLink {
        let blocked = self.blocked_receiver?;
        self.searched(cx).find(|(_, message)| blocked.prefers(message)).map(|(first, _)| first)
    }
}

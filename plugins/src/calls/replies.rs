//! Answers and refusals to remote callers, and calls that are answered later.

use heapless::Vec;
use rakwire::endpoint::{ConnectionId, MessageSender, Protocol, SendError};

use super::function::PendingCall;
use super::queue::{Queued, SendQueue};
use super::wire::{REFUSAL_BYTES, encoded};
use super::{CallStats, Message, Refusal};

/// A deferred call without an answer so far. It needs no message buffer.
#[derive(Debug)]
pub(super) struct Unanswered<P: Protocol> {
    pub(super) pending: PendingCall,
    pub(super) delivery: P::Delivery,
}

/// The replies to remote callers. One caller may occupy half of the slots.
#[derive(Debug)]
pub(super) struct Replies<P: Protocol, const CALLS: usize, const BYTES: usize> {
    /// Calls that are answered later.
    later: Vec<Unanswered<P>, CALLS>,
    /// Queued refusals of calls that exceeded the capacity.
    refusals: SendQueue<P, CALLS, REFUSAL_BYTES>,
    answers: SendQueue<P, CALLS, BYTES>,
}

impl<P: Protocol, const CALLS: usize, const BYTES: usize> Replies<P, CALLS, BYTES> {
    pub(super) const fn new() -> Self {
        Self { later: Vec::new(), refusals: SendQueue::new(), answers: SendQueue::new() }
    }

    /// Returns true if no slot is free for an answer to a caller, or for a deferred call of the caller if
    /// `is_later`.
    pub(super) fn is_busy(&self, caller: ConnectionId, is_later: bool) -> bool {
        let half = CALLS.div_ceil(2);
        if is_later {
            let of_caller = self.later.iter().filter(|call| call.pending.caller == caller).count();
            return of_caller >= half || self.later.is_full();
        }
        self.answers.waiting_for(caller) >= half
    }

    /// Stores a deferred call. Returns false if the capacity is reached.
    pub(super) fn defer(&mut self, call: Unanswered<P>) -> bool {
        self.later.push(call).is_ok()
    }

    /// Removes and returns a deferred call.
    pub(super) fn take_deferred(&mut self, pending: PendingCall) -> Option<Unanswered<P>> {
        let at = self.later.iter().position(|call| call.pending == pending)?;
        Some(self.later.swap_remove(at))
    }

    /// Queues the answer or the refusal of a call.
    pub(super) fn push(
        &mut self,
        call: Unanswered<P>,
        answer: Result<Vec<u8, BYTES>, Refusal>,
        stats: &mut CallStats,
    ) {
        let Unanswered { pending, delivery } = call;
        if answer.is_err() {
            stats.refused = stats.refused.saturating_add(1);
        }
        let refusal = |refusal| encoded(&Message::Refusal { number: pending.number, refusal });
        let bytes = answer.or_else(|reason| refusal(reason).ok_or(reason));
        let Ok(bytes) = bytes else { return };
        self.make_room(stats);
        if !self.answers.push(Queued { to: pending.caller, delivery, call: None, bytes }) {
            stats.busy = stats.busy.saturating_add(1);
        }
    }

    /// Frees a slot for an answer: drops an answer of the caller with the most answers, and notifies that caller.
    pub(super) fn make_room(&mut self, stats: &mut CallStats) {
        if !self.answers.is_full() {
            return;
        }
        let Some(Queued { to: caller, delivery, bytes, .. }) = self.answers.pop_of_fullest() else { return };
        stats.busy = stats.busy.saturating_add(1);
        if let Some(Message::Answer { number, .. } | Message::Refusal { number, .. }) =
            Message::decode(&bytes)
        {
            let call = Unanswered { pending: PendingCall { number, caller }, delivery };
            self.push_refusal(call, Refusal::AnswerDropped, stats);
        }
    }

    /// Queues a refusal for a call that exceeds the capacity. If the queue of refusals is full, refusals to the
    /// caller with the most refusals are dropped. A flood therefore costs other callers no refusals.
    pub(super) fn push_refusal(&mut self, call: Unanswered<P>, refusal: Refusal, stats: &mut CallStats) {
        let Unanswered { pending: PendingCall { number, caller: to }, delivery } = call;
        let Some(bytes) = encoded(&Message::Refusal { number, refusal }) else { return };
        if self.refusals.is_full() && self.refusals.pop_of_fullest().is_some() {
            stats.unsent = stats.unsent.saturating_add(1);
        }
        self.refusals.push(Queued { to, delivery, call: None, bytes });
    }

    /// Drops all replies and pending calls of a caller after its connection has closed.
    pub(super) fn forget(&mut self, caller: ConnectionId) {
        self.answers.retain(|message| message.to != caller);
        self.later.retain(|call| call.pending.caller != caller);
        self.refusals.retain(|message| message.to != caller);
    }

    /// Returns true if nothing is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.refusals.is_empty()
    }

    /// Sends replies while connections accept them.
    pub(super) fn send(&mut self, sender: &mut dyn MessageSender<P>, stats: &mut CallStats) {
        self.answers.send(sender, |answer, error| {
            stats.unsent = stats.unsent.saturating_add(1);
            let is_too_long = matches!(error, SendError::NeverFits | SendError::TooLong);
            if is_too_long { refusal_of(&answer.bytes) } else { None }
        });
        self.refusals.send(sender, |_, _| {
            stats.unsent = stats.unsent.saturating_add(1);
            None
        });
    }
}

/// Returns the refusal to send instead of an answer that is too long for the connection.
fn refusal_of<const BYTES: usize>(answer: &[u8]) -> Option<Vec<u8, BYTES>> {
    let Some(Message::Answer { number, .. }) = Message::decode(answer) else { return None };
    encoded(&Message::Refusal { number, refusal: Refusal::AnswerTooLong })
}

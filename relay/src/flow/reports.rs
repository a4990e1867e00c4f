//! What a client is told about its flow: the first message, and drops, at most once a second.

use std::mem;
use std::time::{Duration, Instant};

use super::control::{Secret, drops_message, flow_message};
use super::counters::DropReason;
use super::limits::FlowLimits;

/// The least time between two reports of drops.
const INTERVAL: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Reports {
    secret: Secret,
    /// Whether the flow was resumed by the present connection of the client.
    is_resumed: bool,
    /// Whether the client has to be told so.
    is_greeting_due: bool,
    drops: [u32; DropReason::ALL.len()],
    /// Whether drops were counted that the client does not know.
    is_behind: bool,
    /// Whether the next report waits for nothing but the client.
    is_due: bool,
    next_report: Instant,
}

impl Reports {
    pub(super) const fn new(secret: Secret, now: Instant) -> Self {
        Self {
            secret,
            is_resumed: false,
            is_greeting_due: true,
            drops: [0; DropReason::ALL.len()],
            is_behind: false,
            is_due: false,
            next_report: now,
        }
    }

    pub(super) const fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) fn count(&mut self, reason: DropReason, count: u64) {
        let sum = &mut self.drops[reason as usize];
        *sum = sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.is_behind = true;
    }

    /// A new connection of the client: it is told everything.
    pub(super) fn handle_attached(&mut self, now: Instant) {
        (self.is_resumed, self.is_greeting_due) = (true, true);
        self.is_behind = self.drops.iter().any(|count| *count > 0);
        self.next_report = now;
    }

    /// The client has not got the first message of its connection, or only after it asked.
    pub(super) const fn handle_flow_request(&mut self) {
        self.is_greeting_due = true;
    }

    /// The next message that is due.
    pub(super) fn poll(&mut self, now: Instant, limits: &FlowLimits) -> Option<String> {
        if mem::take(&mut self.is_greeting_due) {
            return Some(flow_message(
                &self.secret,
                limits.resume_within,
                self.is_resumed,
                limits.max_datagram,
            ));
        }
        self.handle_timeout(now);
        if !self.is_due {
            return None;
        }
        (self.is_behind, self.is_due) = (false, false);
        self.next_report = now + INTERVAL;
        Some(drops_message(|reason| self.drops[reason as usize].into()))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.is_behind && now >= self.next_report;
    }

    /// When [`Reports::handle_timeout`] is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        if self.is_behind && !self.is_due { Some(self.next_report) } else { None }
    }
}

//! What a client is told about its flow: the first message, and drops, at most once a second.

use std::time::{Duration, Instant};

use super::control::{Secret, drops_message, flow_message};
use super::counters::DropReason;

/// The least time between two reports of drops.
const INTERVAL: Duration = Duration::from_secs(1);

/// The least time between two first messages that a client asks for.
const GREETING_INTERVAL: Duration = Duration::from_millis(100);

/// How far the first message of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Greeting {
    Sent,
    /// The client has asked for it, but has had it a moment ago.
    Asked,
    Due,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Reports {
    secret: Secret,
    /// Whether the flow was resumed by the present connection of the client.
    is_resumed: bool,
    greeting: Greeting,
    /// When a client that asks for the first message has it again.
    next_greeting: Instant,
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
            greeting: Greeting::Due,
            next_greeting: now,
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
        (self.is_resumed, self.greeting) = (true, Greeting::Due);
        self.is_behind = self.drops.iter().any(|count| *count > 0);
        self.next_report = now;
    }

    /// The client has not got the first message of its connection, or only after it asked.
    pub(super) fn handle_flow_request(&mut self, now: Instant) {
        if self.greeting == Greeting::Sent {
            self.greeting = Greeting::Asked;
        }
        self.handle_timeout(now);
    }

    /// The next message that is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        resume_within: Duration,
        max_datagram: usize,
    ) -> Option<String> {
        self.handle_timeout(now);
        if self.greeting == Greeting::Due {
            self.greeting = Greeting::Sent;
            self.next_greeting = now + GREETING_INTERVAL;
            return Some(flow_message(&self.secret, resume_within, self.is_resumed, max_datagram));
        }
        if !self.is_due {
            return None;
        }
        (self.is_behind, self.is_due) = (false, false);
        self.next_report = now + INTERVAL;
        Some(drops_message(|reason| self.drops[reason as usize].into()))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.is_behind && now >= self.next_report;
        if self.greeting == Greeting::Asked && now >= self.next_greeting {
            self.greeting = Greeting::Due;
        }
    }

    /// When [`Reports::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let report = (self.is_behind && !self.is_due).then_some(self.next_report);
        let greeting = (self.greeting == Greeting::Asked).then_some(self.next_greeting);
        report.into_iter().chain(greeting).min()
    }
}

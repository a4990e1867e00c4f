//! What a client is told about its flow: the first message, and drops, at most once a second.

use std::time::{Duration, Instant};

use super::control::{Secret, draining_message, drops_message, flow_message};
use super::counters::DropReason;

/// The least time between two reports of drops.
const INTERVAL: Duration = Duration::from_secs(1);

/// The least time between two first messages that a client asks for.
const GREETING_INTERVAL: Duration = Duration::from_millis(100);

/// How often a client is told that the relay drains: a transport may lose messages.
const DRAINING_TIMES: u32 = 3;

/// The end of a relay that drains.
#[derive(Debug, Clone, Copy)]
struct Draining {
    /// When the flow ends.
    until: Instant,
    /// How many times it is still told.
    times: u32,
    next: Instant,
    is_due: bool,
}

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
    /// When a client that asks for the first message has it again: the first time at once, as it may have been lost.
    next_greeting: Instant,
    has_asked: bool,
    drops: [u32; DropReason::ALL.len()],
    /// Whether drops were counted that the client does not know.
    is_behind: bool,
    /// Whether the next report waits for nothing but the client.
    is_due: bool,
    next_report: Instant,
    draining: Option<Draining>,
}

impl Reports {
    pub(super) const fn new(secret: Secret, now: Instant) -> Self {
        Self {
            secret,
            is_resumed: false,
            greeting: Greeting::Due,
            next_greeting: now,
            has_asked: false,
            drops: [0; DropReason::ALL.len()],
            is_behind: false,
            is_due: false,
            next_report: now,
            draining: None,
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
        (self.is_resumed, self.greeting, self.has_asked) = (true, Greeting::Due, false);
        self.is_behind = self.drops.iter().any(|count| *count > 0);
        self.next_report = now;
        if let Some(Draining { until, .. }) = self.draining {
            self.handle_draining(now, until);
        }
    }

    /// The relay drains, and ends the flow at a time.
    pub(super) const fn handle_draining(&mut self, now: Instant, until: Instant) {
        self.draining = Some(Draining { until, times: DRAINING_TIMES, next: now, is_due: true });
    }

    /// The client has not got the first message of its connection, or only after it asked.
    pub(super) fn handle_flow_request(&mut self, now: Instant) {
        if self.greeting == Greeting::Sent {
            self.greeting = Greeting::Asked;
            self.has_asked = true;
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
            self.next_greeting = if self.has_asked { now + GREETING_INTERVAL } else { now };
            return Some(flow_message(&self.secret, resume_within, self.is_resumed, max_datagram));
        }
        if let Some(draining) = self.draining.as_mut().filter(|draining| draining.is_due) {
            draining.is_due = false;
            draining.times = draining.times.saturating_sub(1);
            draining.next = now + INTERVAL;
            return Some(draining_message(draining.until.saturating_duration_since(now)));
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
        if let Some(draining) = &mut self.draining {
            draining.is_due |= draining.times > 0 && now >= draining.next;
        }
        if self.greeting == Greeting::Asked && now >= self.next_greeting {
            self.greeting = Greeting::Due;
        }
    }

    /// When [`Reports::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let report = (self.is_behind && !self.is_due).then_some(self.next_report);
        let greeting = (self.greeting == Greeting::Asked).then_some(self.next_greeting);
        let waiting = self.draining.filter(|draining| draining.times > 0 && !draining.is_due);
        let draining = waiting.map(|draining| draining.next);
        report.into_iter().chain(greeting).chain(draining).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_is_told_three_times_and_again_to_a_connection_that_comes_back() {
        let now = Instant::now();
        let at = |millis| now + Duration::from_millis(millis);
        let mut reports = Reports::new(Secret::new([1; 16]), now);
        let poll = |reports: &mut Reports, millis| reports.poll(at(millis), INTERVAL, 1472);
        assert!(poll(&mut reports, 0).is_some_and(|text| text.contains("\"flow\"")));
        reports.handle_draining(at(0), at(5_000));
        assert_eq!(poll(&mut reports, 1).as_deref(), Some(r#"{"type":"draining","left_ms":4999}"#));
        assert_eq!((poll(&mut reports, 1), reports.poll_timeout()), (None, Some(at(1_001))));
        assert_eq!(poll(&mut reports, 1_001).as_deref(), Some(r#"{"type":"draining","left_ms":3999}"#));
        assert_eq!(poll(&mut reports, 6_000).as_deref(), Some(r#"{"type":"draining","left_ms":0}"#));
        assert_eq!((poll(&mut reports, 9_000), reports.poll_timeout()), (None, None));
        reports.handle_attached(at(9_000));
        assert!(poll(&mut reports, 9_000).is_some_and(|text| text.contains("\"flow\"")));
        assert!(poll(&mut reports, 9_000).is_some_and(|text| text.contains("draining")));
    }
}

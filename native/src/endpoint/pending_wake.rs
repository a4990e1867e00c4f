//! A wake of the driver that several messages share.

use rakwire::Instant;

/// A wake of the driver, which has not run since. Until it runs, senders neither wake it again nor read the clock, except
/// after many messages.
#[derive(Debug)]
pub(crate) struct PendingWake {
    at: Instant,
    messages: u16,
}

/// The messages that share a wake and a reading of the clock.
const MESSAGES_PER_WAKE: u16 = 64;

impl PendingWake {
    pub(crate) const fn new(at: Instant) -> Self {
        Self { at, messages: MESSAGES_PER_WAKE }
    }

    /// The time of the wake, if one more message may share it.
    pub(crate) fn share(&mut self) -> Option<Instant> {
        self.messages = self.messages.checked_sub(1)?;
        Some(self.at)
    }
}

//! Wakes of the driver that several messages share.

use rakwire::Instant;

/// The driver was woken for a message and has not run yet. Until it runs, senders need neither wake it again nor read the
/// clock; only after many messages the clock is read again.
#[derive(Debug)]
pub(crate) struct PendingWake {
    at: Instant,
    messages: u16,
}

/// Messages that are sent with one reading of the clock.
const MESSAGES_A_WAKE: u16 = 64;

impl PendingWake {
    pub(crate) const fn new(at: Instant) -> Self {
        Self { at, messages: MESSAGES_A_WAKE }
    }

    /// The time of the wake, for one more message that shares it.
    pub(crate) fn share(&mut self) -> Option<Instant> {
        self.messages = self.messages.checked_sub(1)?;
        Some(self.at)
    }
}

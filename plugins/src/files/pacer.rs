//! Limits a rate in bytes per second.

use core::num::NonZeroU32;
use core::time::Duration;

use rakwire::Instant;

/// The maximum time of inactivity that counts as credit.
const BURST: Duration = Duration::from_millis(100);

/// Decides when the next bytes may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    pub(super) bytes_per_second: Option<NonZeroU32>,
    next: Option<Instant>,
}

impl Pacer {
    pub(super) fn ready_at(&self) -> Instant {
        self.next.unwrap_or(Instant::ZERO)
    }

    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.ready_at() <= now
    }

    pub(super) fn sent(&mut self, now: Instant, bytes: usize) {
        let Some(rate) = self.bytes_per_second else {
            self.next = None;
            return;
        };
        let begin = self.next.filter(|next| now.saturating_since(*next) <= BURST).unwrap_or(now);
        let micros =
            u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000) / u64::from(rate.get());
        self.next = Some(begin + Duration::from_micros(micros));
    }
}

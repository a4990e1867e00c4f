//! Validation of the address of a client that gave no cookie, and the limit of what it is sent until then (RFC 9000 section 8).
//!
//! The first pings of such a connection carry a number that only the server and the receiver of the pings know, in place of a
//! time that can be guessed. A client sends the time of a ping back as it is, so its pong shows that it receives what is sent
//! to its address. Acknowledgements show nothing: datagrams are numbered from 0 on.

use core::time::Duration;

use crate::cookie;
use crate::raknet::connection::context::Context;
use crate::raknet::features::SERVER;

/// How many times the bytes that have arrived may be sent (RFC 9000 section 8.1).
const AMPLIFICATION: u16 = 3;
/// The longest time between two pings: one may be lost, and until a pong comes little is sent.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// How old a ping may be, in milliseconds, whose pong still counts. The number in it has 52 bits, so each guess that is a time
/// of this range hits with a probability of less than 2^-36.
const MAX_PING_AGE: u64 = 30_000;

/// What a client may be sent whose address may be forged. A client that sends more than this pays for is not that.
#[derive(Clone, Copy, Debug)]
struct Budget {
    bytes: u16,
    /// Whether something waits for more of them.
    is_blocked: bool,
}

/// See the module. A peer without the feature `server` keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressValidation {
    /// None once the address is validated.
    budget: [Option<Budget>; if SERVER { 1 } else { 0 }],
}

impl AddressValidation {
    fn budget(&self) -> Option<&Budget> {
        self.budget.first()?.as_ref()
    }

    fn budget_mut(&mut self) -> Option<&mut Budget> {
        self.budget.first_mut()?.as_mut()
    }

    pub(super) fn require(&mut self, bytes: usize) {
        if let Some(budget) = self.budget.first_mut() {
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            *budget = Some(Budget { bytes, is_blocked: false });
        }
    }

    pub(super) fn is_required(&self) -> bool {
        self.budget().is_some()
    }

    pub(super) fn on_received(&mut self, bytes: usize) {
        if let Some(budget) = self.budget_mut() {
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX).saturating_mul(AMPLIFICATION);
            *budget = Budget { bytes: budget.bytes.saturating_add(bytes), is_blocked: false };
        }
    }

    pub(super) fn on_sent(&mut self, bytes: usize) {
        if let Some(budget) = self.budget_mut() {
            let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
            budget.bytes = budget.bytes.saturating_sub(bytes);
        }
    }

    /// Whether a datagram with messages may have so many bytes; if not, what it would carry waits until more has arrived. Pings
    /// and acknowledgements are charged and do not wait.
    pub(super) fn allows(&mut self, bytes: usize) -> bool {
        let Some(budget) = self.budget_mut() else { return true };
        let is_within = u16::try_from(bytes).is_ok_and(|bytes| bytes <= budget.bytes);
        budget.is_blocked |= !is_within;
        is_within
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.budget().is_some_and(|budget| budget.is_blocked)
    }

    /// How often pings are sent, if they are otherwise sent at `interval`.
    pub(super) fn ping_interval(&self, interval: Option<Duration>) -> Option<Duration> {
        if self.is_required() {
            return Some(interval.map_or(PING_INTERVAL, |interval| interval.min(PING_INTERVAL)));
        }
        interval
    }

    /// What a ping carries for `time`.
    pub(super) fn mask(&self, cx: &Context<'_, '_>, time: u64) -> u64 {
        if self.is_required() { time.wrapping_add(nonce(cx)) } else { time }
    }

    /// The time of a ping whose pong brings `time` back.
    pub(super) fn on_echo(&mut self, cx: &Context<'_, '_>, time: u64) -> u64 {
        if !self.is_required() {
            return time;
        }
        let time = time.wrapping_sub(nonce(cx));
        if cx.now.as_millis().wrapping_sub(time) <= MAX_PING_AGE {
            *self = Self::default();
        }
        time
    }
}

/// The number that the pings of this connection carry.
fn nonce(cx: &Context<'_, '_>) -> u64 {
    let connection = u64::from(cx.generation) << 16 | u64::from(cx.slot);
    cx.remote.map_or(0, |remote| cookie::nonce(&cx.config.secret, &remote, connection))
}

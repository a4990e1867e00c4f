//! Pings and pongs of an open connection (docs/raknet.md#pings).
//!
//! They measure the round-trip time and the remote clock. They also validate the address of a client that returned no
//! cookie; until then the anti-amplification limit applies (RFC 9000 section 8). The first pings of such a connection
//! carry an unpredictable number in place of a time. A client echoes that number in its pong, which proves that it
//! receives datagrams at its address. Acknowledgements prove nothing, because datagram numbers start at 0.

use core::time::Duration;

use crate::cookie;
use crate::raknet::config::SERVER;
use crate::raknet::connection::block_header::Context;
use crate::raknet::stats::ConnectionStats;
use crate::raknet::wire::control::Control;
use crate::time::Instant;

/// The pings and pongs that are due, and the results of pongs.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Pings {
    /// When the next ping is due.
    ping_at: Option<Instant>,
    /// When the last ping was sent.
    pinged_at: Option<Instant>,
    /// Set if a ping is to be sent in the next datagram.
    ping_due: bool,
    /// Set if pings and pongs are sent in the next datagram with messages, after the messages.
    follows: bool,
    /// Set if a pong is to be sent in the next datagram.
    pong_due: bool,
    /// The time in the last ping from the remote peer.
    ///
    /// Only the last ping is answered, so a flood of pings takes no memory.
    pong_time: u64,
    stats: PingStats,
}

impl Pings {
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.ping_at
    }

    /// Schedules the next ping, `interval` after now.
    pub(super) fn schedule(&mut self, now: Instant, interval: Option<Duration>) {
        self.ping_at = interval.map(|interval| now + interval);
    }

    /// Requests a ping in the next datagram.
    pub(super) const fn request_ping(&mut self) {
        self.ping_due = true;
    }

    /// Puts pending pings and pongs after the messages of the next datagram.
    pub(in super::super) const fn follow_messages(&mut self) {
        self.follows = true;
    }

    /// Returns true if pending pings and pongs wait for messages.
    pub(super) const fn follows_messages(&self) -> bool {
        self.follows
    }

    /// Called when messages are sent.
    pub(super) const fn on_messages_sent(&mut self) {
        self.follows = false;
    }

    /// Called when a ping is sent, or a handshake message that also measures the RTT.
    pub(in super::super) const fn on_ping_sent(&mut self, now: Instant) {
        self.pinged_at = Some(now);
    }

    /// Handles a ping from the remote peer.
    pub(in super::super) const fn on_ping(&mut self, time: u64) {
        self.pong_time = time;
        self.pong_due = true;
    }

    /// Handles a pong, or a handshake message that acts as one; returns false if it answers no ping.
    ///
    /// The time in the message has a resolution of milliseconds; the RTT is computed from the exact send time of the
    /// ping.
    pub(in super::super) fn on_pong(&mut self, now: Instant, ping_time: u64, remote_time: u64) -> bool {
        let pinged_at = self.pinged_at.filter(|pinged_at| pinged_at.as_millis() == ping_time);
        let Some(pinged_at) = pinged_at else { return false };
        let ping = now.micros_since(pinged_at);
        self.stats.sample(ping, pinged_at.plus_micros(ping / 2).as_millis(), remote_time);
        true
    }

    /// Takes the ping that is due.
    pub(super) fn take_ping(&mut self, now: Instant) -> bool {
        let is_due = core::mem::take(&mut self.ping_due);
        if is_due {
            self.on_ping_sent(now);
        }
        is_due
    }

    /// Takes the pong that is due.
    pub(super) fn take_pong(&mut self, now: Instant) -> Option<Control<'static>> {
        let due = core::mem::take(&mut self.pong_due);
        due.then(|| Control::Pong { ping_time: self.pong_time, time: now.as_millis() })
    }

    /// Returns the remote clock minus the local clock in milliseconds; `None` before the first pong.
    pub(in super::super) fn clock_difference(&self) -> Option<i64> {
        self.stats.difference()
    }

    pub(super) fn fill_stats(&self, stats: &mut ConnectionStats) {
        self.stats.fill(stats);
    }
}

/// The number of pings over which the average and the clock difference are computed.
#[cfg(feature = "full")]
const SAMPLES: usize = 5;

/// The round-trip times of the last pings, and the minimum of all.
///
/// The struct is packed, because every connection has one.
#[cfg(feature = "full")]
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
struct PingStats {
    /// The round-trip times in microseconds; 0 for an unused entry.
    micros: [u32; SAMPLES],
    /// The remote clock minus the local clock in milliseconds, at the first ping.
    difference: i64,
    /// The change of the clock difference since the first ping, for each of the last pings.
    drifts: [i16; SAMPLES],
    count: u8,
    lowest: u32,
}

#[cfg(feature = "full")]
impl PingStats {
    /// Adds a ping with a round-trip time of `ping` microseconds.
    ///
    /// The remote clock showed `remote` milliseconds when the local clock showed `local`. The caller estimates `local`
    /// as the time halfway between ping and pong.
    fn sample(&mut self, ping: u32, local: u64, remote: u64) {
        let micros = ping.max(1);
        let drift = self.drift(remote.wrapping_sub(local) as i64);
        let at = usize::from(self.count) % SAMPLES;
        if let (Some(place), Some(beside)) = (self.micros.get_mut(at), self.drifts.get_mut(at)) {
            (*place, *beside) = (micros, drift);
        }
        self.lowest = if self.count == 0 { micros } else { self.lowest.min(micros) };
        self.count = self.count.wrapping_add(1).max(1);
    }

    /// Returns the change of the clock difference since the first ping.
    ///
    /// If either clock was set by more than half a minute, all earlier pings are discarded.
    fn drift(&mut self, difference: i64) -> i16 {
        let drift = i16::try_from(difference.wrapping_sub(self.difference));
        drift.ok().filter(|_| self.count > 0).unwrap_or_else(|| {
            self.micros = [0; SAMPLES];
            self.difference = difference;
            0
        })
    }

    fn filled(&self) -> impl Iterator<Item = (u32, i16)> {
        let samples = self.micros.iter().copied().zip(self.drifts);
        samples.filter(|(micros, _)| *micros > 0)
    }

    fn last(&self) -> Duration {
        let last = usize::from(self.count.wrapping_sub(1)) % SAMPLES;
        Duration::from_micros(self.micros.get(last).copied().unwrap_or(0).into())
    }

    const fn lowest(&self) -> Duration {
        Duration::from_micros(self.lowest as u64)
    }

    fn average(&self) -> Duration {
        let sum: u64 = self.filled().map(|(micros, _)| u64::from(micros)).sum();
        let count = self.filled().count() as u64;
        Duration::from_micros(sum.checked_div(count).unwrap_or(0))
    }

    fn fill(&self, stats: &mut ConnectionStats) {
        stats.last_ping = self.last();
        stats.average_ping = self.average();
        stats.lowest_ping = self.lowest();
        stats.clock_difference = self.difference();
    }

    /// Returns the remote clock minus the local clock in milliseconds, by the fastest of the last five pings.
    fn difference(&self) -> Option<i64> {
        let fastest = self.filled().min_by_key(|(micros, _)| *micros);
        fastest.map(|(_, drift)| self.difference.wrapping_add(drift.into()))
    }
}

/// The result of the last pong. In the small profile only the clock difference is stored.
#[cfg(not(feature = "full"))]
#[derive(Clone, Copy, Debug, Default)]
struct PingStats {
    /// The remote clock minus the local clock in milliseconds.
    difference: Option<i64>,
}

#[cfg(not(feature = "full"))]
impl PingStats {
    /// Adds a pong: the remote clock showed `remote` milliseconds when the local one showed `local`.
    const fn sample(&mut self, _: u32, local: u64, remote: u64) {
        self.difference = Some(remote.wrapping_sub(local) as i64);
    }

    const fn fill(&self, stats: &mut ConnectionStats) {
        stats.clock_difference = self.difference;
    }

    /// Returns the remote clock minus the local clock in milliseconds, by the last ping.
    const fn difference(&self) -> Option<i64> {
        self.difference
    }
}

/// The factor of the anti-amplification limit (RFC 9000 section 8.1).
const AMPLIFICATION: u16 = 3;
/// The maximum ping interval before validation. It is short, because a ping may be lost and the anti-amplification
/// limit applies until a pong is received.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum age in milliseconds of a ping that a pong may answer.
///
/// The secret number has 52 bits, so a guessed pong yields an age in this range with a probability below 2^-36.
const MAX_PING_AGE: u64 = 30_000;

/// The bytes that may be sent to a client with an unvalidated address.
///
/// A client that sends more than the counter can represent counts as validated.
#[derive(Clone, Copy, Debug)]
struct Budget {
    bytes: u16,
    /// Set while messages are delayed until more bytes are received.
    is_blocked: bool,
}

/// Address validation by pings, as the module describes.
///
/// Without the feature `server` it stores nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressValidation {
    /// `None` once the address is validated.
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

    /// Returns true if a datagram with messages may have this many bytes.
    ///
    /// If not, its messages are delayed until more bytes are received. Pings and acknowledgements are charged but not
    /// delayed.
    pub(super) fn allows(&mut self, bytes: usize) -> bool {
        let Some(budget) = self.budget_mut() else { return true };
        let is_within = u16::try_from(bytes).is_ok_and(|bytes| bytes <= budget.bytes);
        budget.is_blocked |= !is_within;
        is_within
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.budget().is_some_and(|budget| budget.is_blocked)
    }

    /// Returns the ping interval; `interval` is the configured one.
    pub(super) fn ping_interval(&self, interval: Option<Duration>) -> Option<Duration> {
        if self.is_required() {
            return Some(interval.map_or(PING_INTERVAL, |interval| interval.min(PING_INTERVAL)));
        }
        interval
    }

    /// Returns the number to send in a ping in place of `time`.
    pub(super) fn mask(&self, cx: &Context<'_, '_>, time: u64) -> u64 {
        if self.is_required() { time.wrapping_add(nonce(cx)) } else { time }
    }

    /// Returns the send time of the ping to which a pong with `time` belongs.
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

/// Returns the secret number in the pings of this connection.
fn nonce(cx: &Context<'_, '_>) -> u64 {
    let connection = u64::from(cx.generation) << 16 | u64::from(cx.slot);
    cx.remote.map_or(0, |remote| cookie::nonce(&cx.config.secret, &remote, connection))
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_the_last_five_pings_determines_the_clock_difference() {
        let mut ping_stats = PingStats::default();
        assert_eq!(
            (ping_stats.last(), ping_stats.average(), ping_stats.difference()),
            (Duration::ZERO, Duration::ZERO, None)
        );
        for (millis, remote) in [(50, 9_000), (10, 5_500), (30, 7_000)] {
            ping_stats.sample(millis * 1_000, 5_000, remote);
        }
        assert_eq!(ping_stats.last(), Duration::from_millis(30));
        assert_eq!(ping_stats.average(), Duration::from_millis(30));
        assert_eq!(ping_stats.difference(), Some(500));
        for _ in 0..5 {
            ping_stats.sample(20 * 1_000, 5_000, 4_000);
        }
        assert_eq!(ping_stats.difference(), Some(-1_000));
        assert_eq!(ping_stats.lowest(), Duration::from_millis(10));
        for remote in [1 << 63, 0, u64::MAX >> 1, 5_000] {
            ping_stats.sample(40 * 1_000, 5_000, remote);
            assert_eq!(ping_stats.difference(), Some(remote.wrapping_sub(5_000) as i64));
            assert_eq!(ping_stats.lowest(), Duration::from_millis(10));
        }
    }
}

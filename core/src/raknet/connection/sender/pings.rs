//! Pings and pongs of an open connection (docs/raknet.md#pings): which are due, and what they say of the path and of the other
//! peer's clock.
//!
//! They also validate the address of a client that gave no cookie, who is sent little until then (RFC 9000 section 8).
//! The first pings of such a connection carry a number that only the server and the receiver of the pings know, in place of a
//! time that can be guessed. A client sends the time of a ping back as it is, so its pong shows that it receives what is sent
//! to its address. Acknowledgements show nothing: datagrams are numbered from 0 on.

use core::time::Duration;

use crate::cookie;
use crate::raknet::config::SERVER;
use crate::raknet::connection::block_header::Context;
use crate::raknet::stats::ConnectionStats;
use crate::raknet::wire::control::Control;
use crate::time::Instant;

/// Which ping and which pong are due, and what pongs have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Pings {
    /// When the next ping is due.
    ping_at: Option<Instant>,
    /// When the last ping was sent.
    pinged_at: Option<Instant>,
    /// Whether the next datagram carries a ping.
    ping_due: bool,
    /// Whether pings and pongs stand behind the messages of the next datagram that has some.
    follows: bool,
    /// Whether the next datagram carries a pong.
    pong_due: bool,
    /// The time in the last ping of the other peer. Only that one is answered: a flood of pings takes no memory.
    pong_time: u64,
    stats: PingStats,
}

impl Pings {
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.ping_at
    }

    /// Schedules the ping after the one that is sent now.
    pub(super) fn schedule(&mut self, now: Instant, interval: Option<Duration>) {
        self.ping_at = interval.map(|interval| now + interval);
    }

    /// Lets the next datagram carry a ping.
    pub(super) const fn request_ping(&mut self) {
        self.ping_due = true;
    }

    /// Lets what is due stand behind the messages of the next datagram.
    pub(in super::super) const fn follow_messages(&mut self) {
        self.follows = true;
    }

    /// Whether what is due waits for messages.
    pub(super) const fn follows_messages(&self) -> bool {
        self.follows
    }

    /// The messages are sent now.
    pub(super) const fn on_messages_sent(&mut self) {
        self.follows = false;
    }

    /// A ping is sent now, or a message of the handshake that serves as one.
    pub(in super::super) const fn on_ping_sent(&mut self, now: Instant) {
        self.pinged_at = Some(now);
    }

    /// The other peer sent a ping.
    pub(in super::super) const fn on_ping(&mut self, time: u64) {
        self.pong_time = time;
        self.pong_due = true;
    }

    /// A pong arrived, or a message of the handshake that serves as one; false if no such ping was sent. The message
    /// carries milliseconds, but this end knows more exactly when the ping was sent.
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

    /// The other peer's clock minus this one in milliseconds, once there was a pong.
    pub(in super::super) fn clock_difference(&self) -> Option<i64> {
        self.stats.difference()
    }

    pub(super) fn fill_stats(&self, stats: &mut ConnectionStats) {
        stats.last_ping = self.stats.last();
        stats.average_ping = self.stats.average();
        stats.lowest_ping = self.stats.lowest();
        stats.clock_difference = self.stats.difference();
    }
}

/// How many pings the average and the clock difference are computed from.
#[cfg(feature = "statistics")]
const SAMPLES: usize = 5;

/// The last pings, and the shortest of all. Packed, since each connection has one for as long as it lasts.
#[cfg(feature = "statistics")]
#[derive(Clone, Copy, Debug, Default)]
#[repr(Rust, packed(4))]
struct PingStats {
    /// How long they took, in microseconds; zero for none yet.
    micros: [u32; SAMPLES],
    /// The other clock minus ours, in milliseconds, at the first of them.
    difference: i64,
    /// How much more it was at each of them.
    drifts: [i16; SAMPLES],
    count: u8,
    lowest: u32,
}

#[cfg(feature = "statistics")]
impl PingStats {
    /// A ping took so many microseconds; the other clock read `remote` milliseconds when ours read `local`, half of it before now.
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

    /// How much more a difference of the clocks is than the first. A clock that is set by more than half a minute makes
    /// all earlier pings worthless.
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

    /// The other clock minus ours in milliseconds, by the ping that was the fastest of the last five.
    fn difference(&self) -> Option<i64> {
        let fastest = self.filled().min_by_key(|(micros, _)| *micros);
        fastest.map(|(_, drift)| self.difference.wrapping_add(drift.into()))
    }
}

/// What the last pong showed. A peer that is built without statistics keeps of pongs only what the other peer's clock shows.
#[cfg(not(feature = "statistics"))]
#[derive(Clone, Copy, Debug, Default)]
struct PingStats {
    /// The other clock minus ours, in milliseconds.
    difference: Option<i64>,
}

#[cfg(not(feature = "statistics"))]
impl PingStats {
    /// The other clock read `remote` milliseconds when ours read `local`.
    const fn sample(&mut self, _: u32, local: u64, remote: u64) {
        self.difference = Some(remote.wrapping_sub(local) as i64);
    }

    const fn last(&self) -> Duration {
        Duration::ZERO
    }

    const fn lowest(&self) -> Duration {
        Duration::ZERO
    }

    const fn average(&self) -> Duration {
        Duration::ZERO
    }

    /// The other clock minus ours in milliseconds, by the last ping.
    const fn difference(&self) -> Option<i64> {
        self.difference
    }
}

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

#[cfg(all(test, feature = "statistics"))]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_of_the_last_five_sets_the_clock() {
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

//! Pings and pongs of an open connection (docs/raknet.md#pings).

use core::time::Duration;

use super::ping_stats::PingStats;
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

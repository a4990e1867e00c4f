//! When a connection wants to be looked at again, and what happens then.

use core::time::Duration;

use super::{Connection, Context, State};
use crate::raknet::delivery::{Delivery, Priority};
use crate::raknet::event::{ConnectFailure, DisconnectReason};
use crate::raknet::wire::control::Control;
use crate::time::Instant;

/// Points in time that timers are computed from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) made_at: Instant,
    /// When the connection came into its state.
    pub(super) state_since: Instant,
    /// When something of the other peer arrived last.
    pub(super) silent_since: Instant,
    /// Since when the other peer has owed acknowledgements without a break.
    pub(super) owed_since: Option<Instant>,
    /// When the first datagram arrived that is not acknowledged yet, or sooner if it cannot wait.
    pub(super) acknowledge_at: Option<Instant>,
    /// When something was last sent that the other peer must acknowledge.
    pub(super) reliable_sent: Instant,
    pub(super) ping_at: Option<Instant>,
    /// When the last ping was sent.
    pub(super) pinged: Option<Instant>,
    /// Whether a ping is due.
    pub(super) ping_due: bool,
    /// The time of the last ping of the other peer that got no pong yet. Others before it get none: a flood of pings
    /// takes no memory.
    pub(super) pong_time: u64,
    pub(super) pong_due: bool,
    /// Since when nothing more fits into the memory for what arrives.
    pub(super) starved_since: Option<Instant>,
}

impl Times {
    pub(super) fn new(now: Instant) -> Self {
        Self { made_at: now, state_since: now, silent_since: now, reliable_sent: now, ..Self::default() }
    }
}

/// How long a connection that is over still answers what the other peer resends.
const DRAIN: Duration = Duration::from_secs(1);

impl Connection {
    /// When the connection wants to be looked at next.
    pub(crate) fn deadline(&self, cx: &Context<'_, '_>) -> Option<Instant> {
        let in_state = match &self.state {
            State::Free | State::Gone => return None,
            State::Aborting => return Some(self.times.state_since + DRAIN),
            State::Opening(opening) => Some(opening.next_request()),
            State::Requested | State::Unverified | State::AwaitingNewIncoming => {
                Some(self.times.state_since + cx.config.handshake_timeout)
            }
            State::Connected => self.connected_deadline(),
            State::Closing | State::Refusing => Some(self.times.state_since + cx.config.close_timeout),
            State::Draining => Some(self.times.state_since + DRAIN),
        };
        let acknowledge = self.times.acknowledge_at.filter(|_| self.ack_tracker.unacknowledged() > 0);
        let starved = self.times.starved_since.map(|since| since + self.timeout());
        let resend = self.recovery.deadline(cx);
        let send = self.send_deadline(cx);
        [in_state, acknowledge, starved, resend, send, self.silence_deadline()].into_iter().flatten().min()
    }

    fn connected_deadline(&self) -> Option<Instant> {
        let probe = self.is_delivered().then(|| self.probe_at());
        [self.times.ping_at, probe].into_iter().flatten().min()
    }

    /// When an idle connection makes sure that the other peer still acknowledges.
    fn probe_at(&self) -> Instant {
        self.times.reliable_sent + self.timeout() / 2
    }

    /// When the other peer counts as lost; only one that owes an acknowledgement can be.
    fn silence_deadline(&self) -> Option<Instant> {
        let owed_since = self.times.owed_since?;
        Some(owed_since.max(self.times.silent_since) + self.timeout())
    }

    /// Does what is due.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<'_, '_>) {
        if self.silence_deadline().is_some_and(|at| at <= cx.now) {
            self.abort(cx, DisconnectReason::Lost, ConnectFailure::NoAnswer);
            return;
        }
        if self.times.starved_since.is_some_and(|since| since + self.timeout() <= cx.now) {
            self.abort(cx, DisconnectReason::ReceiveMemory, ConnectFailure::Closed);
            return;
        }
        self.recovery.on_timeout(cx);
        match self.state {
            State::Free | State::Gone => {}
            State::Opening(opening) => self.on_opening_timeout(cx, opening),
            State::Requested | State::Unverified | State::AwaitingNewIncoming => {
                if self.times.state_since + cx.config.handshake_timeout <= cx.now {
                    self.abort(cx, DisconnectReason::Lost, ConnectFailure::NoAnswer);
                }
            }
            State::Connected => self.on_connected_timeout(cx),
            State::Closing | State::Refusing => {
                if self.times.state_since + cx.config.close_timeout <= cx.now {
                    self.abort(cx, DisconnectReason::Local, ConnectFailure::Cancelled);
                }
            }
            State::Draining | State::Aborting => {
                if self.times.state_since + DRAIN <= cx.now {
                    self.state = State::Gone;
                }
            }
        }
    }

    fn on_connected_timeout(&mut self, cx: &mut Context<'_, '_>) {
        if self.times.ping_at.is_some_and(|at| at <= cx.now) {
            self.ping(cx, Delivery::UNRELIABLE);
        }
        if self.is_delivered() && self.probe_at() <= cx.now {
            self.times.reliable_sent = cx.now;
            self.ping(cx, Delivery::RELIABLE);
        }
    }

    pub(super) fn ping(&mut self, cx: &mut Context<'_, '_>, delivery: Delivery) {
        self.times.ping_at = cx.config.ping_interval.map(|interval| cx.now + interval);
        if !delivery.reliability.is_reliable() {
            self.times.ping_due = true;
            return;
        }
        self.times.pinged = Some(cx.now);
        let ping = Control::Ping { time: cx.now.as_millis() };
        self.send_control(cx, &ping, delivery.with_priority(Priority::Immediate));
    }
}

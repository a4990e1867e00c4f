//! Congestion control: how many bytes may be in flight, and how fast they leave.

#[cfg(feature = "delay-based")]
mod delay_based;
mod new_reno;

#[cfg(feature = "delay-based")]
use delay_based::DelayBased;
use new_reno::NewReno;

use crate::raknet::config::CongestionControl;
use crate::serial::U24;
use crate::time::Instant;

/// Datagrams in the first window (RFC 9002 section 7.2).
pub(super) const INITIAL_DATAGRAMS: u32 = 10;
/// Datagrams in the smallest window. RFC 9002 section 7.2 has 2; `docs/congestion.md` says why this is larger.
const MIN_DATAGRAMS: u32 = 8;
/// Datagrams in the largest window: as many as one acknowledgement may make this end look up.
const MAX_DATAGRAMS: u32 = 8_192;

/// What an acknowledgement says of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSample {
    pub(super) now: Instant,
    /// Bytes that were in flight and are acknowledged.
    pub(super) bytes: u32,
    /// Bytes in flight before.
    pub(super) in_flight: u32,
    /// The newest number that was acknowledged.
    pub(super) newest: U24,
    /// The number of the next datagram that will be sent.
    pub(super) next: U24,
    /// Microseconds since the newest acknowledged datagram was sent.
    pub(super) rtt: u32,
    /// Microseconds between the sending of the oldest and of the newest acknowledged datagram. The other peer waited at
    /// least that long before it acknowledged the oldest.
    pub(super) ack_span: u32,
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossTrigger {
    /// A later datagram was acknowledged and the time threshold is over (RFC 9002 section 6.1.2), or nothing was
    /// acknowledged for several timeouts. The acknowledgement may be what was lost.
    TimeThreshold,
    /// The other peer sent a negative acknowledgement.
    Nack,
}

/// A datagram that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) now: Instant,
    pub(super) sent_at: Instant,
    pub(super) bytes: u32,
    /// How many were declared lost before, modulo 2^32.
    pub(super) ordinal: u32,
    pub(super) trigger: LossTrigger,
}

/// How fast a window grows, and so how fast datagrams leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    SlowStart,
    Steady,
}

/// A congestion controller whose window stays within bounds whatever the other peer acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    controller: Controller,
    /// Bytes of a full datagram.
    datagram: u32,
}

#[derive(Clone, Copy, Debug)]
enum Controller {
    NewReno(NewReno),
    #[cfg(feature = "delay-based")]
    DelayBased(DelayBased),
}

impl Default for Congestion {
    fn default() -> Self {
        Self::new(CongestionControl::default(), 0)
    }
}

impl Congestion {
    pub(super) fn new(control: CongestionControl, datagram: u32) -> Self {
        let controller = match control {
            CongestionControl::NewReno => Controller::NewReno(NewReno::new(datagram)),
            #[cfg(feature = "delay-based")]
            CongestionControl::DelayBased => Controller::DelayBased(DelayBased::new(datagram)),
        };
        Self { controller, datagram }
    }

    /// Bytes that may be in flight.
    pub(super) fn window(&self) -> u32 {
        let wanted = match &self.controller {
            Controller::NewReno(new_reno) => new_reno.window(),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.window(),
        };
        // The controllers keep to the smallest window themselves, but may aim above the largest one.
        wanted.min(MAX_DATAGRAMS * self.datagram)
    }

    /// The pacing rate in bytes a second for an RTT of `rtt` microseconds. It carries a window in less than an RTT
    /// (RFC 9002 section 7.7: 5/4 of the window), so that pacing alone never leaves the window unused.
    pub(super) fn rate(&self, rtt: u32) -> u32 {
        let pace = match &self.controller {
            Controller::NewReno(new_reno) => new_reno.pace(),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.pace(),
        };
        let window = u64::from(self.window());
        let bytes_per_rtt = match pace {
            Pace::SlowStart => 2 * window,
            Pace::Steady => window + window / 4,
        };
        u32::try_from(bytes_per_rtt * 1_000_000 / u64::from(rtt.max(1))).unwrap_or(u32::MAX)
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_ack(sample),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_ack(sample),
        }
    }

    /// A datagram was declared lost.
    pub(super) fn on_lost(&mut self, loss: &Loss) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_lost(loss),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_lost(loss),
        }
    }

    /// A datagram that was declared lost was acknowledged; `ordinal` is that of its loss.
    pub(super) fn on_spurious_loss(&mut self, ordinal: u32) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_spurious_loss(ordinal),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_spurious_loss(),
        }
    }

    /// Nothing was acknowledged for several timeouts in a row (RFC 9002 section 7.6).
    pub(super) fn on_persistent_congestion(&mut self) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_persistent_congestion(),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_persistent_congestion(),
        }
    }
}

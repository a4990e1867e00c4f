//! How much may be in flight, and how fast it leaves: one face for both controllers.

#[cfg(feature = "delay-based")]
use super::delay_based::DelayBased;
use super::new_reno::NewReno;
use crate::raknet::config::CongestionControl;
use crate::serial::U24;
use crate::time::Instant;

/// Datagrams of full size in the first window and in the smallest.
pub(super) const INITIAL_DATAGRAMS: u32 = 10;
pub(super) const MIN_DATAGRAMS: u32 = 8;
/// Datagrams in the largest window: as many as one datagram of records may make us look up.
const MAX_DATAGRAMS: u32 = 8_192;

/// What a datagram of acknowledgements said.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSample {
    pub(super) now: Instant,
    /// Bytes that it took out of flight.
    pub(super) bytes: u32,
    /// Bytes in flight before.
    pub(super) in_flight: u32,
    /// The newest number that it took out of flight, and the next one that will be sent.
    pub(super) newest: U24,
    pub(super) next: U24,
    /// Microseconds since that number was sent.
    pub(super) round_trip: u32,
    /// Microseconds between the sending of the first and of the last datagram that it named: at least so long the
    /// other peer had waited before it acknowledged.
    pub(super) ack_span: u32,
}

/// How a datagram was found lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LossTrigger {
    /// Later ones were acknowledged. Its own acknowledgement may be what was lost.
    #[default]
    TimeThreshold,
    /// The other peer misses it.
    Nack,
}

/// A datagram that was found lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) now: Instant,
    pub(super) sent_at: Instant,
    pub(super) bytes: u32,
    /// How many were found lost before, modulo 2^32.
    pub(super) ordinal: u32,
    pub(super) trigger: LossTrigger,
}

/// Whether a window grows fast, in search of its size, or slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pace {
    SlowStart,
    #[default]
    Steady,
}

/// A congestion controller. What it grants is bounded on both sides, whatever the other peer says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    controller: Controller,
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
        // The controllers never go below their smallest window, but they may aim above the largest one.
        wanted.min(MAX_DATAGRAMS * self.datagram)
    }

    /// Bytes a second at which new datagrams leave while a round trip takes `round_trip` microseconds: a window in a
    /// little less than that, so that pacing alone never keeps it from being used.
    pub(super) fn rate(&self, round_trip: u32) -> u32 {
        let pace = match &self.controller {
            Controller::NewReno(new_reno) => new_reno.pace(),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.pace(),
        };
        let window = u64::from(self.window());
        let hurried = match pace {
            Pace::SlowStart => 2 * window,
            Pace::Steady => window + window / 4,
        };
        u32::try_from(hurried * 1_000_000 / u64::from(round_trip.max(1))).unwrap_or(u32::MAX)
    }

    pub(super) fn on_acknowledged(&mut self, sample: &AckSample) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_acknowledged(sample),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_acknowledged(sample),
        }
    }

    /// A datagram was found lost.
    pub(super) fn on_lost(&mut self, loss: &Loss) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_lost(loss),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_lost(loss),
        }
    }

    /// A datagram that was found lost had only been late; `ordinal` is that of its loss.
    pub(super) fn on_spurious_loss(&mut self, ordinal: u32) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_spurious_loss(ordinal),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_spurious_loss(),
        }
    }

    /// Nothing came back for several timeouts in a row.
    pub(super) fn on_persistent_congestion(&mut self) {
        match &mut self.controller {
            Controller::NewReno(new_reno) => new_reno.on_persistent_congestion(),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(delay_based) => delay_based.on_persistent_congestion(),
        }
    }
}

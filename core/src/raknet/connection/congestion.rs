//! How much may be in flight, and how fast it leaves: one face for both controllers.

#[cfg(feature = "adaptive")]
use super::adaptive::Adaptive;
use super::classic::Classic;
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
pub(super) struct Acknowledged {
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
    pub(super) span: u32,
}

/// How a datagram was found lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Later ones were acknowledged. Its own acknowledgement may be what was lost.
    #[default]
    Overtaken,
    /// The other peer misses it.
    Missed,
}

/// A datagram that was found lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) now: Instant,
    pub(super) sent_at: Instant,
    pub(super) bytes: u32,
    /// How many were found lost before, modulo 2^32.
    pub(super) ordinal: u32,
    pub(super) evidence: Evidence,
}

/// Whether a window grows fast, in search of its size, or slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pace {
    Searching,
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
    Classic(Classic),
    #[cfg(feature = "adaptive")]
    Adaptive(Adaptive),
}

impl Default for Congestion {
    fn default() -> Self {
        Self::new(CongestionControl::default(), 0)
    }
}

impl Congestion {
    pub(super) fn new(control: CongestionControl, datagram: u32) -> Self {
        let controller = match control {
            CongestionControl::Classic => Controller::Classic(Classic::new(datagram)),
            #[cfg(feature = "adaptive")]
            CongestionControl::Adaptive => Controller::Adaptive(Adaptive::new(datagram)),
        };
        Self { controller, datagram }
    }

    /// Bytes that may be in flight.
    pub(super) fn window(&self) -> u32 {
        let wanted = match &self.controller {
            Controller::Classic(classic) => classic.window(),
            #[cfg(feature = "adaptive")]
            Controller::Adaptive(adaptive) => adaptive.window(),
        };
        // The controllers never go below their smallest window, but they may aim above the largest one.
        wanted.min(MAX_DATAGRAMS * self.datagram)
    }

    /// Bytes a second at which new datagrams leave while a round trip takes `round_trip` microseconds: a window in a
    /// little less than that, so that pacing alone never keeps it from being used.
    pub(super) fn rate(&self, round_trip: u32) -> u32 {
        let pace = match &self.controller {
            Controller::Classic(classic) => classic.pace(),
            #[cfg(feature = "adaptive")]
            Controller::Adaptive(adaptive) => adaptive.pace(),
        };
        let window = u64::from(self.window());
        let hurried = match pace {
            Pace::Searching => 2 * window,
            Pace::Steady => window + window / 4,
        };
        u32::try_from(hurried * 1_000_000 / u64::from(round_trip.max(1))).unwrap_or(u32::MAX)
    }

    pub(super) fn on_acknowledged(&mut self, news: &Acknowledged) {
        match &mut self.controller {
            Controller::Classic(classic) => classic.on_acknowledged(news),
            #[cfg(feature = "adaptive")]
            Controller::Adaptive(adaptive) => adaptive.on_acknowledged(news),
        }
    }

    /// A datagram was found lost.
    pub(super) fn on_lost(&mut self, loss: &Loss) {
        match &mut self.controller {
            Controller::Classic(classic) => classic.on_lost(loss),
            #[cfg(feature = "adaptive")]
            Controller::Adaptive(adaptive) => adaptive.on_lost(loss),
        }
    }

    /// A datagram that was found lost had only been late; `ordinal` is that of its loss.
    pub(super) fn on_found(&mut self, ordinal: u32) {
        match &mut self.controller {
            Controller::Classic(classic) => classic.on_found(ordinal),
            #[cfg(feature = "adaptive")]
            Controller::Adaptive(adaptive) => adaptive.on_found(),
        }
    }

    /// Nothing came back for several timeouts in a row.
    pub(super) fn on_silence(&mut self) {
        match &mut self.controller {
            Controller::Classic(classic) => classic.on_silence(),
            #[cfg(feature = "adaptive")]
            Controller::Adaptive(adaptive) => adaptive.on_silence(),
        }
    }
}

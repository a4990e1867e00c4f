//! Congestion control: how many bytes may be in flight, and how fast they leave.

#[cfg(feature = "delay-based")]
mod delay_based;
mod new_reno;
#[cfg(feature = "delay-based")]
mod path_window;
mod types;

#[cfg(feature = "delay-based")]
use delay_based::DelayBased;
use new_reno::NewReno;
#[cfg(feature = "delay-based")]
pub use path_window::{PathSample, PathWindow};
use types::Pace;
pub(super) use types::{AckSample, INITIAL_DATAGRAMS, Loss, LossTrigger};

use crate::raknet::config::CongestionControl;
use crate::time::{Instant, divide};

/// A congestion controller whose window stays within bounds whatever the other peer acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    controller: Controller,
}

#[derive(Clone, Copy, Debug)]
enum Controller {
    NewReno(NewReno),
    #[cfg(feature = "delay-based")]
    DelayBased(DelayBased),
}

/// Calls a method of the controller, whichever it is.
macro_rules! dispatch {
    ($controller:expr, $method:ident($($argument:expr)?)) => {
        match $controller {
            Controller::NewReno(controller) => controller.$method($($argument)?),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(controller) => controller.$method($($argument)?),
        }
    };
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
        Self { controller }
    }

    /// Bytes that may be in flight.
    pub(super) fn window(&self) -> u32 {
        dispatch!(&self.controller, window())
    }

    /// The pacing rate in bytes a second for an RTT of `rtt` microseconds. It carries a window in less than an RTT
    /// (RFC 9002 section 7.7: 5/4 of the window), so that pacing alone never leaves the window unused.
    pub(super) fn rate(&self, rtt: u32) -> u32 {
        let window = u64::from(self.window());
        let bytes_per_rtt = match self.pace() {
            Pace::SlowStart => 2 * window,
            Pace::Steady => window + window / 4,
        };
        u32::try_from(divide(bytes_per_rtt * 1_000_000, rtt)).unwrap_or(u32::MAX)
    }

    /// Whether a datagram sent then belongs to a recovery period. Only NewReno has one.
    pub(super) fn is_in_recovery(&self, sent_at: Instant) -> bool {
        match &self.controller {
            Controller::NewReno(new_reno) => new_reno.is_in_recovery(sent_at),
            #[cfg(feature = "delay-based")]
            Controller::DelayBased(_) => false,
        }
    }

    fn pace(&self) -> Pace {
        dispatch!(&self.controller, pace())
    }

    /// Whether the window grows as fast as it can.
    pub(super) fn is_in_slow_start(&self) -> bool {
        self.pace() == Pace::SlowStart
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        dispatch!(&mut self.controller, on_ack(sample))
    }

    /// A datagram was declared lost.
    pub(super) fn on_lost(&mut self, loss: &Loss) {
        dispatch!(&mut self.controller, on_lost(loss))
    }

    /// A datagram that was declared lost was acknowledged; `ordinal` is that of its loss.
    pub(super) fn on_spurious_loss(&mut self, ordinal: u32) {
        dispatch!(&mut self.controller, on_spurious_loss(ordinal))
    }

    /// Nothing was acknowledged for several timeouts in a row, similar to RFC 9002 section 7.6.
    pub(super) fn on_persistent_congestion(&mut self) {
        dispatch!(&mut self.controller, on_persistent_congestion())
    }
}

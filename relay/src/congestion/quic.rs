//! The delay-based window as a congestion controller of QUIC.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;
use rakwire::raknet::{PathSample, PathWindow};

use super::Epoch;

/// The largest window, whatever a page acknowledges: 80 Mbit/s with a round trip of 200 ms, and what bounds the packets that
/// QUIC remembers for it.
pub(super) const WINDOW_MAX: u32 = 2 * 1024 * 1024;

/// Builds the controller of each connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuicCongestionConfig;

impl ControllerFactory for QuicCongestionConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(QuicCongestion {
            path: PathWindow::new(mtu.into(), WINDOW_MAX),
            epoch: Epoch::since(now),
            next: 0,
            acknowledged: None,
        })
    }
}

/// Packets of the acknowledgement that is being read.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    bytes: u64,
    oldest_sent_at: Instant,
    newest_sent_at: Instant,
}

/// The controller of one path.
#[derive(Debug, Clone, Copy)]
struct QuicCongestion {
    path: PathWindow,
    epoch: Epoch,
    /// The number of the next packet.
    next: u64,
    acknowledged: Option<Acknowledged>,
}

impl Controller for QuicCongestion {
    fn on_sent(&mut self, _: Instant, _: u64, number: u64) {
        self.next = self.next.max(number.saturating_add(1));
    }

    fn on_ack(&mut self, _: Instant, sent_at: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        let first = Acknowledged { bytes: 0, oldest_sent_at: sent_at, newest_sent_at: sent_at };
        let acknowledged = self.acknowledged.get_or_insert(first);
        acknowledged.bytes = acknowledged.bytes.saturating_add(bytes);
        acknowledged.oldest_sent_at = acknowledged.oldest_sent_at.min(sent_at);
        acknowledged.newest_sent_at = acknowledged.newest_sent_at.max(sent_at);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, newest: Option<u64>) {
        let (Some(acknowledged), Some(newest)) = (self.acknowledged.take(), newest) else { return };
        self.path.on_ack(&PathSample {
            now: self.epoch.convert(now),
            oldest_sent_at: self.epoch.convert(acknowledged.oldest_sent_at),
            newest_sent_at: self.epoch.convert(acknowledged.newest_sent_at),
            bytes: saturated(acknowledged.bytes),
            in_flight: saturated(in_flight.saturating_add(acknowledged.bytes)),
            newest,
            // A path that has just begun has sent nothing when packets of the one before are acknowledged.
            next: self.next.max(newest.saturating_add(1)),
        });
    }

    fn on_congestion_event(&mut self, now: Instant, sent_at: Instant, is_persistent: bool, lost: u64) {
        if is_persistent {
            self.path.on_persistent_congestion();
            return;
        }
        let (now, sent_at) = (self.epoch.convert(now), self.epoch.convert(sent_at));
        // quinn reports a mark of ECN as congestion without a loss.
        if lost == 0 {
            self.path.on_ecn_mark(now, sent_at);
        } else {
            self.path.on_lost(now, sent_at, saturated(lost));
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.path.set_datagram(mtu.into());
    }

    fn window(&self) -> u64 {
        self.path.bytes().into()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// quinn reports it as congestion without lost bytes.
    #[test]
    fn a_mark_of_ecn_shrinks_the_window_and_a_lost_packet_alone_does_not() {
        let start = Instant::now();
        let window = |lost, events: u32| {
            let mut controller = Arc::new(QuicCongestionConfig).build(start, 1_200);
            let before = controller.window();
            for event in 1..=events {
                let sent_at = start + event * Duration::from_millis(1);
                controller.on_congestion_event(sent_at + Duration::from_millis(50), sent_at, false, lost);
            }
            controller.window() * 100 / before
        };
        assert_eq!((window(0, 1), window(0, 20), window(1_200, 1)), (85, 85, 100));
    }
}

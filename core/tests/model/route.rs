//! One direction of a path, with faults that are scheduled for single datagrams.

use core::time::Duration;
use std::collections::VecDeque;

use rakwire::Instant;

const LATENCY: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_millis(35);
const HISTORY: usize = 64;

/// A fault that a route applies to one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, arbitrary::Arbitrary)]
pub enum Fault {
    Lost,
    Doubled,
    Late,
}

#[derive(Debug)]
struct Transit {
    arrival: Instant,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Route {
    transit: Vec<Transit>,
    faults: VecDeque<Option<Fault>>,
    sent: VecDeque<Vec<u8>>,
    /// The time of the last loss.
    pub lost_at: Option<Instant>,
}

impl Route {
    /// Schedules a fault for each of the next eight datagrams that has its bit set in `mask`.
    pub fn order(&mut self, fault: Fault, mask: u8) {
        for bit in 0..8 {
            let ordered = (mask >> bit & 1 == 1).then_some(fault);
            match self.faults.get_mut(bit) {
                Some(slot) => *slot = ordered.or(*slot),
                None => self.faults.push_back(ordered),
            }
        }
    }

    pub fn mend(&mut self) {
        self.faults.clear();
    }

    /// Removes all datagrams and faults, because they belong to a closed connection.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    pub fn send(&mut self, now: Instant, bytes: &[u8]) {
        if self.sent.len() == HISTORY {
            self.sent.pop_front();
        }
        self.sent.push_back(bytes.to_vec());
        let fault = self.faults.pop_front().flatten();
        if fault == Some(Fault::Lost) {
            self.lost_at = Some(now);
            return;
        }
        let delay = if fault == Some(Fault::Late) { LATE } else { LATENCY };
        self.carry(now + delay, bytes.to_vec());
        if fault == Some(Fault::Doubled) {
            self.carry(now + LATE, bytes.to_vec());
        }
    }

    /// Delivers an earlier datagram again; `age` 0 is the last one sent.
    pub fn replay(&mut self, now: Instant, age: usize) {
        if let Some(bytes) = self.sent.iter().rev().nth(age).cloned() {
            self.carry(now, bytes);
        }
    }

    fn carry(&mut self, arrival: Instant, bytes: Vec<u8>) {
        let place = self.transit.partition_point(|other| other.arrival <= arrival);
        self.transit.insert(place, Transit { arrival, bytes });
    }

    pub fn next_arrival(&self) -> Option<Instant> {
        self.transit.first().map(|first| first.arrival)
    }

    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.next_arrival()? > now {
            return None;
        }
        Some(self.transit.remove(0).bytes)
    }
}

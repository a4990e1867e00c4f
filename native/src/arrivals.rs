//! Datagrams between the receive call and the protocol, each with the time at which it arrived.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rakwire::Instant;
use tokio::sync::Notify;

use crate::paths::{Direction, Paths};
use crate::simulation::Simulation;

/// What one receive buffer held: datagrams of one sender, each `stride` bytes long but for the last.
#[derive(Debug)]
pub(crate) struct Train {
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    pub(crate) stride: usize,
    pub(crate) bytes: Box<[u8]>,
}

impl Train {
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.stride.max(1))
    }
}

/// Datagrams that were received and not handled yet. When there is no room, new ones are dropped and counted.
#[derive(Debug)]
pub(crate) struct Arrivals {
    limit: usize,
    waiting: Mutex<Waiting>,
    /// Whether something may wait: most looks find nothing, and need no lock.
    some: AtomicBool,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    trains: VecDeque<Train>,
    bytes: usize,
    dropped: u64,
    /// The network that is simulated between the socket and this queue.
    network: Option<Paths>,
}

/// Bytes that a train is counted with on top of its own.
const OVERHEAD: usize = 64;

impl Arrivals {
    /// A queue of at most `limit` bytes, in which one train fits in any case, perhaps behind a simulated network.
    pub(crate) fn new(limit: usize, simulation: Option<Simulation>) -> Self {
        let network = simulation.map(|simulation| Paths::new(simulation, Direction::In));
        // What is on its way through a simulated network arrives without being pushed.
        let some = AtomicBool::new(network.is_some());
        let waiting = Mutex::new(Waiting { network, ..Waiting::default() });
        Self { limit, waiting, some, arrived: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, trains: impl Iterator<Item = Train>) {
        let mut waiting = self.lock();
        for train in trains {
            if let Some(network) = &mut waiting.network {
                train.datagrams().for_each(|datagram| network.send(train.at, train.from, datagram));
            } else if waiting.bytes >= self.limit {
                waiting.dropped += train.datagrams().count() as u64;
            } else {
                waiting.bytes += train.bytes.len() + OVERHEAD;
                waiting.trains.push_back(train);
            }
        }
        self.some.store(true, Ordering::Release);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes everything that has arrived by `now`.
    pub(crate) fn take(&self, now: Instant) -> VecDeque<Train> {
        if !self.some.load(Ordering::Acquire) {
            return VecDeque::new();
        }
        let mut waiting = self.lock();
        if let Some(network) = &mut waiting.network {
            let trains = network.receive(now).into_iter().map(|parcel| Train {
                at: parcel.at,
                from: parcel.address,
                stride: parcel.bytes.len(),
                bytes: parcel.bytes,
            });
            return trains.collect();
        }
        self.some.store(false, Ordering::Release);
        waiting.bytes = 0;
        std::mem::take(&mut waiting.trains)
    }

    /// When something will have arrived that is on its way through a simulated network.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().network.as_ref()?.next()
    }

    /// How many datagrams found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Waits until something was pushed since the last call.
    pub(crate) async fn wait(&self) {
        self.arrived.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(bytes: &[u8], stride: usize) -> Train {
        Train { at: Instant::ZERO, from: ([127, 0, 0, 1], 1).into(), stride, bytes: bytes.into() }
    }

    #[test]
    fn a_train_falls_apart_into_its_datagrams() {
        let train = train(&[1, 2, 3, 4, 5], 2);
        let datagrams: Vec<&[u8]> = train.datagrams().collect();
        assert_eq!(datagrams, [&[1, 2][..], &[3, 4], &[5]]);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let arrivals = Arrivals::new(100, None);
        arrivals.push([train(&[0; 100], 50), train(&[0; 9], 3), train(&[0; 1], 1)].into_iter());
        assert_eq!(arrivals.dropped(), 4);
        assert_eq!(arrivals.take(Instant::ZERO).len(), 1);
        arrivals.push([train(&[0; 1], 1)].into_iter());
        assert_eq!((arrivals.take(Instant::ZERO).len(), arrivals.dropped()), (1, 4));
    }

    #[test]
    fn a_simulated_network_comes_before_the_queue() {
        let arrivals = Arrivals::new(0, "latency=2ms".parse().ok());
        arrivals.push([train(&[1, 2, 3], 2)].into_iter());
        let end = Instant::from_micros(2_000);
        assert_eq!(arrivals.next(), Some(end));
        assert!(arrivals.take(Instant::from_micros(1_999)).is_empty());
        let arrived = arrivals.take(end);
        assert!(arrived.iter().all(|train| train.at == end && train.datagrams().count() == 1));
        assert_eq!((arrived.len(), arrivals.dropped()), (2, 0));
    }
}

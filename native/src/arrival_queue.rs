//! Received datagrams that wait for the protocol, with their times of arrival.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rakwire::Instant;

use crate::network_emulator::{Direction, NetworkEmulator};
use crate::simulation::Simulation;

/// The datagrams in one receive buffer: all from one sender, and all `stride` bytes long except the last one.
#[derive(Debug)]
pub(crate) struct RecvBatch<B = Box<[u8]>> {
    pub(crate) at: Instant,
    pub(crate) from: SocketAddr,
    pub(crate) stride: usize,
    pub(crate) bytes: B,
}

impl<B: Deref<Target = [u8]>> RecvBatch<B> {
    pub(crate) fn datagrams(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes.chunks(self.stride.max(1))
    }
}

impl RecvBatch<&[u8]> {
    pub(crate) fn into_owned(self) -> RecvBatch {
        RecvBatch { at: self.at, from: self.from, stride: self.stride, bytes: self.bytes.into() }
    }
}

/// Received datagrams that have not been handled yet. A full queue drops and counts new ones.
#[derive(Debug)]
pub(crate) struct ArrivalQueue {
    limit: usize,
    queue: Mutex<Queue>,
    /// False if the queue is certainly empty, as it usually is: then [`take`](Self::take) needs no lock.
    may_have_batches: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<RecvBatch>,
    bytes: usize,
    dropped: u64,
    /// The simulated network between the socket and this queue.
    network: Option<NetworkEmulator>,
}

/// The bytes that each batch is charged in addition to its own.
const OVERHEAD: usize = 64;

impl ArrivalQueue {
    /// A queue of at most `limit` bytes and at least one batch, behind a simulated network if there is one.
    pub(crate) fn new(limit: usize, simulation: Option<Simulation>) -> Self {
        let network = simulation.map(|simulation| NetworkEmulator::new(simulation, Direction::In));
        // Datagrams leave a simulated network without a push.
        let may_have_batches = AtomicBool::new(network.is_some());
        let queue = Mutex::new(Queue { network, ..Queue::default() });
        Self { limit, queue, may_have_batches }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, batches: impl Iterator<Item = RecvBatch>) {
        let mut queue = self.lock();
        for batch in batches {
            if let Some(network) = &mut queue.network {
                batch.datagrams().for_each(|datagram| network.send(batch.at, batch.from, datagram));
            } else if queue.bytes >= self.limit {
                queue.dropped += batch.datagrams().len() as u64;
            } else {
                queue.bytes += batch.bytes.len() + OVERHEAD;
                queue.batches.push_back(batch);
            }
        }
        self.may_have_batches.store(true, Ordering::Release);
    }

    /// Whether a simulated network stands before the queue.
    pub(crate) fn is_simulated(&self) -> bool {
        self.lock().network.is_some()
    }

    /// Whether there may be datagrams that wait.
    pub(crate) fn may_have_batches(&self) -> bool {
        self.may_have_batches.load(Ordering::Acquire)
    }

    /// Takes the datagrams that have arrived by `now`.
    pub(crate) fn take(&self, now: Instant) -> VecDeque<RecvBatch> {
        if !self.may_have_batches() {
            return VecDeque::new();
        }
        let mut queue = self.lock();
        if let Some(network) = &mut queue.network {
            let batches = network.receive(now).into_iter().map(|delivered| RecvBatch {
                at: delivered.at,
                from: delivered.address,
                stride: delivered.bytes.len(),
                bytes: delivered.bytes,
            });
            return batches.collect();
        }
        self.may_have_batches.store(false, Ordering::Release);
        queue.bytes = 0;
        std::mem::take(&mut queue.batches)
    }

    /// When the next datagram will leave the simulated network.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().network.as_ref()?.next()
    }

    /// How many datagrams were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(bytes: &[u8], stride: usize) -> RecvBatch {
        RecvBatch { at: Instant::ZERO, from: ([127, 0, 0, 1], 1).into(), stride, bytes: bytes.into() }
    }

    #[test]
    fn a_batch_is_split_into_its_datagrams() {
        let batch = batch(&[1, 2, 3, 4, 5], 2);
        let datagrams: Vec<&[u8]> = batch.datagrams().collect();
        assert_eq!(datagrams, [&[1, 2][..], &[3, 4], &[5]]);
    }

    #[test]
    fn dropped_datagrams_are_counted() {
        let queue = ArrivalQueue::new(100, None);
        queue.push([batch(&[0; 100], 50), batch(&[0; 9], 3), batch(&[0; 1], 1)].into_iter());
        assert_eq!(queue.dropped(), 4);
        assert_eq!(queue.take(Instant::ZERO).len(), 1);
        queue.push([batch(&[0; 1], 1)].into_iter());
        assert_eq!((queue.take(Instant::ZERO).len(), queue.dropped()), (1, 4));
    }

    #[test]
    fn a_simulated_network_comes_before_the_queue() {
        let queue = ArrivalQueue::new(0, "latency=2ms".parse().ok());
        queue.push([batch(&[1, 2, 3], 2)].into_iter());
        let end = Instant::from_micros(2_000);
        assert_eq!(queue.next(), Some(end));
        assert!(queue.take(Instant::from_micros(1_999)).is_empty());
        let arrived = queue.take(end);
        assert!(arrived.iter().all(|batch| batch.at == end && batch.datagrams().count() == 1));
        assert_eq!((arrived.len(), queue.dropped()), (2, 0));
    }
}

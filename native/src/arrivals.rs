//! Datagrams that arrive: read from the socket of an endpoint, and those that wait for the protocol, with their times of arrival.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rakwire::Instant;

use crate::clock::Clock;
use crate::simulation::{Direction, NetworkEmulator, Simulation};
use crate::socket::{Buffers, Received, RecvBatch, Socket};

/// How long ago the socket may have been empty without being read again before time passes. It is little beside every
/// timeout of a silent peer, and so much that an endpoint under load asks the system for nothing more than it would anyway.
const FRESH: Duration = Duration::from_millis(5);

/// Datagrams that are read at most before time passes. A buffer of 4 MiB holds fewer: the system charges at least 768 bytes for
/// each, of the double size. Beside a sender that is faster than this machine time passes all the same.
const MOST_BEFORE_TIME: usize = 16_384;

/// The bytes that each batch is charged in addition to its own.
const OVERHEAD: usize = 64;

/// The socket that is read, and when it was last empty.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// There is none before the driver runs, and once it has ended.
    socket: Option<Arc<Socket>>,
    buffers: Option<Buffers>,
    empty_at: Option<Instant>,
    /// Datagrams that were read while time had to wait.
    before_time: usize,
}

impl Reader {
    /// Reads this socket from now on, or none.
    pub(crate) fn use_socket(&mut self, socket: Option<Arc<Socket>>) {
        self.socket = socket;
        self.empty_at = None;
    }

    /// The socket that is read, if there is one.
    pub(crate) fn socket(&self) -> Option<Arc<Socket>> {
        self.socket.clone()
    }

    /// Whether time may pass although the socket is not empty, after `count` more datagrams were read before it: together they
    /// are more than the system's buffer held when time had to wait.
    pub(crate) fn time_may_pass(&mut self, count: usize) -> bool {
        self.before_time += count;
        let may_pass = self.before_time >= MOST_BEFORE_TIME;
        if may_pass {
            self.before_time = 0;
        }
        may_pass
    }

    /// Whether datagrams may have waited in the socket for longer than a moment.
    pub(crate) fn may_have_waiting(&self, now: Instant) -> bool {
        self.socket.is_some() && self.empty_at.is_none_or(|empty_at| empty_at + FRESH < now)
    }

    /// Reads what the runtime says has arrived; nothing if that was read before.
    pub(crate) fn read(&mut self, clock: &Clock) -> std::io::Result<Option<(Received<'_>, Arc<Socket>)>> {
        self.read_by(clock, |socket, buffers| socket.try_receive(clock, buffers))
    }

    /// Reads what has arrived, whether or not the runtime knows; nothing if there is nothing. An error may be about a datagram
    /// that was sent, and says nothing about what waits.
    pub(crate) fn read_now(&mut self, clock: &Clock) -> std::io::Result<Option<(Received<'_>, Arc<Socket>)>> {
        self.read_by(clock, |socket, buffers| match socket.receive_now(clock, buffers) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            received => received.map(Some),
        })
    }

    fn read_by<'b>(
        &'b mut self,
        clock: &Clock,
        read: impl FnOnce(&Socket, &'b mut Buffers) -> std::io::Result<Option<Received<'b>>>,
    ) -> std::io::Result<Option<(Received<'b>, Arc<Socket>)>> {
        let Some(socket) = self.socket.clone() else { return Ok(None) };
        let before = clock.now();
        let received = read(&socket, self.buffers.get_or_insert_with(Buffers::new))?;
        if received.as_ref().is_none_or(Received::are_all) {
            self.empty_at = Some(before);
            self.before_time = 0;
        }
        Ok(received.map(|received| (received, socket)))
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

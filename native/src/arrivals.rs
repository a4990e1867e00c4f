//! Datagrams between the receive call and the protocol, each with the time at which it arrived.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rakwire::Instant;
use tokio::sync::Notify;

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
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    trains: VecDeque<Train>,
    bytes: usize,
    dropped: u64,
}

/// Bytes that a train is counted with on top of its own.
const OVERHEAD: usize = 64;

impl Arrivals {
    /// A queue of at most `limit` bytes, in which one train fits in any case.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, waiting: Mutex::default(), arrived: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, trains: impl Iterator<Item = Train>) {
        let mut waiting = self.lock();
        for train in trains {
            if waiting.bytes >= self.limit {
                waiting.dropped += train.datagrams().count() as u64;
            } else {
                waiting.bytes += train.bytes.len() + OVERHEAD;
                waiting.trains.push_back(train);
            }
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes everything that waits.
    pub(crate) fn take(&self) -> VecDeque<Train> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.trains)
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
        let arrivals = Arrivals::new(100);
        arrivals.push([train(&[0; 100], 50), train(&[0; 9], 3), train(&[0; 1], 1)].into_iter());
        assert_eq!(arrivals.dropped(), 4);
        assert_eq!(arrivals.take().len(), 1);
        arrivals.push([train(&[0; 1], 1)].into_iter());
        assert_eq!((arrivals.take().len(), arrivals.dropped()), (1, 4));
    }
}

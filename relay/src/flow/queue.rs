//! A queue of datagrams, bounded by number, bytes and age. A full queue drops the oldest datagrams.
//!
//! A new datagram is worth more than a delayed one: both protocols resend reliable messages, and newer unreliable
//! messages supersede older ones.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// The capacity above which an empty queue frees its memory.
const KEPT_CAPACITY: usize = 4;

/// The limits of a queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The maximum number of datagrams, at least one.
    pub(super) count: usize,
    /// The maximum bytes of payload. A single datagram always fits.
    pub(super) bytes: usize,
    pub(super) max_age: Duration,
}

/// The queue of datagrams; see the module.
#[derive(Debug, Default)]
pub(super) struct AgeQueue {
    items: VecDeque<(Instant, Bytes)>,
    bytes: usize,
}

impl AgeQueue {
    /// Appends a datagram. Returns the number of old datagrams that were dropped to make space.
    pub(super) fn push(&mut self, now: Instant, datagram: Bytes, bounds: &Bounds) -> u64 {
        let mut dropped = 0;
        while !self.items.is_empty() && !self.has_room(datagram.len(), bounds) {
            self.pop();
            dropped += 1;
        }
        self.bytes += datagram.len();
        self.items.push_back((now, datagram));
        dropped
    }

    fn has_room(&self, len: usize, bounds: &Bounds) -> bool {
        self.items.len() < bounds.count && self.bytes + len <= bounds.bytes
    }

    /// Drops datagrams that exceed the maximum age, and returns their number.
    pub(super) fn expire(&mut self, now: Instant, bounds: &Bounds) -> u64 {
        let mut dropped = 0;
        while let Some((since, _)) = self.items.front() {
            if now.saturating_duration_since(*since) <= bounds.max_age {
                break;
            }
            self.pop();
            dropped += 1;
        }
        dropped
    }

    /// Returns the oldest datagram.
    pub(super) fn front(&self) -> Option<&Bytes> {
        self.items.front().map(|(_, datagram)| datagram)
    }

    /// Returns all datagrams, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.items.iter().map(|(_, datagram)| datagram)
    }

    /// Removes and returns the oldest datagram.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let (_, datagram) = self.items.pop_front()?;
        self.bytes -= datagram.len();
        Some(datagram)
    }

    /// Returns the number of datagrams.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the number of datagrams that can be appended before the oldest is dropped.
    pub(super) fn room(&self, bounds: &Bounds) -> usize {
        bounds.count.saturating_sub(self.items.len())
    }

    /// Returns the bytes of payload in the queue.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees the memory of an empty queue.
    pub(super) fn shrink(&mut self) {
        if self.items.is_empty() && self.items.capacity() > KEPT_CAPACITY {
            self.items = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { count: 3, bytes: 10, max_age: Duration::from_millis(100) };

    fn lengths(queue: &AgeQueue) -> Vec<usize> {
        queue.iter().map(Bytes::len).collect()
    }

    fn datagram(len: usize) -> Bytes {
        vec![7; len].into()
    }

    #[test]
    fn a_full_queue_keeps_the_newest_in_order() {
        let (mut queue, now) = (AgeQueue::default(), Instant::now());
        let dropped: Vec<u64> = (0..5).map(|len| queue.push(now, datagram(len), &BOUNDS)).collect();
        assert_eq!(dropped, [0, 0, 0, 1, 1]);
        assert_eq!(lengths(&queue), [2, 3, 4]);
        assert_eq!((queue.room(&BOUNDS), queue.bytes()), (0, 9));
    }

    #[test]
    fn bytes_are_bounded_and_one_datagram_always_fits() {
        let (mut queue, now) = (AgeQueue::default(), Instant::now());
        assert_eq!(queue.push(now, datagram(6), &BOUNDS), 0);
        assert_eq!(queue.push(now, datagram(5), &BOUNDS), 1);
        assert_eq!(queue.push(now, datagram(5), &BOUNDS), 0);
        assert_eq!(lengths(&queue), [5, 5]);
        assert_eq!(queue.push(now, datagram(100), &BOUNDS), 2);
        assert_eq!(lengths(&queue), [100]);
    }

    #[test]
    fn only_expired_datagrams_are_dropped() {
        let (mut queue, start) = (AgeQueue::default(), Instant::now());
        for millis in [0, 40, 80] {
            queue.push(start + Duration::from_millis(millis), datagram(1), &BOUNDS);
        }
        assert_eq!(queue.expire(start + Duration::from_millis(100), &BOUNDS), 0);
        assert_eq!(queue.expire(start + Duration::from_millis(141), &BOUNDS), 2);
        assert_eq!(lengths(&queue).len(), 1);
        assert_eq!(queue.expire(start, &BOUNDS), 0, "a clock that jumps back expires no datagrams");
        assert_eq!(queue.expire(start + Duration::from_secs(1 << 20), &BOUNDS), 1);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn an_empty_queue_frees_its_memory() {
        let (mut queue, now) = (AgeQueue::default(), Instant::now());
        let bounds = Bounds { count: 100, bytes: 1000, max_age: Duration::ZERO };
        for _ in 0..50 {
            queue.push(now, datagram(1), &bounds);
        }
        queue.shrink();
        assert_eq!(lengths(&queue).len(), 50);
        while queue.pop().is_some() {}
        queue.shrink();
        assert_eq!(queue.items.capacity(), 0);
    }

    mod flow {
        use crate::flow::tests::{datagram, fixture};
        use crate::flow::{DropReason, FromServer, Sending, ToClient};

        #[test]
        fn datagrams_queue_for_the_server_and_the_oldest_is_dropped() {
            let mut fixture = fixture();
            for len in 1..=3 {
                fixture.client(datagram(len));
            }
            assert_eq!(fixture.drops(DropReason::ServerQueueFull), 1);
            assert_eq!(fixture.batch(), [2]);
            fixture.flow.handle_sent(1, Sending::Sent);
            assert_eq!(fixture.batch(), [3]);
            fixture.flow.handle_sent(1, Sending::Refused);
            assert!(fixture.batch().is_empty());
            assert_eq!(fixture.drops(DropReason::SendRefused), 1);
            assert_eq!(fixture.counters.snapshot().to_server.bytes, 2);
            assert_eq!(fixture.end(), None);
        }

        #[test]
        fn datagrams_queue_for_the_client_and_the_oldest_is_dropped() {
            let mut fixture = fixture();
            for len in 1..=3 {
                fixture.server(FromServer::Datagram(&[0; 3][..len]));
            }
            assert_eq!(fixture.drops(DropReason::ClientQueueFull), 1);
            assert_eq!(fixture.flow.client_queue_capacity(), 0);
            let expected = [2, 3].map(|len| ToClient::Datagram(vec![0; len].into()));
            assert_eq!(fixture.taken_to_client(), expected);
            assert_eq!(fixture.counters.snapshot().to_client.bytes, 5);
        }
    }
}

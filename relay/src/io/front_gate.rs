//! What a front takes of the datagrams at a UDP port where QUIC and data channels arrive too. Somebody else receives them, and
//! offers each to the gate of the front.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How many bytes may wait for the front, as in the system's buffer of a socket of its own.
const WAITING_BYTES: usize = 4 << 20;
/// How many batches, each of one sender.
const WAITING_BATCHES: usize = 4_096;

/// See the module.
pub(crate) trait Gate: fmt::Debug + Send + Sync {
    /// Takes datagrams of one sender that stand behind each other if they are for the front, and says whether they were.
    fn take(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> bool;

    /// Prevents the front from allowing fragmentation while another sender uses the socket.
    fn keep_fragmentation(&self) -> MutexGuard<'_, ()>;
}

/// Datagrams that the front has taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) from: SocketAddr,
    pub(super) bytes: Box<[u8]>,
    pub(super) stride: usize,
    /// The room that they have, as long as they wait.
    _room: OwnedSemaphorePermit,
}

/// Lets datagrams wait for the front.
#[derive(Debug)]
pub(super) struct WaitingRoom {
    taken: mpsc::Sender<Taken>,
    room: Arc<Semaphore>,
}

impl WaitingRoom {
    /// An empty one, and what takes out of it.
    pub(super) fn new() -> (Self, mpsc::Receiver<Taken>) {
        let (taken, receiver) = mpsc::channel(WAITING_BATCHES);
        (Self { taken, room: Arc::new(Semaphore::new(WAITING_BYTES)) }, receiver)
    }

    /// None if there is no room, or nobody who takes anything out of it.
    pub(super) fn add(&self, from: SocketAddr, bytes: &[u8], stride: usize) -> Option<()> {
        let room = Arc::clone(&self.room).try_acquire_many_owned(u32::try_from(bytes.len()).ok()?).ok()?;
        self.taken.try_send(Taken { from, bytes: bytes.into(), stride, _room: room }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_in_bytes_until_it_is_taken() {
        let (waiting, mut taken) = WaitingRoom::new();
        let from = SocketAddr::from(([192, 0, 2, 1], 7));
        let batch = vec![0; WAITING_BYTES / 4];
        for _ in 0..4 {
            assert!(waiting.add(from, &batch, 1_000).is_some());
        }
        assert!(waiting.add(from, b"x", 1).is_none());
        assert_eq!(taken.try_recv().unwrap().bytes.len(), batch.len());
        assert!(waiting.add(from, b"x", 1).is_some());
        drop(taken);
        assert!(waiting.add(from, b"x", 1).is_none());
    }
}

//! A simulated path with latency and loss between two sockets or network devices, in user space.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rakwire::sim::{Conditions, Link};

/// The longest time that the thread waits for a datagram before it checks whether it should stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One end of a path: a non-blocking socket or device where datagrams enter and leave the path.
pub(crate) trait End: AsFd + Send + 'static {
    /// Receives the next datagram that enters the path.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Sends a datagram that leaves the path.
    fn send(&mut self, datagram: &[u8]) -> io::Result<usize>;
}

/// A thread that forwards datagrams between two ends until this handle is dropped.
#[derive(Debug)]
pub(crate) struct Path {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Path {
    /// Forwards datagrams between the two ends, in both directions.
    pub(crate) fn start(near: impl End, far: impl End, conditions: Conditions, seed: u64) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let mut forwarder = Forwarder {
            near,
            far,
            forth: Link::new(conditions, 2 * seed),
            back: Link::new(conditions, 2 * seed + 1),
            start: Instant::now(),
        };
        let until = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                // Fails if an end is closed. The program that measures notices the missing datagrams.
                let _ = forwarder.forward();
            }
        });
        Self { ended, thread: Some(thread) }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Fails only if the thread panicked, and the panic message has already been printed.
            let _ = thread.join();
        }
    }
}

struct Forwarder<N, F> {
    near: N,
    far: F,
    forth: Link,
    back: Link,
    start: Instant,
}

impl<N: End, F: End> Forwarder<N, F> {
    fn now(&self) -> rakwire::Instant {
        rakwire::Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Waits for a datagram at either end of the path and forwards those that are due.
    fn forward(&mut self) -> Result<()> {
        let next = [self.forth.next_arrival(), self.back.next_arrival()].into_iter().flatten().min();
        let wait = next.map_or(POLL_INTERVAL, |next| next.saturating_since(self.now()).min(POLL_INTERVAL));
        let mut ends = [
            PollFd::new(self.near.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.far.as_fd(), PollFlags::POLLIN),
        ];
        ppoll(&mut ends, Some(TimeSpec::from_duration(wait)), None)?;
        let mut buffer = [0; 2_048];
        while let Some(length) = received(self.near.receive(&mut buffer))? {
            let now = self.now();
            self.forth.send(now, buffer.get(..length).unwrap_or_default());
        }
        while let Some(length) = received(self.far.receive(&mut buffer))? {
            let now = self.now();
            self.back.send(now, buffer.get(..length).unwrap_or_default());
        }
        let now = self.now();
        while let Some(datagram) = self.forth.receive(now) {
            self.far.send(&datagram)?;
        }
        while let Some(datagram) = self.back.receive(now) {
            self.near.send(&datagram)?;
        }
        Ok(())
    }
}

/// Converts `WouldBlock` to `None`, because no datagram is waiting.
fn received<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    }
}

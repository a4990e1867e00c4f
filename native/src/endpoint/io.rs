//! What an endpoint and its tasks share outside of the protocol's lock.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::reader::Reader;
use super::signal::Signal;
use super::spans::EndpointSpan;
use crate::arrival_queue::ArrivalQueue;
use crate::clock::Clock;
use crate::simulation::Simulation;
use crate::socket::Socket;

/// See the module.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) arrival_queue: ArrivalQueue,
    pub(crate) clock: Clock,
    /// Wakes the driver after a call of the application, and for what has arrived.
    pub(crate) wake: Signal,
    /// Whether the driver has composed datagrams that the socket has yet to take.
    pub(crate) is_sending: AtomicBool,
    /// Notified when the driver has nothing to send at the moment.
    pub(crate) idle: Notify,
    /// How many tasks wait for that.
    flushes: AtomicUsize,
    pub(crate) ended: watch::Sender<bool>,
    pub(crate) counters: Counters,
    pub(crate) span: EndpointSpan,
    /// Reads the socket, for the task that receives and for whoever lets time pass.
    reader: Mutex<Reader>,
    /// The socket that the driver is to use from now on.
    next_socket: Mutex<Option<Socket>>,
}

impl Io {
    pub(crate) fn new(
        arrival_queue: usize,
        simulation: Option<Simulation>,
        clock: Clock,
        span: EndpointSpan,
    ) -> Self {
        Self {
            arrival_queue: ArrivalQueue::new(arrival_queue, simulation),
            clock,
            wake: Signal::default(),
            is_sending: AtomicBool::new(false),
            idle: Notify::new(),
            flushes: AtomicUsize::new(0),
            ended: watch::Sender::new(false),
            counters: Counters::default(),
            span,
            reader: Mutex::default(),
            next_socket: Mutex::default(),
        }
    }

    /// Keeps others from reading the socket. What was read is handled or queued before others may.
    pub(crate) fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the driver use another socket.
    pub(crate) fn replace_socket(&self, socket: Socket) {
        let before = self.next_socket().replace(socket);
        drop(before);
        self.wake.notify();
    }

    /// The socket that the driver is to use from now on, if there is another one.
    pub(crate) fn take_socket(&self) -> Option<Socket> {
        self.next_socket().take()
    }

    /// Whether the driver has sent what it has composed, and is to use no other socket.
    pub(crate) fn is_driver_done(&self) -> bool {
        !self.is_sending.load(Ordering::Acquire) && self.next_socket().is_none()
    }

    fn next_socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.next_socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody waits until the driver has nothing to send.
    pub(crate) fn has_flushes(&self) -> bool {
        self.flushes.load(Ordering::SeqCst) > 0
    }

    /// Waits until the driver has sent everything that can be sent now, or has ended.
    pub(crate) async fn flush(&self) {
        let mut idle = std::pin::pin!(self.idle.notified());
        // Notifications after this line are not missed.
        idle.as_mut().enable();
        let _flush = Flush::new(&self.flushes);
        if !*self.ended.borrow() {
            self.wake.notify();
            idle.await;
        }
    }
}

impl Io {
    /// Counts and logs a receive call that failed.
    pub(crate) fn receive_failed(&self, error: &std::io::Error) {
        self.span.receive_failed(self.clock.now(), error);
        Counters::add(&self.counters.receive_failures, 1);
    }
}

/// A task that waits until the driver has nothing to send.
struct Flush<'f>(&'f AtomicUsize);

impl<'f> Flush<'f> {
    fn new(count: &'f AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Flush<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The counters of the tasks.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) too_long: AtomicU64,
    pub(crate) send_failures: AtomicU64,
    pub(crate) receive_failures: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

//! Wakes an event loop from the driver's threads. A bell is a list of ready operations, and a socket that the loop
//! watches.
//!
//! The driver's threads never wait for the interpreter. To wake a task, a thread appends the number of the operation to
//! the list, and sends one byte over the socket.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;
use std::time::Duration;

#[cfg(unix)]
type Socket = std::os::unix::net::UnixDatagram;
#[cfg(not(unix))]
type Socket = std::net::UdpSocket;

#[cfg(unix)]
fn pair() -> io::Result<(Socket, Socket)> {
    Socket::pair()
}

#[cfg(not(unix))]
fn pair() -> io::Result<(Socket, Socket)> {
    let (one, other) = (Socket::bind("127.0.0.1:0")?, Socket::bind("127.0.0.1:0")?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

/// The byte that wakes the event loop.
const RING: u8 = 1;
/// The byte that stops the listening thread.
const END: u8 = 0;

/// The driver's side of a bell.
#[derive(Debug)]
pub(crate) struct Bell {
    ready: Mutex<Vec<u64>>,
    socket: Socket,
}

impl Bell {
    /// Creates a bell. Returns the driver's side and the loop's side.
    pub(crate) fn new() -> io::Result<(Arc<Self>, Listener)> {
        let (socket, listening) = pair()?;
        socket.set_nonblocking(true)?;
        listening.set_nonblocking(true)?;
        Ok((Arc::new(Self { ready: Mutex::default(), socket }), Listener(listening)))
    }

    /// Marks an operation as ready, and wakes the loop unless it was already woken.
    fn ring(&self, operation: u64) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = ready.is_empty();
        ready.push(operation);
        drop(ready);
        if is_first {
            self.send(RING);
        }
    }

    /// Removes and returns the operations that are ready.
    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.ready.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops the listening thread.
    pub(crate) fn end(&self) {
        self.send(END);
    }

    /// Sends a byte. Errors are ignored: if the socket is full, an earlier byte wakes the loop, and a closed loop need
    /// not be woken.
    fn send(&self, byte: u8) {
        let _ = self.socket.send(&[byte]);
    }
}

/// The event loop's side of a bell.
#[derive(Debug)]
pub(crate) struct Listener(Socket);

impl Listener {
    /// Returns the file descriptor of the socket, for `loop.add_reader`.
    #[cfg(unix)]
    pub(crate) fn fileno(&self) -> i64 {
        use std::os::fd::AsRawFd;
        self.0.as_raw_fd().into()
    }

    /// Returns the socket handle, for `loop.add_reader`.
    #[cfg(windows)]
    pub(crate) fn fileno(&self) -> i64 {
        use std::os::windows::io::AsRawSocket;
        self.0.as_raw_socket() as i64
    }

    /// Receives the byte that woke the loop.
    pub(crate) fn clear(&self) {
        let _ = self.0.recv(&mut [0]);
    }

    /// Waits at most `time` for a byte. Returns false once [`Bell::end`] was called.
    pub(crate) fn wait(&self, time: Duration) -> io::Result<bool> {
        self.0.set_nonblocking(false)?;
        self.0.set_read_timeout(Some(time))?;
        let mut byte = [RING];
        match self.0.recv(&mut byte) {
            Err(error) if !is_timeout(&error) => Err(error),
            _ => Ok(byte != [END]),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The waker of one operation. It rings the bell at most once.
#[derive(Debug)]
pub(crate) struct Alarm {
    pub(crate) bell: Arc<Bell>,
    pub(crate) operation: u64,
    has_rung: AtomicBool,
}

impl Alarm {
    pub(crate) fn new(bell: Arc<Bell>, operation: u64) -> Arc<Self> {
        Arc::new(Self { bell, operation, has_rung: AtomicBool::new(false) })
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::Relaxed) {
            self.bell.ring(self.operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    fn is_woken(listener: &Listener) -> bool {
        listener.0.set_nonblocking(true).expect("a socket");
        listener.0.recv(&mut [0]).is_ok()
    }

    #[test]
    fn operations_that_become_ready_together_wake_the_loop_once() {
        let (bell, listener) = Bell::new().expect("a pair of sockets");
        for operation in [3, 4] {
            let waker = Waker::from(Alarm::new(Arc::clone(&bell), operation));
            waker.wake_by_ref();
            waker.wake();
        }
        assert!(is_woken(&listener));
        assert!(!is_woken(&listener));
        assert_eq!(bell.take(), [3, 4]);
        Waker::from(Alarm::new(Arc::clone(&bell), 5)).wake();
        assert!(is_woken(&listener));
        assert_eq!(bell.take(), [5]);
    }

    #[test]
    fn wait_returns_false_after_the_bell_is_closed() {
        let (bell, listener) = Bell::new().expect("a pair of sockets");
        assert!(listener.wait(SHORT).expect("a socket"), "a timeout must return true");
        Waker::from(Alarm::new(Arc::clone(&bell), 1)).wake();
        assert!(listener.wait(SHORT).expect("a socket"));
        bell.end();
        assert!(!listener.wait(SHORT).expect("a socket"));
    }
}

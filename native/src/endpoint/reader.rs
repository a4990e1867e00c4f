//! Reads the socket of an endpoint.

use std::sync::Arc;
use std::time::Duration;

use rakwire::Instant;

use crate::clock::Clock;
use crate::socket::{Buffers, Received, Socket};

/// How long ago the socket may have been empty without being read again before time passes. It is little beside every
/// timeout of a silent peer, and so much that an endpoint under load asks the system for nothing more than it would anyway.
const FRESH: Duration = Duration::from_millis(5);

/// Datagrams that are read at most before time passes. A buffer of 4 MiB holds fewer: the system charges at least 768 bytes for
/// each, of the double size. Beside a sender that is faster than this machine time passes all the same.
const MOST_BEFORE_TIME: usize = 16_384;

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

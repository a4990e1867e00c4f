//! A stand-in for the driver's socket. The properties create batches of datagrams themselves.

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;

use rakwire::Instant;

use crate::host::Clock;

#[derive(Debug)]
pub(crate) struct Socket;

#[derive(Debug)]
pub(crate) struct Buffers;

impl Buffers {
    pub(crate) const fn new() -> Self {
        Self
    }
}

#[derive(Debug)]
pub(crate) struct Received<'b>(&'b [u8]);

impl Received<'_> {
    pub(crate) const fn are_all(&self) -> bool {
        self.0.is_empty()
    }
}

impl Socket {
    pub(crate) fn try_receive<'b>(
        &self,
        _clock: &Clock,
        _buffers: &'b mut Buffers,
    ) -> io::Result<Option<Received<'b>>> {
        Ok(None)
    }

    pub(crate) fn receive_now<'b>(
        &self,
        _clock: &Clock,
        _buffers: &'b mut Buffers,
    ) -> io::Result<Received<'b>> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Datagrams from one source, as in the driver.
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

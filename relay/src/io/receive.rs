//! Receiving several datagrams per call, into buffers that all sockets of a thread share.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::target::canonical;

/// The size of a receive buffer: the system returns several datagrams of one sender in it.
const BUFFER: usize = 65_535;

thread_local! {
    /// An idle socket needs none of them.
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers::new());
}

struct Buffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Buffers {
    fn new() -> Self {
        // The system gives these pages to the process as they are used for the first time.
        Self { bytes: vec![0; BUFFER * BATCH_SIZE].into(), metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    fn receive(&mut self, count: usize, socket: UdpSockRef<'_>, state: &UdpSocketState) -> io::Result<usize> {
        let mut chunks = self.bytes.chunks_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        // This quinn-udp (0.6) has room for all that it has the system say of a datagram. The one of quinn (0.5) does not, and a debug
        // build aborts in it: see `BatchSocket::beside_quic`.
        state.recv(socket, &mut slices[..count], &mut self.metas[..count])
    }
}

/// What one call received.
#[derive(Clone, Copy)]
pub(crate) struct Received<'b> {
    bytes: &'b [u8],
    metas: &'b [RecvMeta],
}

impl<'b> Received<'b> {
    /// Datagrams of one sender that stand behind each other: who sent them, their bytes, and the length of each but the last
    /// one.
    pub(crate) fn iter(self) -> impl Iterator<Item = (SocketAddr, &'b [u8], usize)> {
        self.metas.iter().zip(self.bytes.chunks(BUFFER)).map(|(meta, buffer)| {
            let bytes = buffer.get(..meta.len).unwrap_or(buffer);
            (canonical(meta.addr), bytes, meta.stride)
        })
    }
}

/// Passes on what one call receives. `expected` is how many buffers it receives into, and is changed for the next call:
/// preparing all of them costs more than a datagram.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when there is nothing; others may be about a datagram that was sent before.
pub(crate) fn try_receive<T>(
    socket: &UdpSocket,
    state: &UdpSocketState,
    expected: &mut usize,
    handle: impl FnOnce(Received<'_>) -> T,
) -> io::Result<T> {
    BUFFERS.with_borrow_mut(|buffers| {
        let call = || buffers.receive(*expected, UdpSockRef::from(socket), state);
        let result = socket.try_io(Interest::READABLE, call);
        *expected = (2 * *result.as_ref().unwrap_or(&0)).clamp(1, BATCH_SIZE);
        result.map(|count| handle(Received { bytes: &buffers.bytes, metas: &buffers.metas[..count] }))
    })
}

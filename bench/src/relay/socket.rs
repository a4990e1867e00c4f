//! A non-blocking UDP socket for the clients and the game server.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

use anyhow::Result;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

use crate::udp;

/// The size of one receive buffer in bytes. The system may merge datagrams of one sender up to this length.
const SLOT: usize = 65_535;

/// The number of datagrams that one system call sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// One datagram per call, as in most programs.
    Single,
    /// As many datagrams per call as the system supports.
    Bursts,
}

#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// The buffers for one receive call.
#[derive(Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Batch {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BATCH_SIZE * SLOT], metas: [RecvMeta::default(); BATCH_SIZE] }
    }
}

impl Socket {
    /// Binds to a free port of the loopback interface.
    pub(super) fn bind() -> Result<Self> {
        let (socket, state) = udp::bind()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, state })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends consecutive datagrams. Each is `size` bytes long, except that the last one may be shorter.
    ///
    /// Drops datagrams for which the socket's send buffer has no space.
    pub(super) fn send(&self, to: SocketAddr, bytes: &[u8], size: usize, calls: Calls) -> Result<()> {
        let segments = match calls {
            Calls::Single => 1,
            Calls::Bursts => self.state.max_gso_segments().min(SLOT / 2 / size.max(1)).max(1),
        };
        for contents in bytes.chunks((segments * size).max(1)) {
            let segment_size = (contents.len() > size).then_some(size);
            let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
            match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Receives datagrams with one system call. Returns false if no datagram was waiting.
    ///
    /// Calls `take` for each group of consecutive datagrams of one sender. Its arguments are the sender, the bytes, and
    /// the length of each datagram except the last one, which may be shorter.
    pub(super) fn receive(
        &self,
        batch: &mut Batch,
        mut take: impl FnMut(SocketAddr, &[u8], usize) -> Result<()>,
    ) -> Result<bool> {
        let mut chunks = batch.bytes.chunks_mut(SLOT);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let received = match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut batch.metas) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            received => received?,
        };
        for (slot, meta) in batch.bytes.chunks(SLOT).zip(&batch.metas).take(received) {
            take(meta.addr, slot.get(..meta.len).unwrap_or_default(), meta.stride.max(1))?;
        }
        Ok(true)
    }
}

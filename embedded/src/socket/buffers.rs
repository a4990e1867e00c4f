//! The memory of the sockets of a peer.

use embassy_net::Stack;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use heapless::Vec;

/// The size of the send buffer in datagrams of maximum length.
const OUTGOING_DATAGRAMS: usize = 2;
/// The number of short datagrams that can share the space of one with maximum length.
pub(super) const METADATA_PER_DATAGRAM: usize = 4;

/// The memory of the sockets, with a receive buffer for `DATAGRAMS` datagrams of the maximum length, `SIZE` bytes.
#[derive(Debug)]
pub(crate) struct Buffers<const DATAGRAMS: usize, const SIZE: usize> {
    received: [[u8; SIZE]; DATAGRAMS],
    received_metadata: Vec<[PacketMetadata; METADATA_PER_DATAGRAM], DATAGRAMS>,
    sent: [[u8; SIZE]; OUTGOING_DATAGRAMS],
    sent_metadata: Vec<[PacketMetadata; METADATA_PER_DATAGRAM], OUTGOING_DATAGRAMS>,
    /// The send buffer for neighbours that may have an unknown hardware address.
    resolving: [u8; SIZE],
    resolving_metadata: Vec<[PacketMetadata; METADATA_PER_DATAGRAM], 1>,
    /// The datagram being composed, or waiting for space in the send buffer.
    composed: [u8; SIZE],
}

impl<const DATAGRAMS: usize, const SIZE: usize> Buffers<DATAGRAMS, SIZE> {
    pub(crate) const fn new() -> Self {
        Self {
            received: [[0; SIZE]; DATAGRAMS],
            // The vectors are filled later: metadata is not all zero bytes even if it is empty, so a static would take
            // flash.
            received_metadata: Vec::new(),
            sent: [[0; SIZE]; OUTGOING_DATAGRAMS],
            sent_metadata: Vec::new(),
            resolving: [0; SIZE],
            resolving_metadata: Vec::new(),
            composed: [0; SIZE],
        }
    }

    /// Lends the memory without its const generic sizes, and the buffer for composing a datagram.
    pub(super) fn lend(&mut self) -> (Memory<'_>, &mut [u8]) {
        fill(&mut self.received_metadata);
        fill(&mut self.sent_metadata);
        fill(&mut self.resolving_metadata);
        let memory = Memory {
            received: self.received.as_flattened_mut(),
            received_metadata: self.received_metadata.as_flattened_mut(),
            sent: self.sent.as_flattened_mut(),
            sent_metadata: self.sent_metadata.as_flattened_mut(),
            resolving: &mut self.resolving,
            resolving_metadata: self.resolving_metadata.as_flattened_mut(),
        };
        (memory, &mut self.composed)
    }
}

/// The memory of both sockets.
pub(super) struct Memory<'d> {
    received: &'d mut [u8],
    received_metadata: &'d mut [PacketMetadata],
    sent: &'d mut [u8],
    sent_metadata: &'d mut [PacketMetadata],
    resolving: &'d mut [u8],
    resolving_metadata: &'d mut [PacketMetadata],
}

impl Memory<'_> {
    /// Opens both sockets on `port`: one that receives all datagrams, and one that only sends. Port 0 picks a free
    /// port.
    ///
    /// If two sockets share a port, smoltcp delivers to the socket in the lower slot, which was added first. The sockets
    /// are therefore opened and closed together.
    pub(super) fn open<'m>(&'m mut self, stack: Stack<'m>, port: u16) -> (UdpSocket<'m>, UdpSocket<'m>) {
        let mut main =
            UdpSocket::new(stack, self.received_metadata, self.received, self.sent_metadata, self.sent);
        // These cannot fail: the sockets are new, and the address is unspecified.
        let _ = main.bind(port);
        let mut resolving = UdpSocket::new(stack, &mut [], &mut [], self.resolving_metadata, self.resolving);
        let _ = resolving.bind(main.endpoint().port);
        (main, resolving)
    }
}

fn fill<const N: usize>(metadata: &mut Vec<[PacketMetadata; METADATA_PER_DATAGRAM], N>) {
    metadata.clear();
    while metadata.push([PacketMetadata::EMPTY; METADATA_PER_DATAGRAM]).is_ok() {}
}

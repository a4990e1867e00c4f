//! What a front wants to have sent.

use std::net::SocketAddr;
use std::ops::Range;

use rakwire::wire::{WireError, Writer};

use super::table::FlowId;
use crate::flow::ProxyHeader;

/// The longest message that a front writes itself.
const LONGEST: usize = 1_500;

/// Where datagrams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Client(SocketAddr),
    /// To the game server, from the address of this flow.
    Server(FlowId),
}

#[derive(Debug)]
enum Bytes<'b> {
    Received(&'b [u8]),
    Written(Range<usize>),
}

#[derive(Debug)]
struct Transmit<'b> {
    to: To,
    bytes: Bytes<'b>,
    stride: usize,
}

/// Datagrams in the order in which they are to be sent: those that pass stand where they were received, others are written
/// here.
#[derive(Debug, Default)]
pub(crate) struct Transmits<'b> {
    list: Vec<Transmit<'b>>,
    written: Vec<u8>,
}

impl<'b> Transmits<'b> {
    /// Passes datagrams on that stand behind each other, each `stride` bytes long except the last one, which may be
    /// shorter.
    pub(super) fn pass(&mut self, to: To, bytes: &'b [u8], stride: usize) {
        self.list.push(Transmit { to, bytes: Bytes::Received(bytes), stride });
    }

    /// Adds a datagram that `write` writes.
    pub(super) fn write(&mut self, to: To, write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>) {
        self.write_behind(None, to, write);
    }

    /// Adds a datagram that begins with `header`, if there is one, and goes on with what `write` writes.
    pub(super) fn write_behind(
        &mut self,
        header: Option<ProxyHeader>,
        to: To,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>,
    ) {
        let start = self.written.len();
        if let Some(header) = header {
            header.write(&mut self.written);
        }
        let message = self.written.len();
        self.written.resize(message + LONGEST, 0);
        let mut writer = Writer::new(&mut self.written[message..]);
        let result = write(&mut writer);
        let end = message + writer.written();
        self.written.truncate(end);
        if result.is_ok() {
            self.list.push(Transmit { to, bytes: Bytes::Written(start..end), stride: end - start });
        }
    }

    /// All of them: where to, the bytes, and the length of each datagram but the last one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (To, &[u8], usize)> {
        self.list.iter().map(|transmit| {
            let bytes = match &transmit.bytes {
                Bytes::Received(bytes) => bytes,
                Bytes::Written(range) => &self.written[range.clone()],
            };
            (transmit.to, bytes, transmit.stride)
        })
    }
}

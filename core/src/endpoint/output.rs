//! What a peer has to send.

use core::net::SocketAddr;

use super::protocol::{Connection, Peer, Protocol};
use crate::machine::Transmit;
use crate::time::Instant;

impl<P: Protocol> Peer<'_, P> {
    /// Composes the next datagram to send at `now` in `buffer`, which must have room for
    /// [`Protocol::MAX_DATAGRAM`] bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        let (to, length) = match P::poll_transmit(self, buffer) {
            Some(written) => written,
            None => self.poll_connections(buffer)?,
        };
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += length as u64;
        Some(Transmit { to, payload: buffer.get(..length)? })
    }

    /// Lets the connections that have something to do take turns, of several datagrams if the protocol says so: a system
    /// sends those to one address with one call.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn poll_connections(&mut self, buffer: &mut [u8]) -> Option<(SocketAddr, usize)> {
        while let Some(slot) = self.tables.ready.front() {
            let (connection, mut cx) = self.borrow(slot)?;
            let length = connection.poll_transmit(&mut cx, buffer);
            let to = *cx.remote;
            self.list_writable(slot);
            if let (Some(length), Some(to)) = (length, to) {
                self.in_a_row += 1;
                if self.in_a_row >= P::BURST {
                    self.in_a_row = 0;
                    self.tables.ready.pop();
                    self.tables.ready.push(slot);
                }
                return Some((to, length));
            }
            self.in_a_row = 0;
            self.tables.ready.pop();
            self.park(slot);
        }
        None
    }
}

//! What a peer has to send.

use core::net::SocketAddr;

use super::protocol::{Connection, Peer, Protocol};
use super::stats::PeerStats;
use crate::machine::Transmit;
use crate::time::Instant;

impl<P: Protocol> Peer<'_, P> {
    /// Composes the next datagram to send at `now` in `buffer`, which must have room for
    /// [`Protocol::MAX_DATAGRAM`] bytes.
    pub fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        self.advance(now);
        match P::poll_transmit(self, buffer) {
            Some((to, length)) => transmit::<P>(&mut self.stats, &to, length, buffer),
            None => {
                let (slot, length) = self.poll_connections(buffer)?;
                let to = &self.tables.slots.get(usize::from(slot))?.remote;
                transmit::<P>(&mut self.stats, to.as_ref()?, length, buffer)
            }
        }
    }

    /// Lets the connections that have something to do take turns, and returns the slot of the one that wrote a datagram and
    /// its length. A turn is of several datagrams if the protocol says so: a system
    /// sends those to one address with one call.
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn poll_connections(&mut self, buffer: &mut [u8]) -> Option<(u16, usize)> {
        while let Some(slot) = self.tables.ready.front() {
            let (connection, mut cx) = self.borrow(slot)?;
            let length = connection.poll_transmit(&mut cx, buffer);
            self.list_writable(slot);
            if let Some(length) = length {
                self.in_a_row += 1;
                if self.in_a_row >= P::BURST {
                    self.in_a_row = 0;
                    self.tables.ready.pop();
                    self.tables.ready.push(slot);
                }
                return Some((slot, length));
            }
            self.in_a_row = 0;
            self.tables.ready.pop();
            self.park(slot);
        }
        None
    }
}

/// Counts a datagram that is sent.
fn transmit<'b, P: Protocol>(
    stats: &mut PeerStats<P::DropReason>,
    to: &SocketAddr,
    length: usize,
    buffer: &'b [u8],
) -> Option<Transmit<'b>> {
    stats.on_sent(length);
    Some(Transmit { to: *to, payload: buffer.get(..length)? })
}

//! Composed datagrams that wait to be sent.

use std::net::SocketAddr;

/// The number of datagrams that are composed before they are sent.
const DATAGRAMS: usize = 64;
/// The longest UDP payload.
const LONGEST_TRANSMIT: usize = 65_507;

/// Composed datagrams, contiguous in one buffer, so that one call can send several to the same address.
#[derive(Debug)]
pub(crate) struct Outgoing {
    bytes: Box<[u8]>,
    /// The length of the longest datagram in bytes.
    max_datagram: usize,
    filled: usize,
    datagrams: Vec<(SocketAddr, usize)>,
    /// How many of the datagrams and of their bytes have been sent.
    sent: usize,
    sent_bytes: usize,
}

/// Datagrams to one address that one call sends: all `size` bytes long except the last one, which may be shorter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Transmit<'b> {
    pub(crate) to: SocketAddr,
    pub(crate) size: usize,
    pub(crate) count: usize,
    pub(crate) bytes: &'b [u8],
}

impl Outgoing {
    /// A buffer for datagrams of at most `max_datagram` bytes.
    pub(crate) fn new(max_datagram: usize) -> Self {
        Self {
            bytes: vec![0; DATAGRAMS * max_datagram].into(),
            max_datagram,
            filled: 0,
            datagrams: Vec::with_capacity(DATAGRAMS),
            sent: 0,
            sent_bytes: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Space for one more datagram, if there is any.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.filled..self.filled + self.max_datagram)
    }

    /// Adds the datagram that was written to the start of that space.
    pub(crate) fn push(&mut self, to: SocketAddr, length: usize) {
        self.filled += length;
        self.datagrams.push((to, length));
    }

    /// Adds a copy of a datagram, if there is space.
    pub(crate) fn push_copy(&mut self, to: SocketAddr, datagram: &[u8]) {
        if let Some(room) = self.room().and_then(|room| room.get_mut(..datagram.len())) {
            room.copy_from_slice(datagram);
            self.push(to, datagram.len());
        }
    }

    /// Takes the next datagrams that one call can send, at most `segments`. Clears the buffer if none are left.
    pub(crate) fn next(&mut self, segments: usize) -> Option<Transmit<'_>> {
        let waiting = self.datagrams.get(self.sent..).unwrap_or(&[]);
        let Some(&(to, size)) = waiting.first() else {
            self.clear();
            return None;
        };
        let (mut count, mut length) = (0, 0);
        for &(other, bytes) in waiting.iter().take(segments.max(1)) {
            if other != to || bytes > size || length + bytes > LONGEST_TRANSMIT {
                break;
            }
            count += 1;
            length += bytes;
            if bytes < size {
                break;
            }
        }
        let start = self.sent_bytes;
        self.sent += count;
        self.sent_bytes += length;
        Some(Transmit { to, size, count, bytes: self.bytes.get(start..start + length)? })
    }

    fn clear(&mut self) {
        self.datagrams.clear();
        self.filled = 0;
        self.sent = 0;
        self.sent_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_DATAGRAM: usize = 1_464;

    #[test]
    fn adjacent_datagrams_of_equal_size_share_a_transmit() {
        let [a, b]: [SocketAddr; 2] = [([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into()];
        let mut outgoing = Outgoing::new(MAX_DATAGRAM);
        for (to, length) in [(a, 10), (a, 10), (a, 4), (a, 4), (a, 5), (b, 5), (b, 5), (b, 5)] {
            outgoing.room().expect("room for eight")[..length].fill(7);
            outgoing.push(to, length);
        }
        let mut found = Vec::new();
        while let Some(transmit) = outgoing.next(2) {
            found.push((transmit.to, transmit.size, transmit.count, transmit.bytes.len()));
        }
        let expected = [(a, 10, 2, 20), (a, 4, 2, 8), (a, 5, 1, 5), (b, 5, 2, 10), (b, 5, 1, 5)];
        assert_eq!(found, expected);
        assert!(outgoing.is_empty());
    }

    #[test]
    fn a_shorter_datagram_is_the_last_of_its_transmit() {
        let to: SocketAddr = ([127, 0, 0, 1], 1).into();
        let mut outgoing = Outgoing::new(MAX_DATAGRAM);
        for length in [10, 4, 10] {
            outgoing.push(to, length);
        }
        assert_eq!(outgoing.next(64).map(|transmit| transmit.count), Some(2));
        assert_eq!(outgoing.next(64).map(|transmit| transmit.count), Some(1));
        assert_eq!(outgoing.next(64), None);
    }

    #[test]
    fn the_buffer_is_bounded() {
        let mut outgoing = Outgoing::new(MAX_DATAGRAM);
        let mut count = 0;
        while outgoing.room().is_some() {
            outgoing.push(([127, 0, 0, 1], 1).into(), MAX_DATAGRAM);
            count += 1;
        }
        assert_eq!(count, DATAGRAMS);
        let first = outgoing.next(64).map(|transmit| transmit.bytes.len());
        assert!(first.is_some_and(|length| length <= LONGEST_TRANSMIT));
    }
}

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

    /// What is to be sent: datagrams that can leave together, at most `segments` of them, are one transmit.
    pub(crate) fn transmits(&self, segments: usize) -> Vec<Transmit<'_>> {
        let (mut waiting, mut bytes) = (&*self.datagrams, &*self.bytes);
        let mut transmits = Vec::with_capacity(waiting.len());
        while let Some(&(to, size)) = waiting.first() {
            let (count, length) = together(waiting, segments);
            let Some((transmit, others)) = bytes.split_at_checked(length) else { break };
            transmits.push(Transmit { to, size, count, bytes: transmit });
            waiting = waiting.get(count..).unwrap_or(&[]);
            bytes = others;
        }
        transmits
    }

    /// Forgets what has been sent.
    pub(crate) fn clear(&mut self) {
        self.datagrams.clear();
        self.filled = 0;
    }
}

/// How many of the first datagrams can leave together, and their bytes: those to one address and of one size, of which the last
/// may be shorter.
fn together(datagrams: &[(SocketAddr, usize)], segments: usize) -> (usize, usize) {
    let (mut count, mut length) = (0, 0);
    let Some(&(to, size)) = datagrams.first() else { return (0, 0) };
    for &(other, bytes) in datagrams.iter().take(segments.max(1)) {
        if other != to || bytes > size || length + bytes > LONGEST_TRANSMIT {
            break;
        }
        count += 1;
        length += bytes;
        if bytes < size {
            break;
        }
    }
    (count, length)
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
        let transmits = outgoing.transmits(2);
        let shape =
            |transmit: &Transmit<'_>| (transmit.to, transmit.size, transmit.count, transmit.bytes.len());
        let found: Vec<_> = transmits.iter().map(shape).collect();
        let expected = [(a, 10, 2, 20), (a, 4, 2, 8), (a, 5, 1, 5), (b, 5, 2, 10), (b, 5, 1, 5)];
        assert_eq!(found, expected);
        outgoing.clear();
        assert!(outgoing.is_empty() && outgoing.transmits(2).is_empty());
    }

    #[test]
    fn a_shorter_datagram_is_the_last_of_its_transmit() {
        let to: SocketAddr = ([127, 0, 0, 1], 1).into();
        let mut outgoing = Outgoing::new(MAX_DATAGRAM);
        for length in [10, 4, 10] {
            outgoing.push(to, length);
        }
        let counts: Vec<usize> = outgoing.transmits(64).iter().map(|transmit| transmit.count).collect();
        assert_eq!(counts, [2, 1]);
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
        let transmits = outgoing.transmits(64);
        assert!(transmits.iter().all(|transmit| transmit.bytes.len() <= LONGEST_TRANSMIT));
        assert_eq!(transmits.iter().map(|transmit| transmit.count).sum::<usize>(), DATAGRAMS);
    }
}

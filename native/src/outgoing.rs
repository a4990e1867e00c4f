//! Composed datagrams that wait to be sent, several per system call: to one address, or on Linux to many.

use std::net::SocketAddr;

/// Number of datagrams of maximum length that are composed before they are sent.
const DATAGRAMS: usize = 64;
/// Maximum UDP payload in bytes.
const MAX_TRANSMIT: usize = 65_507;

/// Composed datagrams in one contiguous buffer, so that one call can send several to the same address.
#[derive(Debug)]
pub(crate) struct Outgoing {
    bytes: Box<[u8]>,
    /// Maximum length of a datagram in bytes.
    max_datagram: usize,
    filled: usize,
    datagrams: Vec<(SocketAddr, usize)>,
}

impl Outgoing {
    /// Creates a buffer for datagrams of at most `max_datagram` bytes.
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

    /// Returns space for one more datagram, or `None` if the buffer is full.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        self.bytes.get_mut(self.filled..self.filled + self.max_datagram)
    }

    /// Appends the datagram that was written to the start of that space.
    pub(crate) fn push(&mut self, to: SocketAddr, length: usize) {
        self.filled += length;
        self.datagrams.push((to, length));
    }

    /// Appends a copy of a datagram, if there is space.
    pub(crate) fn push_copy(&mut self, to: SocketAddr, datagram: &[u8]) {
        if let Some(room) = self.room().and_then(|room| room.get_mut(..datagram.len())) {
            room.copy_from_slice(datagram);
            self.push(to, datagram.len());
        }
    }

    /// Returns the pending transmits: up to `segments` datagrams that one call can send are grouped.
    pub(crate) fn transmits(&self, segments: usize) -> Transmits<'_> {
        Transmits { datagrams: &self.datagrams, bytes: &self.bytes, segments }
    }

    /// Clears the buffer after its datagrams have been sent.
    pub(crate) fn clear(&mut self) {
        self.datagrams.clear();
        self.filled = 0;
    }
}

/// Datagrams to one address that one call sends: all are `size` bytes long except the last, which may be shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transmit<'b> {
    pub(crate) to: SocketAddr,
    pub(crate) size: usize,
    pub(crate) count: usize,
    pub(crate) bytes: &'b [u8],
}

/// Iterates over the transmits of contiguous datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Transmits<'b> {
    datagrams: &'b [(SocketAddr, usize)],
    bytes: &'b [u8],
    segments: usize,
}

impl Transmits<'_> {
    /// Limits further transmits to `segments` datagrams.
    pub(crate) const fn set_segments(&mut self, segments: usize) {
        self.segments = segments;
    }

    /// Skips the first `count` datagrams.
    pub(crate) fn skip_first(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }
}

impl<'b> Iterator for Transmits<'b> {
    type Item = Transmit<'b>;

    fn next(&mut self) -> Option<Transmit<'b>> {
        let &(to, size) = self.datagrams.first()?;
        let (count, length) = together(self.datagrams, self.segments);
        let (bytes, others) = self.bytes.split_at_checked(length)?;
        self.datagrams = self.datagrams.get(count..)?;
        self.bytes = others;
        Some(Transmit { to, size, count, bytes })
    }
}

/// Returns the number of leading datagrams that one call can send, and their total bytes: they have one address and one
/// size, except that the last may be shorter.
fn together(datagrams: &[(SocketAddr, usize)], segments: usize) -> (usize, usize) {
    let (mut count, mut length) = (0, 0);
    let Some(&(to, size)) = datagrams.first() else { return (0, 0) };
    for &(other, bytes) in datagrams.iter().take(segments.max(1)) {
        if other != to || bytes > size || length + bytes > MAX_TRANSMIT {
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

/// Sends datagrams to many addresses with one system call.
#[cfg(target_os = "linux")]
pub(crate) mod send_many {
    use std::io::{self, IoSlice};
    use std::net::SocketAddr;
    use std::os::fd::AsFd;

    use heapless::Vec;
    use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

    use super::Transmit;

    /// Maximum number of datagrams per call.
    pub(crate) const MOST: usize = 64;

    /// Up to [`MOST`] datagrams, each in its own transmit.
    pub(crate) type Datagrams<'b> = Vec<Transmit<'b>, MOST>;

    /// Sends the datagrams by one `sendmmsg`, each to the address that `route` returns.
    ///
    /// Returns the number of datagrams that the system accepted, or the error for the first datagram. Does not
    /// allocate.
    pub(crate) fn send(
        socket: impl AsFd,
        datagrams: &Datagrams<'_>,
        route: impl Fn(SocketAddr) -> SocketAddr,
    ) -> io::Result<usize> {
        let to: Vec<SocketAddrAny, MOST> =
            datagrams.iter().map(|datagram| route(datagram.to).into()).collect();
        let slices: Vec<[IoSlice<'_>; 1], MOST> =
            datagrams.iter().map(|datagram| [IoSlice::new(datagram.bytes)]).collect();
        let mut control: Vec<SendAncillaryBuffer<'_, '_, '_>, MOST> =
            datagrams.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let parts = to.iter().zip(&slices).zip(&mut control);
        let mut messages: Vec<MMsgHdr<'_>, MOST> =
            parts.map(|((to, slice), control)| MMsgHdr::new_with_addr(to, slice, control)).collect();
        Ok(sendmmsg(socket, &mut messages, SendFlags::empty())?)
    }

    #[cfg(test)]
    mod tests {
        use std::net::UdpSocket;
        use std::time::Duration;

        use super::*;

        #[test]
        fn one_call_sends_to_many_addresses_until_one_fails() {
            let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
            let receivers = [1, 2].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
            let addresses =
                receivers.each_ref().map(|receiver| receiver.local_addr().expect("the socket is bound"));
            let transmit = |to, bytes: &'static [u8]| Transmit { to, size: bytes.len(), count: 1, bytes };
            let nowhere = transmit(([127, 0, 0, 1], 0).into(), &[9]);
            let datagrams = Vec::from_array([
                transmit(addresses[0], &[1, 1]),
                transmit(addresses[1], &[2]),
                nowhere.clone(),
            ]);
            let sent = send(&sender, &datagrams, |to| to);
            assert_eq!(sent.expect("the first is sent"), 2);
            assert!(send(&sender, &Vec::from_iter([nowhere]), |to| to).is_err());
            for (receiver, datagram) in receivers.iter().zip(&datagrams) {
                receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
                let mut buffer = [0; 8];
                let length = receiver.recv(&mut buffer).expect("a datagram");
                assert_eq!(&buffer[..length], datagram.bytes);
            }
        }
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
            outgoing.room().expect("space for eight")[..length].fill(7);
            outgoing.push(to, length);
        }
        let shape =
            |transmit: Transmit<'_>| (transmit.to, transmit.size, transmit.count, transmit.bytes.len());
        let found: Vec<_> = outgoing.transmits(2).map(shape).collect();
        let expected = [(a, 10, 2, 20), (a, 4, 2, 8), (a, 5, 1, 5), (b, 5, 2, 10), (b, 5, 1, 5)];
        assert_eq!(found, expected);
        let mut others = outgoing.transmits(2);
        others.skip_first(1);
        others.set_segments(1);
        assert!(others.all(|transmit| transmit.count == 1));
        outgoing.clear();
        assert!(outgoing.is_empty() && outgoing.transmits(2).next().is_none());
    }

    #[test]
    fn a_shorter_datagram_ends_its_transmit() {
        let to: SocketAddr = ([127, 0, 0, 1], 1).into();
        let mut outgoing = Outgoing::new(MAX_DATAGRAM);
        for length in [10, 4, 10] {
            outgoing.push(to, length);
        }
        let counts: Vec<usize> = outgoing.transmits(64).map(|transmit| transmit.count).collect();
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
        assert!(outgoing.transmits(64).all(|transmit| transmit.bytes.len() <= MAX_TRANSMIT));
        assert_eq!(outgoing.transmits(64).map(|transmit| transmit.count).sum::<usize>(), DATAGRAMS);
    }
}

//! The hook for a secure mode, applied last before a datagram is sent and first after it was received.

/// The protection of a connection's datagrams (docs/raknet.md#secure-mode).
///
/// It seals plain bytes and opens sealed ones. One value belongs to one connection and handles both directions. A
/// secure mode stores its keys and counters in it; [`Plain`] stores nothing and changes nothing.
///
/// A connection that calls it must observe these rules:
///
/// - Every datagram of the connection is sealed, including acknowledgements; offline messages never are.
/// - Bit 7 of the first byte stays set, as in every datagram of a connection. Routing needs nothing else in the clear:
///   an intermediary distinguishes the datagrams from offline messages without a key.
/// - The size arithmetic subtracts [`overhead`](Self::overhead) from the MTU, so that `seal` always has room.
/// - Datagrams that do not open are dropped and counted. They do not reset any timer: only an opened datagram shows
///   that the peer is alive.
///
/// A mode that flips every bit but the first and appends a mark:
///
/// ```
/// use rakwire::wire::protection::PacketProtection;
///
/// struct Flip;
///
/// impl PacketProtection for Flip {
///     fn overhead(&self) -> u16 {
///         1
///     }
///     fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize> {
///         *datagram.get_mut(length)? = 0x55;
///         flip(datagram.get_mut(..=length)?);
///         Some(length + 1)
///     }
///     fn open(&mut self, datagram: &mut [u8]) -> Option<usize> {
///         flip(datagram);
///         let (mark, plain) = datagram.split_last()?;
///         (*mark == 0x55).then_some(plain.len())
///     }
/// }
///
/// fn flip(bytes: &mut [u8]) {
///     bytes.iter_mut().for_each(|byte| *byte = !*byte);
///     bytes.first_mut().map(|first| *first ^= 0x80);
/// }
///
/// let mut datagram = [0xC0, 0, 1, 1, 0, 0, 0, 0];
/// assert_eq!(Flip.seal(&mut datagram, 7), Some(8));
/// assert_eq!(datagram[0], 0xBF);
/// assert_eq!(Flip.open(&mut datagram), Some(7));
/// assert_eq!(datagram[..7], [0xC0, 0, 1, 1, 0, 0, 0]);
/// ```
pub trait PacketProtection {
    /// Returns the number of bytes that `seal` adds to a datagram.
    ///
    /// It is 0 in plain mode, and 11 in the original's secure mode (8 of an authentication code, 3 of a counter). It
    /// must not change during a connection.
    fn overhead(&self) -> u16;

    /// Seals the first `length` bytes of `datagram` in place and returns the new length.
    ///
    /// The new length is `length` plus the overhead.
    ///
    /// Returns `None` if there is no room or no more datagrams may be sealed, for example when a counter is used up;
    /// the datagram is then not sent.
    fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize>;

    /// Opens `datagram` in place and returns the length of the plain datagram at its front.
    ///
    /// Returns `None` if it was forged, damaged or opened before; the bytes are then undefined.
    fn open(&mut self, datagram: &mut [u8]) -> Option<usize>;

    /// Opens a datagram that cannot be changed, like [`open`](Self::open).
    ///
    /// It is copied to `buffer`, which must be as long. A mode that changes nothing needs no copy.
    fn open_copy<'d>(&mut self, datagram: &'d [u8], buffer: &'d mut [u8]) -> Option<&'d [u8]> {
        let copy = buffer.get_mut(..datagram.len())?;
        copy.copy_from_slice(datagram);
        let length = self.open(copy)?;
        copy.get(..length)
    }
}

/// The plain mode, which leaves datagrams unchanged.
///
/// ```
/// use rakwire::wire::protection::{Plain, PacketProtection};
///
/// let mut datagram = *b"\x84\0\0\0";
/// assert_eq!(Plain.overhead(), 0);
/// assert_eq!(Plain.seal(&mut datagram, 4), Some(4));
/// assert_eq!(Plain.open(&mut datagram), Some(4));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plain;

impl PacketProtection for Plain {
    #[inline]
    fn overhead(&self) -> u16 {
        0
    }

    #[inline]
    fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize> {
        datagram.get(..length).map(<[u8]>::len)
    }

    #[inline]
    fn open(&mut self, datagram: &mut [u8]) -> Option<usize> {
        Some(datagram.len())
    }

    #[inline]
    fn open_copy<'d>(&mut self, datagram: &'d [u8], _: &'d mut [u8]) -> Option<&'d [u8]> {
        Some(datagram)
    }
}

//! The interface of packet protection, applied last before sending and first after receiving.

/// The protection of a connection's datagrams (docs/raknet.md#secure-mode).
///
/// One value belongs to one connection and handles both directions; it stores keys and counters. [`Plain`] stores
/// nothing and changes nothing.
///
/// A connection must observe these rules:
///
/// - Every datagram of the connection is sealed, including acknowledgements. Offline messages are not.
/// - Bit 7 of the first byte stays set, as in every datagram of a connection. An intermediary can thus distinguish
///   datagrams from offline messages without a key. Everything else may be encrypted.
/// - The size arithmetic subtracts [`overhead`](Self::overhead) from the MTU, so that a sealed datagram always fits.
/// - Datagrams that fail to open are dropped and counted. They do not reset any timer.
///
/// An example that flips every bit but the first and appends one byte:
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
    /// It is 0 for [`Plain`], and 11 in the secure mode of C++ RakNet: an authentication code of 8 bytes, and 3 bytes
    /// of a counter. It must not change during a connection.
    fn overhead(&self) -> u16;

    /// Seals the first `length` bytes of `datagram` in place, and returns `length` plus the overhead.
    ///
    /// Returns `None` if `datagram` is too short for the overhead, or if no more datagrams may be sealed (for example,
    /// after the last counter). The datagram is then not sent.
    fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize>;

    /// Opens `datagram` in place, and returns the length of the plain datagram at its front.
    ///
    /// Returns `None` if it is forged, damaged or replayed; the contents of `datagram` are then unspecified.
    fn open(&mut self, datagram: &mut [u8]) -> Option<usize>;

    /// Opens a datagram without changing it, like [`open`](Self::open).
    ///
    /// The datagram is copied to `buffer`, which must be at least as long. An implementation that changes nothing need
    /// not copy.
    fn open_copy<'d>(&mut self, datagram: &'d [u8], buffer: &'d mut [u8]) -> Option<&'d [u8]> {
        let copy = buffer.get_mut(..datagram.len())?;
        copy.copy_from_slice(datagram);
        let length = self.open(copy)?;
        copy.get(..length)
    }
}

/// No protection: datagrams are unchanged.
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

//! The place of a secure mode: what happens to a datagram last before it leaves and first after it arrived.

/// Turns the plain bytes of a connection's datagrams into sealed ones and back (docs/raknet.md#secure-mode).
///
/// One value belongs to one connection, and both directions go through it. A secure mode keeps its keys and counters in
/// it; [`Plain`] keeps nothing and changes nothing.
///
/// What a connection that calls it has to keep to:
///
/// - Every datagram of the connection is sealed, acknowledgements too; offline messages never are.
/// - Bit 7 of the first byte stays set, as in every datagram of a connection. Routing needs nothing else, so nothing else
///   has to be clear: whoever passes datagrams on tells them from offline messages without a key.
/// - The arithmetic of sizes takes [`overhead`](Self::overhead) off the MTU, so that `seal` always has room.
/// - What does not open is dropped and counted. It touches no clock: only an opened datagram shows that the peer lives.
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
    /// By how many bytes `seal` makes a datagram longer: 0 in plain mode, 11 in the original's secure mode (8 of an
    /// authentication code, 3 of a counter). Must not change while a connection lives.
    fn overhead(&self) -> u16;

    /// Seals the first `length` bytes of `datagram` in place and returns the new length, `length` plus the overhead.
    ///
    /// `None` when there is no room or no more datagram may be sealed, for example when a counter is used up; the
    /// datagram is then not sent.
    fn seal(&mut self, datagram: &mut [u8], length: usize) -> Option<usize>;

    /// Opens `datagram` in place and returns how many of its first bytes are the plain datagram.
    ///
    /// `None` when it was forged, damaged or opened before; the bytes are then worth nothing.
    fn open(&mut self, datagram: &mut [u8]) -> Option<usize>;

    /// As [`open`](Self::open) for a datagram that cannot be changed: a copy is opened in `buffer`, which must be as
    /// long. A mode that changes nothing needs no copy.
    fn open_copy<'d>(&mut self, datagram: &'d [u8], buffer: &'d mut [u8]) -> Option<&'d [u8]> {
        let copy = buffer.get_mut(..datagram.len())?;
        copy.copy_from_slice(datagram);
        let length = self.open(copy)?;
        copy.get(..length)
    }
}

/// The plain mode: datagrams leave and arrive as they are.
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

//! RakNet's wire format: every packet reads itself from a [`Source`] and writes itself to a [`Writer`].
//!
//! The first byte determines the kind of a datagram. With bit 7 set it is a [`datagram`] of the reliability layer:
//! data, acknowledgement or negative acknowledgement. Otherwise it is an [`offline`] message, which contains the
//! 16-byte magic at a position that depends on its id (docs/raknet.md#datagrams).
//!
//! - [`control`]: messages of RakNet itself, in [capsules](datagram::CapsuleHeader) of data datagrams.
//! - [`notice`]: application messages with a layout that RakNet defines, also in capsules.
//! - [`local`]: events that C++ RakNet passes to its own application as bytes; never on the wire.
//! - [`protection`]: the interface of packet protection, applied last before sending and first after receiving.

use crate::cursor::{Source, WireError, Writer};

pub mod address;
pub mod control;
pub mod datagram;
pub mod id;
pub mod local;
pub mod notice;
pub mod offline;
pub mod protection;
mod security;

pub(crate) use datagram::FirstByte;
pub use offline::PongFraming;
pub use security::SecuritySizes;

/// A packet that can be read and written.
///
/// Every implementation is tested for two laws. A written packet reads back equal. Writing a packet that was read
/// restores its bytes, except for padding that the type documents as ignored.
pub trait Wire<'a>: Sized {
    /// Reads the packet, including its id, from the front of `source`.
    ///
    /// # Errors
    ///
    /// A [`WireError`]; the bytes read so far stay consumed.
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError>;

    /// Appends the packet, including its id.
    ///
    /// # Errors
    ///
    /// [`WireError::NoRoom`] if the buffer is too small, or [`WireError::BadLength`] if the format cannot represent a
    /// field.
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError>;
}

/// The identity of a peer: 64 random bits, unique among all peers (docs/raknet.md#values).
///
/// ```
/// use rakwire::raknet::Guid;
///
/// assert_eq!(Guid(0xA1).to_string(), "00000000000000a1");
/// assert!(Guid(0xA1) < Guid::UNASSIGNED);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid(pub u64);

impl Guid {
    /// The GUID of no peer.
    pub const UNASSIGNED: Self = Self(u64::MAX);
}

impl core::fmt::Display for Guid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The size of the IPv4 and UDP headers, which every MTU on the wire includes, even over IPv6.
pub const IP_UDP_OVERHEAD: u16 = 28;
/// The minimum MTU of RakNet.
pub const MIN_MTU: u16 = 576;
/// The maximum MTU of RakNet.
pub const MAX_MTU: u16 = 1492;
/// The maximum MTU over IPv6: MTU values count an IPv4 header, but an IPv6 header is 20 bytes longer.
///
/// IP packets then have at most 1,492 bytes, as over IPv4.
pub const MAX_MTU_IPV6: u16 = MAX_MTU - IPV6_EXTRA;
/// The difference between the header sizes of IPv6 and IPv4 in bytes.
pub(crate) const IPV6_EXTRA: u16 = 20;
/// The maximum size of a composed datagram, in bytes of UDP payload.
///
/// A transmit buffer must be at least that large.
pub const MAX_DATAGRAM: usize = (MAX_MTU - IP_UDP_OVERHEAD) as usize;

#[cfg(feature = "defmt")]
impl defmt::Format for Guid {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u64:016x}", self.0);
    }
}

#[cfg(test)]
pub(crate) mod law {
    use super::*;
    use crate::cursor::Reader;
    use core::fmt::Debug;

    /// Checks that `bytes` parse as `packet`, and that `packet` serializes to `bytes`.
    pub(crate) fn check<'a, P: Wire<'a> + PartialEq + Debug>(packet: &P, bytes: &'a [u8]) {
        let mut buffer = [0; 2048];
        let mut writer = Writer::new(&mut buffer);
        packet.write(&mut writer).expect("the buffer is large enough");
        assert_eq!(writer.finish(), bytes, "{packet:?}");
        let mut reader = Reader::new(bytes);
        assert_eq!(P::read(&mut reader).as_ref(), Ok(packet));
        assert_eq!(reader.remaining(), 0, "{packet:?} left bytes");
        for length in 0..bytes.len() {
            let mut short = [0; 2048];
            let room = short.get_mut(..length).expect("shorter than the buffer");
            assert_eq!(packet.write(&mut Writer::new(room)), Err(WireError::NoRoom));
        }
    }

    /// Checks that no proper prefix of `bytes` parses as a packet.
    pub(crate) fn check_truncations<'a, P: Wire<'a> + Debug>(bytes: &'a [u8]) {
        for length in 0..bytes.len() {
            let prefix = bytes.get(..length).expect("shorter than the bytes");
            assert!(P::read(&mut Reader::new(prefix)).is_err(), "a prefix of {length} bytes was read");
        }
    }
}

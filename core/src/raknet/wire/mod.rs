//! The wire format of RakNet: every packet reads itself from a [`Source`] and writes itself to a [`Writer`].
//!
//! The first byte determines the kind of a datagram. With bit 7 set it is a [`datagram`] of the reliability layer:
//! data, acknowledgement or negative acknowledgement. Without it, it is an [`offline`] message, which carries sixteen
//! magic bytes at a position that its id determines (docs/raknet.md#datagrams). [`control`] messages travel inside data
//! datagrams as the payload of a [capsule](datagram::CapsuleHeader). So do the messages to the application, of which
//! RakNet defines a few ([`notice`]). Events that the original passes to its own application as bytes are in [`local`] and never travel.
//! [`protection`] is the hook for a secure mode, applied last before a datagram is sent and first after it was
//! received.

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

/// A packet that reads and writes its bytes.
///
/// Two laws are tested for every implementor. A written packet reads back equal. A packet that was read writes back the
/// same bytes, except for padding that the type documents as ignored.
pub trait Wire<'a>: Sized {
    /// Reads the packet, with its id, from the front of `source`.
    ///
    /// # Errors
    ///
    /// A [`WireError`] that describes the problem; bytes that were already read remain consumed.
    fn read<S: Source<'a>>(source: &mut S) -> Result<Self, WireError>;

    /// Appends the packet, with its id.
    ///
    /// # Errors
    ///
    /// [`WireError::NoRoom`] if the buffer is too small, [`WireError::BadLength`] for data that the format cannot
    /// represent.
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError>;
}

/// The identity of a peer, 64 random bits that no two peers share (docs/raknet.md#values).
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
    /// The value that denotes no peer.
    pub const UNASSIGNED: Self = Self(u64::MAX);
}

impl core::fmt::Display for Guid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The bytes of IPv4 and UDP headers that every MTU value on the wire includes, even over IPv6.
pub const IP_UDP_OVERHEAD: u16 = 28;
/// The smallest MTU ever used.
pub const MIN_MTU: u16 = 576;
/// The largest MTU ever used.
pub const MAX_MTU: u16 = 1492;
/// The largest MTU over IPv6, whose header is 20 bytes longer.
///
/// With it a datagram has at most the 1,500 bytes of an Ethernet frame, minus 8.
pub const MAX_MTU_IPV6: u16 = MAX_MTU - IPV6_EXTRA;
/// The bytes by which the header of IPv6 is longer than that of IPv4, which MTU values count.
pub(crate) const IPV6_EXTRA: u16 = 20;
/// The longest datagram that the core composes, in bytes of UDP payload.
///
/// A transmit buffer must have this size.
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

    /// Checks that `bytes` read as `packet` and that `packet` writes `bytes`.
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

    /// Checks that no prefix of `bytes` reads as a packet.
    pub(crate) fn check_truncations<'a, P: Wire<'a> + Debug>(bytes: &'a [u8]) {
        for length in 0..bytes.len() {
            let prefix = bytes.get(..length).expect("shorter than the bytes");
            assert!(P::read(&mut Reader::new(prefix)).is_err(), "{length} bytes were enough");
        }
    }
}

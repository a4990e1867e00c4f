//! The encoding of addresses in RakNet (docs/raknet.md#addresses).
//!
//! | version | bytes |
//! |---|---|
//! | IPv4, 7 bytes | `04`, four address bytes each complemented, port (big endian) |
//! | IPv6, 29 bytes | `06`, a raw `sockaddr_in6`: family (2, ignored on read, written as Windows does: `17 00`), port (big endian), flow information (4, big endian), address (16), scope (4, little endian: the byte order of the hosts that write it) |

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::cursor::{Reader, Source, Value, WireError, Writer};

/// The unassigned address: 0.0.0.0:0.
pub const UNASSIGNED: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

const VERSION_4: u8 = 4;
const VERSION_6: u8 = 6;
/// The size in bytes of the longer encoding, for an IPv6 address.
pub const MAX_ADDRESS: usize = 29;
/// `AF_INET6` on Windows, where most RakNet games run; readers ignore it.
const FAMILY_6: u16 = 23;

/// Reads an address. As in C++ RakNet, any version other than 4 is read as IPv6.
///
/// # Errors
///
/// [`WireError::Truncated`] if bytes are missing.
pub fn read<'a, S: Source<'a>>(source: &mut S, name: &'static str) -> Result<SocketAddr, WireError> {
    let [version] = source.array()?;
    let (address, length) = if version == VERSION_4 { (read_v4(source)?, 7) } else { (read_v6(source)?, 29) };
    source.field(name, length, Value::Address(address));
    Ok(address)
}

fn read_v4<'a, S: Source<'a>>(source: &mut S) -> Result<SocketAddr, WireError> {
    let complement = u32::from_be_bytes(source.array()?);
    let port = u16::from_be_bytes(source.array()?);
    Ok(SocketAddrV4::new(Ipv4Addr::from_bits(!complement), port).into())
}

fn read_v6<'a, S: Source<'a>>(source: &mut S) -> Result<SocketAddr, WireError> {
    let _family: [u8; 2] = source.array()?;
    let port = u16::from_be_bytes(source.array()?);
    let flow = u32::from_be_bytes(source.array()?);
    let address = Ipv6Addr::from(source.array::<16>()?);
    let scope = u32::from_le_bytes(source.array()?);
    Ok(SocketAddrV6::new(address, port, flow, scope).into())
}

/// Appends an address.
///
/// # Errors
///
/// [`WireError::NoRoom`] if the buffer is too small.
pub fn write(address: &SocketAddr, writer: &mut Writer<'_>) -> Result<(), WireError> {
    match address {
        SocketAddr::V4(address) => {
            writer.u8(VERSION_4)?;
            writer.u32(!address.ip().to_bits())?;
            writer.u16(address.port())
        }
        SocketAddr::V6(address) => {
            writer.u8(VERSION_6)?;
            writer.bytes(&FAMILY_6.to_le_bytes())?;
            writer.u16(address.port())?;
            writer.u32(address.flowinfo())?;
            writer.bytes(&address.ip().octets())?;
            writer.u32_le(address.scope_id())
        }
    }
}

/// The list of addresses in "connection request accepted" and "new incoming connection".
///
/// It contains the addresses of the sender's network interfaces, padded with unassigned addresses to 10 (C++ RakNet)
/// or 20 (Bedrock). It may mix IPv4 and IPv6 addresses.
///
/// ```
/// use rakwire::wire::address::{AddressList, MAX_ADDRESS, UNASSIGNED};
///
/// assert_eq!(AddressList::unassigned(10).iter().count(), 10);
///
/// let mut interfaces = [UNASSIGNED; 20];
/// interfaces[0] = "192.0.2.7:19132".parse()?;
/// interfaces[1] = "[2001:db8::7]:19132".parse()?;
/// let mut buffer = [0; 20 * MAX_ADDRESS];
/// let list = AddressList::encode(interfaces, &mut buffer)?;
/// assert!(list.iter().eq(interfaces));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressList<'a> {
    bytes: &'a [u8],
}

const UNASSIGNED_V4: [u8; 7] = [VERSION_4, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0];
static UNASSIGNED_LIST: [[u8; 7]; 20] = [UNASSIGNED_V4; 20];

impl<'a> AddressList<'a> {
    /// Creates a list of `count` unassigned addresses; more than 20 are clamped to 20.
    #[must_use]
    pub fn unassigned(count: usize) -> Self {
        let list = UNASSIGNED_LIST.get(..count).unwrap_or(&UNASSIGNED_LIST);
        Self { bytes: list.as_flattened() }
    }

    /// Encodes addresses into `buffer`, each in at most [`MAX_ADDRESS`] bytes, and returns the list.
    ///
    /// # Errors
    ///
    /// [`WireError::NoRoom`] if they do not fit into `buffer`.
    pub fn encode(
        addresses: impl IntoIterator<Item = SocketAddr>,
        buffer: &'a mut [u8],
    ) -> Result<Self, WireError> {
        let mut writer = Writer::new(buffer);
        for address in addresses {
            write(&address, &mut writer)?;
        }
        Ok(Self { bytes: writer.finish() })
    }

    /// Creates a list from encoded addresses.
    pub(crate) const fn from_bytes(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the addresses; the iterator stops at the first bytes that cannot be decoded.
    pub fn iter(&self) -> impl Iterator<Item = SocketAddr> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        core::iter::from_fn(move || read(&mut reader, "address").ok())
    }

    /// Reads all but the last `tail` bytes as a list.
    ///
    /// The number of addresses is not on the wire; peers write 5, 10 or 20.
    pub(crate) fn read_before<S: Source<'a>>(source: &mut S, tail: usize) -> Result<Self, WireError> {
        let length = source.remaining().checked_sub(tail).ok_or(WireError::Truncated)?;
        let list = Self { bytes: source.take(length)? };
        let mut reader = Reader::new(list.bytes);
        while reader.remaining() > 0 {
            let before = reader.remaining();
            match read(&mut reader, "address") {
                Ok(address) => source.field("address", before - reader.remaining(), Value::Address(address)),
                Err(_) => source.field("address (cut off)", before, Value::Bytes(reader.rest(""))),
            }
        }
        Ok(list)
    }

    pub(crate) fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.bytes(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, bytes: &[u8]) {
        let address: SocketAddr = text.parse().expect("a literal address");
        let mut buffer = [0; 29];
        let mut writer = Writer::new(&mut buffer);
        write(&address, &mut writer).expect("29 bytes are enough");
        assert_eq!(writer.finish(), bytes);
        assert_eq!(read(&mut Reader::new(bytes), ""), Ok(address));
    }

    #[test]
    fn addresses_match_recorded_bytes() {
        check("127.0.0.1:19132", &[0x04, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC]);
        check("0.0.0.0:0", &[0x04, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
        let mut v6 = [0; 29];
        v6[..5].copy_from_slice(&[6, 23, 0, 0x4A, 0xBC]);
        v6[9..13].copy_from_slice(&[0x20, 0x01, 0x0D, 0xB8]);
        v6[24] = 1;
        check("[2001:db8::1]:19132", &v6);
        // The address family depends on the sender's operating system (10 on Linux) and is ignored.
        v6[1] = 10;
        assert_eq!(
            read(&mut Reader::new(&v6), ""),
            Ok("[2001:db8::1]:19132".parse().expect("a literal address"))
        );
    }

    #[test]
    fn reading_an_address_list_leaves_the_tail_unread() {
        let bytes = [UNASSIGNED_V4; 5];
        let mut with_tail = [0; 51];
        with_tail[..35].copy_from_slice(bytes.as_flattened());
        let mut reader = Reader::new(&with_tail);
        let list = AddressList::read_before(&mut reader, 16).expect("35 bytes before the tail");
        assert_eq!(list.iter().count(), 5);
        assert_eq!(reader.remaining(), 16);
        assert!(list.iter().all(|address| address == UNASSIGNED));
    }
}

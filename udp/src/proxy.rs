//! Headers of the PROXY protocol, version 2. A proxy sends such a header at the beginning of a connection or of a
//! datagram, to announce the address of its client.
//!
//! Section numbers refer to HAProxy's specification (`proxy-protocol.txt`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// The first bytes of every header (section 2.2).
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The length of the fixed part in bytes: signature, version and command, family, length.
const FIXED_LENGTH: usize = 16;

/// The length in bytes of the longest accepted header. The addresses take at most 216 bytes; the rest are TLVs, of
/// which the longest in practice is a certificate's name.
pub const MAX_HEADER: usize = 2_048;

/// A complete header of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyHeader {
    /// The address of the client; `None` if the proxy sends on its own behalf, as in health checks, or if the family
    /// has no addresses.
    pub client: Option<SocketAddr>,
    /// The length of the header in bytes; the rest belongs to the connection, or to the datagram.
    pub length: usize,
}

/// The reason why bytes are not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProxyHeaderError {
    /// The first bytes are different.
    #[error("no PROXY protocol version 2")]
    Signature,
    /// The version is not 2, or the command is neither LOCAL nor PROXY.
    #[error("unknown version or command")]
    Command,
    /// The header would be longer than [`MAX_HEADER`].
    #[error("header longer than 2048 bytes")]
    TooLong,
    /// The length is too short for the addresses of the family.
    #[error("length does not fit the family")]
    Length,
}

impl ProxyHeader {
    /// Reads the header at the beginning of `bytes`. Returns `None` while it is incomplete.
    ///
    /// ```
    /// use rakwire_udp::proxy::ProxyHeader;
    ///
    /// let datagram = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x12\x34\0\x50payload";
    /// let header = ProxyHeader::read(datagram)?.expect("it is complete");
    /// assert_eq!(header.client, "192.0.2.1:4660".parse().ok());
    /// assert_eq!(&datagram[header.length..], b"payload");
    /// # Ok::<(), rakwire_udp::proxy::ProxyHeaderError>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`ProxyHeaderError`] if the bytes are not the beginning of a header.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, ProxyHeaderError> {
        let seen = bytes.len().min(SIGNATURE.len());
        if bytes.get(..seen) != SIGNATURE.get(..seen) {
            return Err(ProxyHeaderError::Signature);
        }
        let Some(&[command, family, high, low]) = bytes.get(SIGNATURE.len()..FIXED_LENGTH) else {
            return Ok(None);
        };
        // The high half of the byte is the version; in the low half, 0 means LOCAL and 1 means PROXY.
        if !matches!(command, 0x20 | 0x21) {
            return Err(ProxyHeaderError::Command);
        }
        let length = FIXED_LENGTH + usize::from(u16::from_be_bytes([high, low]));
        if length > MAX_HEADER {
            return Err(ProxyHeaderError::TooLong);
        }
        let Some(addresses) = bytes.get(FIXED_LENGTH..length) else { return Ok(None) };
        let client = if command == 0x21 { source(family, addresses)? } else { None };
        Ok(Some(Self { client, length }))
    }
}

/// Returns the source address. The header contains both addresses, followed by both ports.
fn source(family: u8, addresses: &[u8]) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    match family {
        // TCP and UDP over IPv4.
        0x11 | 0x12 => {
            let &[a, b, c, d, _, _, _, _, high, low, _, _, ..] = addresses else {
                return Err(ProxyHeaderError::Length);
            };
            Ok(Some(address(Ipv4Addr::new(a, b, c, d).into(), high, low)))
        }
        // TCP and UDP over IPv6.
        0x21 | 0x22 => {
            let ip = addresses.first_chunk::<16>().ok_or(ProxyHeaderError::Length)?;
            let &[high, low] = addresses.get(32..34).ok_or(ProxyHeaderError::Length)? else {
                return Err(ProxyHeaderError::Length);
            };
            addresses.get(34..36).ok_or(ProxyHeaderError::Length)?;
            Ok(Some(address(Ipv6Addr::from(*ip).into(), high, low)))
        }
        // Unspecified, and Unix sockets.
        _ => Ok(None),
    }
}

fn address(ip: IpAddr, high: u8, low: u8) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[command, family], &len, body].concat()
    }

    const V4: [u8; 12] = [203, 0, 113, 9, 192, 0, 2, 1, 0x12, 0x34, 0, 80];

    fn v6() -> Vec<u8> {
        let source = "2001:db8::9".parse::<Ipv6Addr>().unwrap().octets();
        [&source[..], &[0; 16], &[0x12, 0x34, 0, 80]].concat()
    }

    #[test]
    fn the_client_of_a_proxied_connection_is_read() {
        for (family, body, expected) in [
            (0x11, V4.to_vec(), "203.0.113.9:4660"),
            (0x12, V4.to_vec(), "203.0.113.9:4660"),
            (0x21, v6(), "[2001:db8::9]:4660"),
        ] {
            let mut bytes = header(0x21, family, &body);
            let length = bytes.len();
            bytes.extend(b"GET / HTTP/1.1");
            let client = expected.parse().ok();
            assert_eq!(ProxyHeader::read(&bytes), Ok(Some(ProxyHeader { client, length })));
            for end in 0..length {
                assert_eq!(ProxyHeader::read(&bytes[..end]), Ok(None), "{end}");
            }
        }
    }

    #[test]
    fn bytes_after_the_addresses_are_skipped() {
        let bytes = header(0x21, 0x11, &[&V4[..], &[0x04, 0, 3, 1, 2, 3]].concat());
        let parsed = ProxyHeader::read(&bytes).unwrap().unwrap();
        assert_eq!((parsed.client, parsed.length), ("203.0.113.9:4660".parse().ok(), bytes.len()));
    }

    #[test]
    fn a_local_proxy_header_has_no_client() {
        for bytes in [
            header(0x20, 0x00, &[]),
            header(0x20, 0x11, &V4),
            header(0x21, 0x00, &[]),
            header(0x21, 0x31, &[0; 216]),
        ] {
            assert_eq!(ProxyHeader::read(&bytes).unwrap().unwrap().client, None);
        }
    }

    #[test]
    fn malformed_proxy_headers_are_rejected() {
        assert_eq!(ProxyHeader::read(b"GET / HTTP/1.1\r\n"), Err(ProxyHeaderError::Signature));
        assert_eq!(ProxyHeader::read(b"PROXY TCP4 1.2.3.4"), Err(ProxyHeaderError::Signature));
        assert_eq!(ProxyHeader::read(b"\r\n\r\n\0\r\nQUIX"), Err(ProxyHeaderError::Signature));
        assert_eq!(ProxyHeader::read(&header(0x11, 0x11, &V4)), Err(ProxyHeaderError::Command));
        assert_eq!(ProxyHeader::read(&header(0x22, 0x11, &V4)), Err(ProxyHeaderError::Command));
        assert_eq!(ProxyHeader::read(&header(0x21, 0x11, &V4[..11])), Err(ProxyHeaderError::Length));
        assert_eq!(ProxyHeader::read(&header(0x21, 0x21, &v6()[..35])), Err(ProxyHeaderError::Length));
        assert_eq!(ProxyHeader::read(&header(0x21, 0x11, &[0; 2040])), Err(ProxyHeaderError::TooLong));
    }
}

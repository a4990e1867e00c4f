//! The PROXY protocol, version 2, with which a reverse proxy begins a connection to tell the address of its client.
//!
//! Section numbers are those of the specification of HAProxy (`proxy-protocol.txt`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// Section 2.2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The length of the fixed part: signature, version and command, family, length.
const FIXED_LEN: usize = 16;

/// The longest header that is accepted. The addresses have at most 216 bytes, the rest are TLVs, of which a
/// certificate's name is the longest in practice.
pub(crate) const HEADER_MAX: usize = 2048;

/// A complete header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProxyHeader {
    /// The client; `None` if the proxy speaks for itself, as in health checks, or of a family without addresses.
    pub(crate) client: Option<SocketAddr>,
    /// The length of the header in bytes: what follows belongs to the connection.
    pub(crate) len: usize,
}

/// The bytes do not begin with a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum ProxyError {
    #[error("no PROXY protocol version 2")]
    Signature,
    #[error("unknown version or command")]
    Command,
    #[error("header longer than 2048 bytes")]
    TooLong,
    #[error("length does not fit the family")]
    Length,
}

/// Reads the header at the beginning of a connection; `None` while it is incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<ProxyHeader>, ProxyError> {
    let seen = bytes.len().min(SIGNATURE.len());
    if bytes.get(..seen) != SIGNATURE.get(..seen) {
        return Err(ProxyError::Signature);
    }
    let Some(&[command, family, high, low]) = bytes.get(SIGNATURE.len()..FIXED_LEN) else { return Ok(None) };
    // Version 2 in the high half; 0 is LOCAL and 1 is PROXY in the low one.
    if !matches!(command, 0x20 | 0x21) {
        return Err(ProxyError::Command);
    }
    let len = FIXED_LEN + usize::from(u16::from_be_bytes([high, low]));
    if len > HEADER_MAX {
        return Err(ProxyError::TooLong);
    }
    let Some(addresses) = bytes.get(FIXED_LEN..len) else { return Ok(None) };
    let client = if command == 0x21 { source(family, addresses)? } else { None };
    Ok(Some(ProxyHeader { client, len }))
}

/// The source address: the source address and the destination address are followed by the two ports.
fn source(family: u8, addresses: &[u8]) -> Result<Option<SocketAddr>, ProxyError> {
    match family {
        // TCP and UDP over IPv4.
        0x11 | 0x12 => {
            let &[a, b, c, d, _, _, _, _, high, low, _, _, ..] = addresses else {
                return Err(ProxyError::Length);
            };
            Ok(Some(address(Ipv4Addr::new(a, b, c, d).into(), high, low)))
        }
        // TCP and UDP over IPv6.
        0x21 | 0x22 => {
            let ip = addresses.first_chunk::<16>().ok_or(ProxyError::Length)?;
            let &[high, low] = addresses.get(32..34).ok_or(ProxyError::Length)? else {
                return Err(ProxyError::Length);
            };
            addresses.get(34..36).ok_or(ProxyError::Length)?;
            Ok(Some(address(Ipv6Addr::from(*ip).into(), high, low)))
        }
        // Unspecified, and sockets of Unix.
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
            let len = bytes.len();
            bytes.extend(b"GET / HTTP/1.1");
            let client = expected.parse().ok();
            assert_eq!(parse(&bytes), Ok(Some(ProxyHeader { client, len })));
            for end in 0..len {
                assert_eq!(parse(&bytes[..end]), Ok(None), "{end}");
            }
        }
    }

    #[test]
    fn what_follows_the_addresses_is_skipped() {
        let bytes = header(0x21, 0x11, &[&V4[..], &[0x04, 0, 3, 1, 2, 3]].concat());
        let parsed = parse(&bytes).unwrap().unwrap();
        assert_eq!((parsed.client, parsed.len), ("203.0.113.9:4660".parse().ok(), bytes.len()));
    }

    #[test]
    fn a_proxy_may_speak_for_itself() {
        for bytes in [
            header(0x20, 0x00, &[]),
            header(0x20, 0x11, &V4),
            header(0x21, 0x00, &[]),
            header(0x21, 0x31, &[0; 216]),
        ] {
            assert_eq!(parse(&bytes).unwrap().unwrap().client, None);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(parse(b"GET / HTTP/1.1\r\n"), Err(ProxyError::Signature));
        assert_eq!(parse(b"PROXY TCP4 1.2.3.4"), Err(ProxyError::Signature));
        assert_eq!(parse(b"\r\n\r\n\0\r\nQUIX"), Err(ProxyError::Signature));
        assert_eq!(parse(&header(0x11, 0x11, &V4)), Err(ProxyError::Command));
        assert_eq!(parse(&header(0x22, 0x11, &V4)), Err(ProxyError::Command));
        assert_eq!(parse(&header(0x21, 0x11, &V4[..11])), Err(ProxyError::Length));
        assert_eq!(parse(&header(0x21, 0x21, &v6()[..35])), Err(ProxyError::Length));
        assert_eq!(parse(&header(0x21, 0x11, &[0; 2040])), Err(ProxyError::TooLong));
    }
}

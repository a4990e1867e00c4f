//! Fuzzes a connection that may start with a PROXY protocol header.

use rakwire_udp::proxy::{MAX_HEADER, ProxyHeader};

/// Checks that the parser never consumes more bytes than it received.
///
/// Also checks that every prefix of the input is either incomplete or gives the same result as the whole input.
pub fn header(input: &[u8]) {
    let whole = ProxyHeader::read(input);
    if let Ok(Some(header)) = whole {
        assert!(
            header.length <= input.len().min(MAX_HEADER),
            "the header is longer than the input or than the protocol allows: {header:?}"
        );
        assert_eq!(
            ProxyHeader::read(&input[..header.length]),
            whole,
            "bytes after the header changed the result"
        );
    }
    for end in 0..input.len() {
        match ProxyHeader::read(&input[..end]) {
            Ok(None) => {}
            early => assert_eq!(early, whole, "the first {end} bytes gave a different result"),
        }
    }
}

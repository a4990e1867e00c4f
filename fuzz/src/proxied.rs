//! Fuzzes a connection that may start with a PROXY protocol header.

use rakwire_udp::proxy::{MAX_HEADER, ProxyHeader};

/// Checks that a header is parsed identically however its bytes are split, and never takes more bytes than
/// there are.
pub fn header(input: &[u8]) {
    let whole = ProxyHeader::read(input);
    if let Ok(Some(header)) = whole {
        assert!(header.length <= input.len().min(MAX_HEADER), "{header:?}");
        assert_eq!(ProxyHeader::read(&input[..header.length]), whole, "later bytes change nothing");
    }
    for end in 0..input.len() {
        match ProxyHeader::read(&input[..end]) {
            Ok(None) => {}
            early => assert_eq!(early, whole, "{end} bytes"),
        }
    }
}

//! A connection that may begin with a PROXY protocol header.

use crate::admission::parse;

/// The longest header that may be accepted.
const HEADER_MAX: usize = 2_048;

/// A header is read the same however its bytes arrive, and never is more taken than there is.
pub fn header(input: &[u8]) {
    let whole = parse(input);
    if let Ok(Some(header)) = whole {
        assert!(header.len <= input.len().min(HEADER_MAX), "{header:?}");
        assert_eq!(parse(&input[..header.len]), whole, "what follows changes nothing");
    }
    for end in 0..input.len() {
        match parse(&input[..end]) {
            Ok(None) => {}
            early => assert_eq!(early, whole, "{end} bytes"),
        }
    }
}

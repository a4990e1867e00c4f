//! What a page knows of the certificate of the relay.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of a certificate, written as session descriptions have it: 32 pairs of hexadecimal digits with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    #[cfg(test)]
    pub(super) const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let colon = if index == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_written_as_session_descriptions_have_it() {
        let text = Fingerprint::new([0xa5; 32]).to_string();
        assert_eq!((text.len(), &text[..6]), (95, "A5:A5:"));
    }
}

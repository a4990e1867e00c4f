//! Issues tokens of two issuers that the relay may trust and of one that it never trusts, and modifies tokens.
//!
//! The private keys in `fuzz/admission` are not secret, because only this fuzz target trusts them.

use crate::token::{Claims, SigningKey};

/// A token and its claims.
#[derive(Clone)]
pub(super) struct Issued {
    pub(super) text: String,
    pub(super) claims: Claims,
    /// The index of the issuer. The relay never trusts the last issuer.
    pub(super) issuer: usize,
}

pub(super) struct Issuers([SigningKey; 3]);

impl Issuers {
    pub(super) fn new() -> Self {
        let key = |text| SigningKey::from_text(text).expect("a valid key");
        // The last issuer uses the algorithm of the first issuer with another secret.
        let untrusted = "hmac-sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let known = [include_str!("../../admission/secret.key"), include_str!("../../admission/issuer.key")];
        Self([key(known[0]), key(known[1]), key(untrusted)])
    }

    /// Issues a token. `bytes` and the wall-clock time `now` in Unix seconds determine its claims. Token ids repeat.
    pub(super) fn issue(&self, now: u64, bytes: &[u8]) -> Issued {
        let byte = |index: usize| bytes.get(index).copied().unwrap_or_default();
        let expires = match byte(0) >> 6 {
            0 => now.saturating_sub(u64::from(byte(0))),
            1 => u64::MAX - u64::from(byte(0)),
            2 => now + 30 * u64::from(byte(0) & 0x3F),
            // The largest values exceed the maximum lifetime of a token.
            _ => now + 60 * u64::from(byte(0) & 0x3F),
        };
        let begins = (byte(1) >= 128).then(|| now + u64::from(byte(1)) - 160);
        let target = if byte(2) & 1 == 0 { "game" } else { "other" };
        let network = match (byte(2) >> 1) & 3 {
            0 | 1 => None,
            2 => Some("192.0.2.0/28".parse().expect("a network")),
            _ => Some("2001:db8::/48".parse().expect("a network")),
        };
        let claims = Claims {
            exp: expires,
            nbf: begins,
            jti: format!("{}", byte(3) & 7),
            target: target.to_owned(),
            addr: network,
            origin: None,
        };
        let issuer = usize::from(byte(4)) % self.0.len();
        let text = self.0[issuer].sign(&claims).expect("a token");
        Issued { text, claims, issuer }
    }
}

/// Replaces one character of a token. Returns true if the token has changed.
pub(super) fn change(text: &mut String, at: u8, by: u8) -> bool {
    let mut bytes = std::mem::take(text).into_bytes();
    let before = bytes.clone();
    // A token can be longer than 256 bytes, so the position is scaled to its length.
    let at = usize::from(at) * bytes.len() / 256;
    if let Some(byte) = bytes.get_mut(at) {
        *byte = 0x20 | (*byte ^ by) & 0x5F;
    }
    let is_changed = bytes != before;
    *text = String::from_utf8_lossy(&bytes).into_owned();
    is_changed
}

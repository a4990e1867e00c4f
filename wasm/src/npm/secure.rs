//! Secure connections: the additional methods of `RakNetPeer`, and the class `KeyPair`.

use rakwire::raknet::{SecurePeer, Security};
use rakwire::secure::{KeyHash, KnownServer, PublicKey, ServerTrust, StaticKey};
use wasm_bindgen::prelude::*;

use super::buffer::Buffer;
use super::numbers::entropy;
use super::raknet::{RakNetPeer, settings};

/// The kinds of trust, as in `ts/security/keys.ts`.
const ANY: u8 = 0;
const KEY: u8 = 1;
const KEY_HASH: u8 = 2;
const KNOWN: u8 = 3;
const KNOWN_WITH_NEXT: u8 = 4;

#[wasm_bindgen]
impl RakNetPeer {
    /// Creates a peer like `create`, with another 256 bits of entropy for the handshake. Call `secure` before `connect`.
    #[wasm_bindgen(js_name = createSecure)]
    #[allow(clippy::too_many_arguments, reason = "an options object would cost JavaScript an allocation")]
    pub fn create_secure(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        blocks: u32,
        block_size: u32,
        timeout_ms: u32,
        protocol_version: u8,
        progress_interval: u32,
        outgoing_limit: f64,
        seed_a: u64,
        seed_b: u64,
        seed_c: u64,
        seed_d: u64,
    ) -> Option<Self> {
        let mut settings =
            settings(blocks, block_size, timeout_ms, protocol_version, progress_interval, outgoing_limit);
        settings.security = Some((None, Security::new(entropy([seed_a, seed_b, seed_c, seed_d]))));
        Self::new([a, b, c, d], settings)
    }

    /// Reads the expected server from the buffer: the kind of trust, the key or its hash in 32 bytes, and the hash of
    /// the next key in 24. If the client identifies itself, its private key in 32 bytes and its data follow. Returns
    /// false if the bytes are invalid.
    pub fn secure(&mut self, length: u32) -> bool {
        let read = read(self.buffer.read(length));
        let is_read = read.is_some();
        if let Some((trust, identity, data)) = read {
            self.client.set_trust(trust, identity, data);
        }
        self.buffer.erase();
        is_read
    }

    /// Returns the address of the server's key, 32 bytes, and of the hash of its next key, 24 bytes if it has announced
    /// one; 0 while there is no secure connection.
    #[wasm_bindgen(js_name = securePeer)]
    pub fn secure_peer(&mut self) -> *const u8 {
        let Some(SecurePeer::Server(server)) = self.client.secure_peer() else { return core::ptr::null() };
        let next = server.next.map_or_else(Default::default, |next| next.0.to_vec());
        let length = server.key.0.len() + next.len();
        self.buffer.write([0; 3], length, [&server.key.0[..], &next].into_iter())
    }
}

fn read(bytes: &[u8]) -> Option<(ServerTrust, Option<StaticKey>, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_first_chunk::<32>()?;
    let (next, identity) = rest.split_first_chunk::<24>()?;
    let public = PublicKey(*key);
    let trust = match *kind {
        ANY => ServerTrust::Any,
        KEY => ServerTrust::Key(public),
        KEY_HASH => ServerTrust::KeyHash(KeyHash(*key.first_chunk()?)),
        KNOWN => ServerTrust::Known(KnownServer { key: public, next: None }),
        KNOWN_WITH_NEXT => ServerTrust::Known(KnownServer { key: public, next: Some(KeyHash(*next)) }),
        _ => return None,
    };
    if identity.is_empty() {
        return Some((trust, None, identity));
    }
    let (identity, data) = identity.split_first_chunk::<32>()?;
    Some((trust, Some(StaticKey::from_bytes(*identity)), data))
}

/// A key pair, created from a private key that JavaScript generated.
#[wasm_bindgen]
#[derive(Debug)]
pub struct KeyPair {
    key: StaticKey,
    buffer: Buffer,
}

#[wasm_bindgen]
impl KeyPair {
    /// Creates the key pair of a private key, which is passed as four 64-bit numbers in little-endian order.
    #[must_use]
    pub fn create(a: u64, b: u64, c: u64, d: u64) -> Self {
        Self { key: StaticKey::from_bytes(entropy([a, b, c, d])), buffer: Buffer::new() }
    }

    /// Returns the address of the public key, 32 bytes.
    #[wasm_bindgen(js_name = publicKey)]
    pub fn public_key(&mut self) -> *const u8 {
        let public = self.key.public();
        self.buffer.write([0; 3], public.0.len(), core::iter::once(&public.0[..]))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn bytes(kind: u8, identity: &[u8]) -> Vec<u8> {
        [&[kind][..], &[5; 32], &[6; 24], identity].concat()
    }

    #[test]
    fn each_kind_of_trust_is_decoded_with_and_without_an_identity() {
        let (key, next) = (PublicKey([5; 32]), KeyHash([6; 24]));
        let expected = [
            ServerTrust::Any,
            ServerTrust::Key(key),
            ServerTrust::KeyHash(KeyHash([5; 24])),
            ServerTrust::Known(KnownServer { key, next: None }),
            ServerTrust::Known(KnownServer { key, next: Some(next) }),
        ];
        for (kind, trust) in (0..).zip(expected) {
            assert_eq!(read(&bytes(kind, &[])), Some((trust, None, &[][..])));
            let identity = || StaticKey::from_bytes([7; 32]);
            assert_eq!(read(&bytes(kind, &[7; 32])), Some((trust, Some(identity()), &[][..])));
            assert_eq!(read(&bytes(kind, &[7; 34])), Some((trust, Some(identity()), &[7; 2][..])));
        }
    }

    #[test]
    fn invalid_bytes_are_refused() {
        assert_eq!(read(&bytes(5, &[])), None);
        let given = bytes(KEY, &[7; 32]);
        for length in 0..given.len() {
            let read = read(given.get(..length).unwrap());
            assert_eq!(read.is_some(), length == 57, "{length}");
        }
    }

    #[test]
    fn private_key_is_erased_from_the_buffer() {
        let mut peer = RakNetPeer::create_secure(1, 2, 3, 4, 16, 64, 0, 6, 0, 0.0, 5, 6, 7, 8).unwrap();
        let given = bytes(KEY, &[7; 32]);
        peer.buffer.write([0; 3], given.len(), core::iter::once(&given[..]));
        assert!(peer.secure(89));
        assert_eq!(peer.buffer.read(89), [0; 89]);
        assert!(!peer.secure(88));
    }
}

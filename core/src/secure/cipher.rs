//! The cipher of datagrams, which a driver may bring an implementation of.

use core::fmt;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce, Tag};

/// An implementation of ChaCha20-Poly1305 (RFC 8439) for datagrams. All implementations make the same bytes.
///
/// [`RustCrypto`] runs everywhere and is the default. One with code for the processor at hand is several times as fast;
/// `rakwire-native` has one behind its feature `ring`.
pub trait DatagramCipher: fmt::Debug + Sync {
    /// Encrypts `body` in place and returns its tag; none if it is longer than the cipher can take.
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], associated: &[u8], body: &mut [u8]) -> Option<[u8; 16]>;

    /// Decrypts `body` in place and returns true, if its tag fits. Otherwise `body` is worth nothing. The comparison of tags
    /// takes the same time wherever they differ.
    fn open(
        &self,
        key: &[u8; 32],
        nonce: &[u8; 12],
        associated: &[u8],
        body: &mut [u8],
        tag: &[u8; 16],
    ) -> bool;
}

/// The cipher of the crate `chacha20poly1305`, which needs neither an operating system nor an allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct RustCrypto;

impl DatagramCipher for RustCrypto {
    // Handshake, datagrams and tokens have one copy of each.
    #[inline(never)]
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], associated: &[u8], body: &mut [u8]) -> Option<[u8; 16]> {
        let nonce = Nonce::cast_from_core(nonce);
        cipher(key).encrypt_inout_detached(nonce, associated, InOutBuf::from(body)).ok().map(Into::into)
    }

    #[inline(never)]
    fn open(
        &self,
        key: &[u8; 32],
        nonce: &[u8; 12],
        associated: &[u8],
        body: &mut [u8],
        tag: &[u8; 16],
    ) -> bool {
        let (nonce, tag) = (Nonce::cast_from_core(nonce), Tag::cast_from_core(tag));
        cipher(key).decrypt_inout_detached(nonce, associated, InOutBuf::from(body), tag).is_ok()
    }
}

fn cipher(key: &[u8; 32]) -> ChaCha20Poly1305 {
    ChaCha20Poly1305::new(Key::cast_from_core(key))
}

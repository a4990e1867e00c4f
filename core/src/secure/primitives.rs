//! The primitives, as the handshake and the datagrams use them: BLAKE2s and its HMAC, ChaCha20-Poly1305, X25519.

use blake2::{Blake2s256, Digest};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::cipher::{DatagramCipher, RustCrypto};

/// Bytes of a key, of a hash and of a point.
pub(super) const KEY: usize = 32;
/// Bytes of a tag.
pub(super) const TAG: usize = 16;
/// Bytes of a block of BLAKE2s.
const BLOCK: usize = 64;
/// Bytes of a nonce.
const NONCE: usize = 12;

/// A secret of 32 bytes, which are erased when it is dropped.
pub(super) struct Secret([u8; KEY]);

impl Secret {
    pub(super) const fn new(bytes: [u8; KEY]) -> Self {
        Self(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// A second copy. There is no `Clone`, so that each one can be found by this name.
    pub(super) const fn duplicate(&self) -> Self {
        Self(self.0)
    }
}

impl Drop for Secret {
    // Secrets are dropped in many places.
    #[inline(never)]
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Whether both are equal, in a time that tells nothing of where they differ.
pub(super) fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// BLAKE2s-256 of the parts, one behind the other.
pub(super) fn hash(parts: &[&[u8]]) -> [u8; KEY] {
    hash_behind(&[], parts)
}

/// The hash of `first` and of the parts behind it.
// There is one copy of it, for hashes of all kinds.
#[inline(never)]
fn hash_behind(first: &[u8], parts: &[&[u8]]) -> [u8; KEY] {
    let mut hasher = Blake2s256::new();
    hasher.update(first);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// HMAC with BLAKE2s-256 of the parts, one behind the other (RFC 2104).
// There is one copy of it, and of the next one.
#[inline(never)]
pub(super) fn hmac(key: &[u8; KEY], parts: &[&[u8]]) -> Secret {
    let inner = Secret(keyed_hash(key, 0x36, parts));
    Secret(keyed_hash(key, 0x5C, &[inner.as_bytes()]))
}

/// The hash of a block and of the parts. The block is the key with zeros behind it, each byte of which `pad` changes.
fn keyed_hash(key: &[u8; KEY], pad: u8, parts: &[&[u8]]) -> [u8; KEY] {
    let mut block = [pad; BLOCK];
    block.iter_mut().zip(key).for_each(|(to, from)| *to ^= from);
    let hash = hash_behind(&block, parts);
    block.zeroize();
    hash
}

/// The HKDF of Noise with two outputs (revision 34, section 4.3).
#[inline(never)]
pub(super) fn hkdf(chaining_key: &[u8; KEY], input: &[u8]) -> [Secret; 2] {
    let temp = hmac(chaining_key, &[input]);
    let first = hmac(temp.as_bytes(), &[&[1]]);
    let second = hmac(temp.as_bytes(), &[first.as_bytes(), &[2]]);
    [first, second]
}

/// The nonce of Noise's ChaChaPoly: four zero bytes and the counter, little endian (revision 34, section 12.3).
pub(super) fn nonce(counter: u64) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce.iter_mut().skip(4).zip(counter.to_le_bytes()).for_each(|(to, from)| *to = from);
    nonce
}

/// Encrypts all of `message` but its last 16 bytes in place, and puts the tag there.
pub(super) fn seal_message(key: &Secret, counter: u64, associated: &[u8], message: &mut [u8]) -> Option<()> {
    let (body, place) = message.split_last_chunk_mut::<TAG>()?;
    *place = RustCrypto.seal(key.as_bytes(), &nonce(counter), associated, body)?;
    Some(())
}

/// Decrypts `message`, whose last 16 bytes are its tag, in place, and returns the plain bytes.
pub(super) fn open_message<'m>(
    key: &Secret,
    counter: u64,
    associated: &[u8],
    message: &'m mut [u8],
) -> Option<&'m mut [u8]> {
    let (body, tag) = message.split_last_chunk_mut::<TAG>()?;
    RustCrypto.open(key.as_bytes(), &nonce(counter), associated, body, tag).then_some(body)
}

/// `REKEY` of Noise (revision 34, section 4.2): from it nobody computes the key before.
pub(super) fn rekey(key: &Secret) -> Secret {
    let mut next = Secret([0; KEY]);
    // Nothing but a message that is too long is refused.
    let _tag = RustCrypto.seal(key.as_bytes(), &nonce(u64::MAX), &[], &mut next.0);
    next
}

/// A private X25519 key and its public one.
pub(super) struct KeyPair {
    private: x25519_dalek::StaticSecret,
    public: [u8; KEY],
}

impl KeyPair {
    pub(super) fn new(private: &Secret) -> Self {
        let private = x25519_dalek::StaticSecret::from(*private.as_bytes());
        let public = if cfg!(any(target_arch = "wasm32", target_os = "none")) {
            public_by_ladder(&private)
        } else {
            x25519_dalek::PublicKey::from(&private).to_bytes()
        };
        Self { private, public }
    }

    pub(super) const fn public(&self) -> &[u8; KEY] {
        &self.public
    }

    pub(super) fn private(&self) -> &[u8; KEY] {
        self.private.as_bytes()
    }

    /// The secret that both have; none if the other key makes it zero whatever ours is.
    pub(super) fn diffie_hellman(&self, other: &[u8; KEY]) -> Option<Secret> {
        let shared = self.private.diffie_hellman(&x25519_dalek::PublicKey::from(*other));
        shared.was_contributory().then(|| Secret(*shared.as_bytes()))
    }
}

/// The public key, by the code that agrees on secrets too: pages need not load that of the other curve, nor boards keep it,
/// which is faster only with vector instructions.
fn public_by_ladder(private: &x25519_dalek::StaticSecret) -> [u8; KEY] {
    x25519_dalek::x25519(*private.as_bytes(), x25519_dalek::X25519_BASEPOINT_BYTES)
}

#[cfg(test)]
#[path = "primitives_tests.rs"]
mod tests;

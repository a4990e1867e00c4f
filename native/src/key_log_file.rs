//! A file with the keys of connections (docs/secure.md#key-log).

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rakwire::secure::{KeyLog, LoggedKey};
use rakwire_udp::private_file;
use zeroize::Zeroizing;

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
#[derive(Debug)]
pub struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens a file, to write behind what it has, or makes it.
    ///
    /// # Errors
    /// If the file cannot be written, or belongs to somebody else.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        private_file::append(path).map(|file| Self(Mutex::new(file)))
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, key: &LoggedKey) {
        // With room for all of it, since a string that grows leaves copies behind.
        let mut line = Zeroizing::new(Vec::with_capacity(256));
        // A connection does not fail because its keys cannot be written.
        let _ = writeln!(line, "{key}");
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

//! Directories on disk, for [file transfer](crate::files) (feature `directory`).
//!
//! A [`DirectorySource`] reads the files of a directory once, and serves them as they were at that time.
//! Receivers with an older version get bsdiff 4 patches. A [`DirectoryStore`] moves each file to its path
//! once it is complete and verified, resumes earlier transfers, and never writes through a link. `rakwire
//! push` and `rakwire pull` use both.
//!
//! ```
//! use std::time::Duration;
//!
//! use rakwire_plugins::directory::{DirectoryLimits, DirectorySource, DirectoryStore};
//! use rakwire_plugins::files::{FileReceiver, FileSender, Limits};
//! use rakwire_plugins::rakwire::raknet::RakNet;
//!
//! # let root = std::env::temp_dir().join(format!("rakwire-directory-{}", std::process::id()));
//! # let (maps, downloads) = (root.join("maps"), root.join("downloads"));
//! # std::fs::create_dir_all(&maps)?;
//! # std::fs::write(maps.join("lake"), b"ice")?;
//! let mut sender = FileSender::<RakNet, _, 8, 64, 8_192>::new(DirectorySource::read(&maps)?);
//! sender.serve_all();
//!
//! let limits = Limits { files: 100, file_bytes: 1 << 30, bytes: 1 << 32, timeout: Duration::from_secs(10) };
//! // The limits of the whole directory, including the parts of interrupted transfers.
//! let store = DirectoryStore::new(&downloads, DirectoryLimits { files: 100, directories: 100, bytes: 1 << 32 })?;
//! let receiver = FileReceiver::<RakNet, _, 64, 8, 8_192>::new(store, limits);
//! # drop((sender, receiver));
//! # std::fs::remove_dir_all(&root)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod patches;
mod source;
mod store;
mod usage;

use std::path::Path;
use std::prelude::rust_2024::*;

pub use self::error::DirectoryError;
pub use self::source::DirectorySource;
pub use self::store::DirectoryStore;
pub use self::usage::{DirectoryLimit, DirectoryLimits};

/// The subdirectory for partial files in a receiving directory.
const PARTS: &str = ".rakwire-part";

/// Returns a path as text that is safe to print on a terminal.
fn shown(path: &Path) -> String {
    rakwire_udp::printable(&path.to_string_lossy())
}

//! Why there is no log.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A file could not be opened, read or written as a log.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the log {} cannot be used: {reason}", .path.display())]
pub struct SqliteLogError {
    path: PathBuf,
    reason: String,
}

impl SqliteLogError {
    pub(super) fn new(path: &Path, reason: &dyn Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

//! The disk usage of a receiving directory, across all transfers.

use std::fs;
use std::io;
use std::path::Path;
use std::prelude::rust_2024::*;
use std::vec;

use super::PARTS;

/// The limits of a receiving directory. Files from before the transfers and partial files of earlier attempts count
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryLimits {
    /// The maximum number of files.
    pub files: u32,
    /// The maximum number of directories.
    pub directories: u32,
    /// The maximum size of all files, in bytes.
    pub bytes: u64,
}

/// The limit that an addition would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DirectoryLimit {
    /// The maximum number of files.
    Files(u32),
    /// The maximum number of directories.
    Directories(u32),
    /// The maximum number of bytes.
    Bytes(u64),
}

impl core::fmt::Display for DirectoryLimit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Files(limit) => write!(f, "{limit} files"),
            Self::Directories(limit) => write!(f, "{limit} directories"),
            Self::Bytes(limit) => write!(f, "{limit} bytes"),
        }
    }
}

impl core::error::Error for DirectoryLimit {}

impl From<DirectoryLimit> for io::Error {
    fn from(limit: DirectoryLimit) -> Self {
        Self::other(limit)
    }
}

/// The contents of a directory, counted against its limits.
#[derive(Debug)]
pub(super) struct Usage {
    limits: DirectoryLimits,
    files: u32,
    directories: u32,
    bytes: u64,
}

impl Usage {
    /// Creates the usage of an empty directory.
    pub(super) const fn new(limits: DirectoryLimits) -> Self {
        Self { limits, files: 0, directories: 0, bytes: 0 }
    }

    /// Adds the contents of a directory without its partial files. Links are not followed, and unreadable
    /// directories are skipped, because no transfer created them. Stops early if a limit is exceeded.
    pub(super) fn add_tree(&mut self, root: &Path) -> io::Result<()> {
        let mut waiting = vec![root.to_owned()];
        while let Some(directory) = waiting.pop() {
            let entries = match fs::read_dir(&directory) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && directory != root => {
                    continue;
                }
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let found = match entry.metadata() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    found => found?,
                };
                if !found.is_dir() {
                    self.add_file()?;
                    self.grow(found.len())?;
                } else if directory != root || entry.file_name() != PARTS {
                    self.add_directory()?;
                    waiting.push(entry.path());
                }
            }
        }
        Ok(())
    }

    /// Adds partial files, which can be removed if they exceed a limit.
    pub(super) fn add_parts(&mut self, parts: &Path) -> io::Result<()> {
        for entry in fs::read_dir(parts)? {
            let found = entry?.metadata()?;
            self.files = self.files.saturating_add(1);
            self.bytes = self.bytes.saturating_add(found.len());
        }
        Ok(())
    }

    /// Returns the first exceeded limit as an error.
    pub(super) const fn check(&self) -> Result<(), DirectoryLimit> {
        let DirectoryLimits { files, directories, bytes } = self.limits;
        match self {
            _ if self.files > files => Err(DirectoryLimit::Files(files)),
            _ if self.directories > directories => Err(DirectoryLimit::Directories(directories)),
            _ if self.bytes > bytes => Err(DirectoryLimit::Bytes(bytes)),
            _ => Ok(()),
        }
    }

    /// Adds a file, unless that exceeds the limit.
    pub(super) fn add_file(&mut self) -> Result<(), DirectoryLimit> {
        if self.files >= self.limits.files {
            return Err(DirectoryLimit::Files(self.limits.files));
        }
        self.files = self.files.saturating_add(1);
        Ok(())
    }

    /// Adds a directory, unless that exceeds the limit.
    pub(super) fn add_directory(&mut self) -> Result<(), DirectoryLimit> {
        if self.directories >= self.limits.directories {
            return Err(DirectoryLimit::Directories(self.limits.directories));
        }
        self.directories = self.directories.saturating_add(1);
        Ok(())
    }

    /// Adds bytes, unless that exceeds the limit.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), DirectoryLimit> {
        let grown = self.bytes.checked_add(bytes).filter(|grown| *grown <= self.limits.bytes);
        self.bytes = grown.ok_or(DirectoryLimit::Bytes(self.limits.bytes))?;
        Ok(())
    }

    /// Subtracts bytes that were removed.
    pub(super) const fn shrink(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Subtracts a file that was removed.
    pub(super) const fn remove_file(&mut self) {
        self.files = self.files.saturating_sub(1);
    }

    /// Adds partial files that a transfer has left, regardless of the limit.
    pub(super) const fn leave(&mut self, files: u32) {
        self.files = self.files.saturating_add(files);
    }
}

//! The source directory of transfers.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;
use std::{array, format, vec};

use crate::files::{BASE_LENGTH, DIGEST_LENGTH, Entry, Source, StorageError, Totals, check_path};
use rakwire_udp::is_portable_path;
use sha2::{Digest, Sha256};

use super::error::DirectoryError;
use super::{PARTS, patches, shown};

/// The number of bytes of a file read at a time.
const PIECE: usize = 64 * 1_024;

/// The files of a directory at the time when it was read. The module documentation has an example.
#[derive(Debug)]
pub struct DirectorySource {
    files: Vec<SourceFile>,
    totals: Totals,
    patches: Vec<Patch>,
    open: Option<(u32, File)>,
    /// The reason why a file could not be read; set when a transfer fails because of it.
    pub error: Option<String>,
}

/// A patch that produces a file from an older version.
#[derive(Debug)]
struct Patch {
    file: u32,
    base: [u8; BASE_LENGTH],
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct SourceFile {
    path: String,
    file: PathBuf,
    size: u64,
    digest: [u8; DIGEST_LENGTH],
}

impl DirectorySource {
    /// Reads all files of a directory and its subdirectories to compute their SHA-256.
    ///
    /// It blocks until all files are read. Partial files left by a [`DirectoryStore`](super::DirectoryStore)
    /// are skipped.
    ///
    /// # Errors
    /// Returns a [`DirectoryError`]. Symbolic links are errors, because they may lead outside of the directory.
    pub fn read(root: impl AsRef<Path>) -> Result<Self, DirectoryError> {
        let root = root.as_ref();
        let mut files = Vec::new();
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            let entries = fs::read_dir(&directory).map_err(|error| cannot_read(&directory, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| cannot_read(&directory, error))?;
                let (path, kind) = (entry.path(), entry.file_type());
                let kind = kind.map_err(|error| cannot_read(&path, error))?;
                if directory == root && entry.file_name() == PARTS {
                    continue;
                }
                if kind.is_dir() {
                    directories.push(path);
                } else if kind.is_file() {
                    files.push(SourceFile::read(root, path)?);
                } else {
                    let error = if kind.is_symlink() { DirectoryError::Link } else { DirectoryError::NoFile };
                    return Err(error(path));
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let count = u32::try_from(files.len()).map_err(|_| DirectoryError::TooManyFiles)?;
        let totals = Totals { files: count, bytes: files.iter().map(|file| file.size).sum() };
        Ok(Self { files, totals, patches: Vec::new(), open: None, error: None })
    }

    /// Creates patches from an older version of the directory, and keeps them in memory.
    ///
    /// Files above 128 MiB get no patch. While a patch is created, both versions of the file are in memory.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Self::read).
    pub fn add_previous(&mut self, root: impl AsRef<Path>) -> Result<(), DirectoryError> {
        let previous = Self::read(root)?;
        for (number, file) in (0..).zip(&self.files) {
            let at = previous.files.binary_search_by(|other| other.path.cmp(&file.path)).ok();
            let Some(old) = at.and_then(|at| previous.files.get(at)) else { continue };
            let is_known =
                self.patches.iter().any(|patch| patch.file == number && patch.base == base(&old.digest));
            let is_patched = old.digest != file.digest && old.size.max(file.size) <= patches::LONGEST;
            if !is_patched || is_known {
                continue;
            }
            let bytes = old.patch_to(file).map_err(|error| cannot_read(&old.file, error))?;
            if (bytes.len() as u64) < file.size {
                self.patches.push(Patch { file: number, base: base(&old.digest), bytes });
            }
        }
        Ok(())
    }

    /// Returns the number of patches and their total size in bytes.
    #[must_use]
    pub fn patches(&self) -> (usize, usize) {
        (self.patches.len(), self.patches.iter().map(|patch| patch.bytes.len()).sum())
    }

    /// Returns a patch by its number. Patch numbers follow those of the files.
    fn patch_at(&self, number: u32) -> Option<&Patch> {
        let index = number.checked_sub(self.totals.files)?;
        self.patches.get(usize::try_from(index).ok()?)
    }

    fn read_at(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if let Some(patch) = self.patch_at(file) {
            let mut bytes = io::Cursor::new(&patch.bytes);
            bytes.set_position(offset);
            return bytes.read_exact(buffer);
        }
        if self.open.as_ref().is_none_or(|(open, _)| *open != file) {
            let index = usize::try_from(file).map_err(io::Error::other)?;
            let path = &self.files.get(index).ok_or(io::ErrorKind::NotFound)?.file;
            self.open = Some((file, open(path)?));
        }
        let Some((_, file)) = &mut self.open else { return Err(io::ErrorKind::NotFound.into()) };
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl SourceFile {
    fn read(root: &Path, file: PathBuf) -> Result<Self, DirectoryError> {
        let Some(path) = relative(root, &file) else { return Err(DirectoryError::BadName(file)) };
        let (size, digest) = digest(&file).map_err(|error| cannot_read(&file, error))?;
        Ok(Self { path, file, size, digest })
    }
}

impl SourceFile {
    /// Creates the patch from this version to `other`.
    fn patch_to(&self, other: &Self) -> io::Result<Vec<u8>> {
        patches::make(&fs::read(&self.file)?, &fs::read(&other.file)?)
    }
}

/// Returns the path of a file relative to the directory, with `/` between its parts.
fn relative(root: &Path, file: &Path) -> Option<String> {
    let parts = file.strip_prefix(root).ok()?.iter().map(|part| part.to_str());
    let path = parts.collect::<Option<Vec<_>>>()?.join("/");
    check_path(path.as_bytes()).filter(|path| is_portable_path(path)).map(str::to_owned)
}

/// Opens a file unless it is a link.
fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("the path is no longer a file"));
    }
    File::open(path)
}

/// Returns the identifier of the version to which a patch applies.
fn base(digest: &[u8; DIGEST_LENGTH]) -> [u8; BASE_LENGTH] {
    array::from_fn(|index| digest.get(index).copied().unwrap_or(0))
}

fn digest(path: &Path) -> io::Result<(u64, [u8; DIGEST_LENGTH])> {
    let (mut file, mut hasher, mut size) = (open(path)?, Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok((size, hasher.finalize().into()));
        }
        hasher.update(piece.get(..length).unwrap_or_default());
        size += length as u64;
    }
}

fn cannot_read(path: &Path, error: io::Error) -> DirectoryError {
    DirectoryError::CannotRead(path.to_owned(), error)
}

impl Source for DirectorySource {
    fn totals(&self) -> Totals {
        self.totals
    }

    fn entry(&self, file: u32) -> Option<Entry<'_>> {
        let file = self.files.get(usize::try_from(file).ok()?)?;
        Some(Entry { path: file.path.as_bytes(), size: file.size, digest: file.digest })
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        self.read_at(file, offset, buffer).map_err(|error| {
            let index = usize::try_from(file).unwrap_or(usize::MAX);
            let path = self.files.get(index).map_or_else(String::new, |file| shown(&file.file));
            self.open = None;
            self.error = Some(format!("cannot read {path}: {error}"));
            StorageError
        })
    }

    fn patch(&self, file: u32, base: &[u8; BASE_LENGTH]) -> Option<u32> {
        let index = self.patches.iter().position(|patch| patch.file == file && patch.base == *base)?;
        self.totals.files.checked_add(u32::try_from(index).ok()?)
    }

    fn patch_size(&self, patch: u32) -> Option<u64> {
        self.patch_at(patch).map(|patch| patch.bytes.len() as u64)
    }
}

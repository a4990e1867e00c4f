//! A directory that receives files.

mod open_file;

use std::collections::{HashMap, HashSet};
use std::format;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;

use crate::files::{Entry, PatchStep, StorageError, Store};
use rakwire_udp::is_portable_path;
use sha2::{Digest, Sha256};

use self::open_file::{OpenFile, length, metadata, open_empty, open_part};
use super::error::DirectoryError;
use super::usage::{DirectoryLimit, DirectoryLimits, Usage};
use super::{PARTS, shown};

/// The maximum depth of directories.
const MAX_DEPTH: usize = 32;

/// A directory that receives files. Partial files are in a separate subdirectory; a file moves to its path
/// once it is complete and verified. Nothing is written through a link. The module documentation has an
/// example.
pub struct DirectoryStore {
    root: PathBuf,
    usage: Usage,
    open: HashMap<u32, OpenFile>,
    /// The reason why a file could not be written; set when a transfer fails because of it.
    pub error: Option<DirectoryError>,
}

impl core::fmt::Debug for DirectoryStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DirectoryStore")
            .field("root", &self.root)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl DirectoryStore {
    /// Opens a directory that may contain at most `limits` in total, and creates it if necessary.
    ///
    /// While a file is replaced, its older version and the patch count too. Partial files of earlier attempts
    /// are removed when their space is needed. File names have at most 255 bytes and do not count.
    ///
    /// # Errors
    /// [`DirectoryError::CannotWrite`], [`DirectoryError::CannotRead`], and [`DirectoryError::Exceeds`] if the
    /// directory already exceeds a limit.
    pub fn new(root: impl AsRef<Path>, limits: DirectoryLimits) -> Result<Self, DirectoryError> {
        let root = root.as_ref();
        fs::create_dir_all(root).map_err(|error| DirectoryError::CannotWrite(root.to_owned(), error))?;
        let usage = Usage::new(limits);
        let mut store = Self { root: root.to_owned(), usage, open: HashMap::new(), error: None };
        match store.measure() {
            Ok(()) => Ok(store),
            Err(error) => Err(limit_of(&error).map_or_else(
                || {
                    DirectoryError::CannotRead(
                        root.to_owned(),
                        io::Error::new(error.kind(), error.to_string()),
                    )
                },
                |limit| DirectoryError::Exceeds(root.to_owned(), limit),
            )),
        }
    }

    /// Measures the directory. If a limit is exceeded, removes partial files, and returns an error if that does not
    /// suffice.
    fn measure(&mut self) -> io::Result<()> {
        self.usage.add_tree(&self.root)?;
        let parts = self.root.join(PARTS);
        if fs::symlink_metadata(&parts).is_ok_and(|found| found.is_dir()) {
            self.usage.add_parts(&parts)?;
        }
        if self.usage.check().is_err() {
            self.remove_unused()?;
        }
        Ok(self.usage.check()?)
    }

    /// Closes the open files after a transfer. Their partial files are kept for the next attempt.
    pub fn close(&mut self) {
        let open: Vec<OpenFile> = self.open.drain().map(|(_, open)| open).collect();
        for open in open {
            self.leave(open);
        }
    }

    /// Closes a file and keeps its partial file for the next attempt, counted against the limits.
    fn leave(&mut self, mut open: OpenFile) {
        if open.making.take().is_some() {
            // If this fails, the file is removed later, together with the partial files.
            let _ = fs::remove_file(open.made());
            self.usage.shrink(open.size);
        }
        let is_new = !open.is_counted && open.part.exists();
        self.usage.leave(u32::from(is_new) + u32::from(open.patch_path().exists()));
    }

    /// Removes partial files of earlier attempts that no open file uses.
    fn remove_unused(&mut self) -> io::Result<()> {
        let parts = self.root.join(PARTS);
        if !metadata(&parts)?.is_some_and(|found| found.is_dir()) {
            return Ok(());
        }
        let used = |open: &OpenFile| [open.part.clone(), open.patch_path(), open.made()];
        let used: HashSet<PathBuf> = self.open.values().flat_map(used).collect();
        for entry in fs::read_dir(&parts)? {
            let entry = entry?;
            let (path, found) = (entry.path(), entry.metadata()?);
            if !found.is_dir() && !used.contains(&path) {
                fs::remove_file(path)?;
                self.usage.shrink(found.len());
                self.usage.remove_file();
            }
        }
        Ok(())
    }

    /// Counts an addition against the limits, and removes unused partial files if that is necessary.
    fn take(&mut self, add: impl Fn(&mut Usage) -> Result<(), DirectoryLimit>) -> io::Result<()> {
        if add(&mut self.usage).is_err() {
            self.remove_unused()?;
            add(&mut self.usage)?;
        }
        Ok(())
    }

    /// Removes all partial files. Call it once every file is complete.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn remove_parts(&mut self) -> io::Result<()> {
        self.close();
        self.remove_unused()?;
        let parts = self.root.join(PARTS);
        if metadata(&parts)?.is_some_and(|found| found.is_dir()) { fs::remove_dir_all(parts) } else { Ok(()) }
    }

    fn try_begin(&mut self, number: u32, entry: &Entry<'_>) -> io::Result<u64> {
        let name = core::str::from_utf8(entry.path).map_err(io::Error::other)?;
        // Some file systems ignore case.
        if name.split('/').next().is_some_and(|first| first.eq_ignore_ascii_case(PARTS)) {
            return Err(io::Error::other("the name is reserved for partial files"));
        }
        if !is_portable_path(name) {
            return Err(io::Error::other("the name has a special meaning on Windows"));
        }
        let path = self.place(name)?;
        check_file(&path)?;
        let digest = Sha256::new().chain_update(name).chain_update([0]).chain_update(entry.digest).finalize();
        let parts = self.root.join(PARTS);
        make_directory(&parts)?;
        let part = parts.join(hex(digest.as_slice()));
        let in_place = metadata(&path)?;
        let is_in_place = in_place.as_ref().is_some_and(|found| found.len() == entry.size);
        let mut is_counted = metadata(&part)?.is_some();
        if !is_counted && in_place.is_none() {
            self.take(Usage::add_file)?;
            is_counted = true;
        } else if self.usage.check().is_err() {
            // A partial file that was to replace a file counts as a file once it is left.
            self.remove_unused()?;
        }
        let file = if is_in_place { File::open(&path)? } else { open_part(&part)? };
        let mut present = file.metadata()?.len();
        if present > entry.size {
            file.set_len(0)?;
            self.usage.shrink(present);
            present = 0;
        }
        let size = entry.size;
        let (base, patch, making) = (None, None, None);
        let open = OpenFile { path, part, file, is_in_place, is_counted, size, base, patch, making };
        if let Some(before) = self.open.insert(number, open) {
            self.leave(before);
        }
        Ok(present)
    }

    /// Returns the path of a file, after checking that no existing directory on the path is a link.
    fn place(&self, name: &str) -> io::Result<PathBuf> {
        let directories = self.directories(name)?;
        for directory in &directories {
            if metadata(directory)?.is_some_and(|found| !found.is_dir()) {
                return Err(io::Error::other(format!("{} is not a directory", shown(directory))));
            }
        }
        Ok(self.root.join(name))
    }

    /// Returns the directories that contain a file, outermost first, without the root.
    fn directories(&self, name: &str) -> io::Result<Vec<PathBuf>> {
        let names = name.split('/').count() - 1;
        if names > MAX_DEPTH {
            return Err(io::Error::other(format!("the file is nested in more than {MAX_DEPTH} directories")));
        }
        let mut path = self.root.clone();
        let enter = |part| {
            path.push(part);
            path.clone()
        };
        Ok(name.split('/').take(names).map(enter).collect())
    }

    /// Creates the directories of a file once the file is complete. Otherwise a sender could create directories
    /// without files.
    fn make_directories(&mut self, name: &str) -> io::Result<()> {
        for directory in self.directories(name)? {
            if metadata(&directory)?.is_none() {
                self.usage.add_directory()?;
                fs::create_dir(directory)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, number: u32) -> io::Result<&mut OpenFile> {
        self.open.get_mut(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn try_finish(&mut self, number: u32) -> io::Result<()> {
        let open = self.open.remove(&number).ok_or(io::ErrorKind::NotFound)?;
        if open.is_in_place {
            return Ok(());
        }
        let (path, part, is_counted) = (open.path.clone(), open.part.clone(), open.is_counted);
        drop(open);
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let name = name.ok_or(io::ErrorKind::NotFound)?.replace(std::path::MAIN_SEPARATOR, "/");
        self.make_directories(&name)?;
        let path = self.place(&name)?;
        check_file(&path)?;
        let replaced = metadata(&path)?;
        fs::rename(part, path)?;
        match replaced {
            Some(replaced) => {
                self.usage.shrink(replaced.len());
                if is_counted {
                    self.usage.remove_file();
                }
            }
            None if !is_counted => self.usage.leave(1),
            None => {}
        }
        Ok(())
    }

    fn try_write(&mut self, number: u32, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let growth = growth(Some(&self.file(number)?.file), offset, bytes)?;
        self.take(|usage| usage.grow(growth))?;
        self.file(number)?.write(offset, bytes)
    }

    fn try_write_patch(&mut self, number: u32, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let open = self.file(number)?;
        if open.patch.is_none() {
            let path = open.patch_path();
            let left = length(&path);
            open.patch = Some(open_empty(&path)?);
            self.usage.shrink(left);
        }
        let growth = growth(self.file(number)?.patch.as_ref(), offset, bytes)?;
        self.take(|usage| usage.grow(growth))?;
        self.file(number)?.write_patch(offset, bytes)
    }

    fn try_apply_patch(&mut self, number: u32, bytes: u64) -> io::Result<PatchStep> {
        let open = self.file(number)?;
        let (size, kept) = (open.size, open.kept());
        if open.making.is_none() {
            // The patched file is not longer than `size`.
            self.take(|usage| usage.grow(size))?;
        }
        let open = self.file(number)?;
        let step = open.apply_patch(bytes);
        if !matches!(step, Ok(PatchStep::Unfinished)) {
            let left = open.kept();
            self.usage.shrink(size.saturating_add(kept).saturating_sub(left));
        }
        step
    }

    fn try_discard(&mut self, number: u32) -> io::Result<()> {
        let open = self.file(number)?;
        let part = length(&open.part);
        open.discard()?;
        self.usage.shrink(part);
        Ok(())
    }

    fn failed(&mut self, path: &Path, error: io::Error) -> StorageError {
        self.error = Some(match limit_of(&error) {
            Some(limit) => DirectoryError::Exceeds(self.root.clone(), limit),
            None => DirectoryError::CannotWrite(path.to_owned(), error),
        });
        StorageError
    }

    fn file_failed(&mut self, number: u32, error: io::Error) -> StorageError {
        let path = self.open.get(&number).map_or_else(PathBuf::new, |open| open.path.clone());
        self.failed(&path, error)
    }
}

/// Returns the directory limit that an error contains.
fn limit_of(error: &io::Error) -> Option<DirectoryLimit> {
    error.get_ref()?.downcast_ref().copied()
}

/// Returns by how much writing `bytes` at `offset` lengthens a file.
fn growth(file: Option<&File>, offset: u64, bytes: &[u8]) -> io::Result<u64> {
    let length = file.map_or(Ok(0), |file| file.metadata().map(|found| found.len()))?;
    let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    Ok(end.saturating_sub(length))
}

/// Formats bytes as hex digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that a path is a file if it exists.
fn check_file(path: &Path) -> io::Result<()> {
    match metadata(path)? {
        Some(found) if !found.is_file() => Err(io::Error::other(format!("{} is not a file", shown(path)))),
        _ => Ok(()),
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match metadata(path)? {
        None => fs::create_dir(path),
        Some(found) if found.is_dir() => Ok(()),
        Some(_) => Err(io::Error::other(format!("{} is not a directory", shown(path)))),
    }
}

impl Store for DirectoryStore {
    fn begin(&mut self, file: u32, entry: &Entry<'_>) -> Result<u64, StorageError> {
        let begun = self.try_begin(file, entry);
        begun.map_err(|error| self.failed(Path::new(&*String::from_utf8_lossy(entry.path)), error))
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let read = self.file(file).and_then(|open| open.read(offset, buffer));
        read.map_err(|error| self.file_failed(file, error))
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let written = self.try_write(file, offset, bytes);
        written.map_err(|error| self.file_failed(file, error))
    }

    fn discard(&mut self, file: u32) -> Result<(), StorageError> {
        let discarded = self.try_discard(file);
        discarded.map_err(|error| self.file_failed(file, error))
    }

    fn base(&mut self, file: u32) -> Option<u64> {
        // If the existing file cannot be read, it is fetched in full.
        self.file(file).and_then(OpenFile::base).ok().flatten()
    }

    fn read_base(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let read = self.file(file).and_then(|open| open.read_base(offset, buffer));
        read.map_err(|_| StorageError)
    }

    fn write_patch(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let written = self.try_write_patch(file, offset, bytes);
        written.map_err(|error| self.file_failed(file, error))
    }

    fn apply_patch(&mut self, file: u32, bytes: u64) -> Result<PatchStep, StorageError> {
        let applied = self.try_apply_patch(file, bytes);
        applied.map_err(|error| self.file_failed(file, error))
    }

    fn finish(&mut self, file: u32) -> Result<(), StorageError> {
        let path = self.open.get(&file).map_or_else(PathBuf::new, |open| open.path.clone());
        self.try_finish(file).map_err(|error| self.failed(&path, error))
    }
}

#[cfg(test)]
mod tests;

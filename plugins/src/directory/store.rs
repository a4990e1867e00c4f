//! A directory that receives files.

use std::collections::{HashMap, HashSet};
use std::format;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;

use crate::files::{Entry, PatchStep, StorageError, Store};
use rakwire_udp::is_portable_path;
use sha2::{Digest, Sha256};

use super::error::DirectoryError;
use super::patches::{self, Patcher, StepError};
use super::usage::{DirectoryLimit, DirectoryLimits, Usage};
use super::{PARTS, shown};

/// The maximum nesting of directories.
const MAX_DEPTH: usize = 32;

/// A directory that receives files. A file moves to its place when it is complete and verified; until then it is in a
/// separate directory of parts. Nothing is written through a link. The module has an example.
pub struct DirectoryStore {
    root: PathBuf,
    usage: Usage,
    open: HashMap<u32, OpenFile>,
    /// The reason why a file could not be written, which has ended a transfer.
    pub error: Option<DirectoryError>,
}

struct OpenFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
    /// Whether this is the file in its final place, opened for reading, and not the part.
    is_in_place: bool,
    /// Whether its part counts as a file; a part that replaces a file does not.
    is_counted: bool,
    size: u64,
    /// The older version in the final place.
    base: Option<File>,
    patch: Option<File>,
    /// The patcher being applied, and the file that it makes.
    making: Option<(Patcher<File, File>, File)>,
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
    /// Opens a directory that may hold no more than `limits` in all, and creates it if necessary.
    ///
    /// While a file is replaced, its older version and the patch for it count as well. Parts of earlier attempts are
    /// removed when their room is needed. Names have at most 255 bytes, which do not count.
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

    /// Measures the directory, and removes parts if only they exceed a limit.
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

    /// Closes the files of a transfer that has ended. Their parts stay for the next attempt.
    pub fn close(&mut self) {
        let open: Vec<OpenFile> = self.open.drain().map(|(_, open)| open).collect();
        for open in open {
            self.leave(open);
        }
    }

    /// Leaves the part of a file for the next attempt, and counts it.
    fn leave(&mut self, mut open: OpenFile) {
        if open.making.take().is_some() {
            // If this fails, the file is removed together with the parts.
            let _ = fs::remove_file(open.made());
            self.usage.shrink(open.size);
        }
        let is_new = !open.is_counted && open.part.exists();
        self.usage.leave(u32::from(is_new) + u32::from(open.patch_path().exists()));
    }

    /// Removes the parts of earlier attempts that no open file uses.
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

    /// Reserves room, and removes unused parts if that is necessary.
    fn take(&mut self, add: impl Fn(&mut Usage) -> Result<(), DirectoryLimit>) -> io::Result<()> {
        if add(&mut self.usage).is_err() {
            self.remove_unused()?;
            add(&mut self.usage)?;
        }
        Ok(())
    }

    /// Removes all parts, when every file is complete.
    ///
    /// # Errors
    /// An error of the file system.
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
            return Err(io::Error::other("the name is reserved for parts of files"));
        }
        if !is_portable_path(name) {
            return Err(io::Error::other("Windows gives the name another meaning"));
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
            // Parts that were to replace files count as files once they are left.
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

    /// Returns the place of a file. No existing directory on the way is a link.
    fn place(&self, name: &str) -> io::Result<PathBuf> {
        let directories = self.directories(name)?;
        for directory in &directories {
            if metadata(directory)?.is_some_and(|found| !found.is_dir()) {
                return Err(io::Error::other(format!("{} is no directory", shown(directory))));
            }
        }
        Ok(self.root.join(name))
    }

    /// Returns the directories that contain a file, outermost first, without the root.
    fn directories(&self, name: &str) -> io::Result<Vec<PathBuf>> {
        let names = name.split('/').count() - 1;
        if names > MAX_DEPTH {
            return Err(io::Error::other(format!("it is in more than {MAX_DEPTH} directories")));
        }
        let mut path = self.root.clone();
        let enter = |part| {
            path.push(part);
            path.clone()
        };
        Ok(name.split('/').take(names).map(enter).collect())
    }

    /// Creates the directories of a file once the file is complete, so that a sender creates no directories without
    /// files.
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
            // The resulting file is not longer than that.
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

    /// Stores the reason for a failure.
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

/// Returns the limit that an error reports.
fn limit_of(error: &io::Error) -> Option<DirectoryLimit> {
    error.get_ref()?.downcast_ref().copied()
}

/// Returns by how much writing `bytes` at `offset` lengthens a file.
fn growth(file: Option<&File>, offset: u64, bytes: &[u8]) -> io::Result<u64> {
    let length = file.map_or(Ok(0), |file| file.metadata().map(|found| found.len()))?;
    let end = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    Ok(end.saturating_sub(length))
}

/// Returns the length of a file; 0 if it does not exist.
fn length(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |found| found.len())
}

/// Formats bytes as hex digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the metadata of a path, if it exists. A link is not followed and is an error.
fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::other(format!("{} is a symbolic link", shown(path))))
        }
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks that a path is a file if it exists.
fn check_file(path: &Path) -> io::Result<()> {
    match metadata(path)? {
        Some(found) if !found.is_file() => Err(io::Error::other(format!("{} is no file", shown(path)))),
        _ => Ok(()),
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match metadata(path)? {
        None => fs::create_dir(path),
        Some(found) if found.is_dir() => Ok(()),
        Some(_) => Err(io::Error::other(format!("{} is no directory", shown(path)))),
    }
}

fn open_part(path: &Path) -> io::Result<File> {
    metadata(path)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn open_empty(path: &Path) -> io::Result<File> {
    let file = open_part(path)?;
    file.set_len(0)?;
    Ok(file)
}

fn read_at(file: &mut File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(buffer)
}

impl OpenFile {
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        read_at(&mut self.file, offset, buffer)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    /// Returns the size of the version in the final place, if a patch may start from it.
    fn base(&mut self) -> io::Result<Option<u64>> {
        let Some(found) = metadata(&self.path)? else { return Ok(None) };
        if !found.is_file() || found.len().max(self.size) > patches::LONGEST {
            return Ok(None);
        }
        self.base = Some(File::open(&self.path)?);
        Ok(Some(found.len()))
    }

    fn read_base(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let base = self.base.as_mut().ok_or(io::ErrorKind::NotFound)?;
        read_at(base, offset, buffer)
    }

    fn write_patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let patch = self.patch.as_mut().ok_or(io::ErrorKind::NotFound)?;
        patch.seek(SeekFrom::Start(offset))?;
        patch.write_all(bytes)
    }

    fn patch_path(&self) -> PathBuf {
        self.part.with_extension("patch")
    }

    /// Returns the bytes of the part and of the patch.
    fn kept(&self) -> u64 {
        length(&self.part).saturating_add(length(&self.patch_path()))
    }

    /// Returns the path of the file that the patch makes.
    fn made(&self) -> PathBuf {
        self.part.with_extension("new")
    }

    fn apply_patch(&mut self, bytes: u64) -> io::Result<PatchStep> {
        let Some((mut patcher, file)) = self.making()? else { return self.end_patch(PatchStep::Worthless) };
        let stepped = patcher.step(&mut BufWriter::new(&file), bytes);
        if let Ok(true) = stepped {
            self.making = Some((patcher, file));
            return Ok(PatchStep::Unfinished);
        }
        drop(patcher);
        match stepped {
            Ok(_) => {
                // It has the right length now, so it is checked like any other part.
                (self.file, self.is_in_place) = (file, false);
                fs::rename(self.made(), &self.part)?;
                self.end_patch(PatchStep::Applied)
            }
            Err(StepError { error, is_of_writer: true }) => {
                drop(file);
                // The disk may be full because of this file.
                let _ = fs::remove_file(self.made());
                Err(error)
            }
            Err(_) => {
                drop(file);
                fs::remove_file(self.made())?;
                self.end_patch(PatchStep::Worthless)
            }
        }
    }

    /// Removes the patch, which is used up.
    fn end_patch(&self, step: PatchStep) -> io::Result<PatchStep> {
        fs::remove_file(self.patch_path())?;
        Ok(step)
    }

    /// Returns the patcher and its output: those of the previous step, or new ones. `None` if the patch is malformed.
    fn making(&mut self) -> io::Result<Option<(Patcher<File, File>, File)>> {
        if let Some(making) = self.making.take() {
            return Ok(Some(making));
        }
        self.patch = None;
        let mut base = self.base.take().ok_or(io::ErrorKind::NotFound)?;
        base.seek(SeekFrom::Start(0))?;
        let patch = self.patch_path();
        let Ok(patcher) = Patcher::new(|| File::open(&patch), base, self.size) else { return Ok(None) };
        Ok(Some((patcher, open_empty(&self.made())?)))
    }

    fn discard(&mut self) -> io::Result<()> {
        if self.is_in_place {
            self.file = open_part(&self.part)?;
            self.is_in_place = false;
        }
        self.file.set_len(0)
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
        // A file that cannot be read is fetched.
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
mod tests {
    use super::*;

    /// Creates a store in a new directory, with a limit of directories.
    fn store(name: &str, directories: u32) -> DirectoryStore {
        let root = std::env::temp_dir().join(format!("rakwire-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        DirectoryStore::new(&root, limits(directories, 1 << 30)).expect("a directory")
    }

    fn limits(directories: u32, bytes: u64) -> DirectoryLimits {
        DirectoryLimits { files: 10, directories, bytes }
    }

    fn begin(store: &mut DirectoryStore, number: u32, path: &str) -> Result<u64, StorageError> {
        store.begin(number, &Entry { path: path.as_bytes(), size: 0, digest: [0; 32] })
    }

    /// A peer that only begins files creates no directories, and one that finishes files creates a limited number.
    #[test]
    fn directories_are_created_only_for_complete_files() {
        let mut store = store("counted", 3);
        for (number, path) in ["a/b/1", "a/b/2", "c/3", "d/4"].iter().enumerate() {
            begin(&mut store, number as u32, path).expect("a part");
        }
        assert_eq!(fs::read_dir(&store.root).expect("a directory").count(), 1, "the directory of parts");
        for number in 0..3 {
            store.finish(number).expect("three directories");
        }
        assert!(store.root.join("a/b/2").is_file() && store.root.join("c/3").is_file());
        assert_eq!(store.finish(3), Err(StorageError));
        let error = store.error.take().expect("a reason");
        assert!(matches!(error, DirectoryError::Exceeds(_, DirectoryLimit::Directories(3))), "{error}");
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    #[test]
    fn parts_directory_name_is_reserved_in_any_case() {
        let mut store = store("letters", 3);
        for path in [".rakwire-part/a", ".RAKWIRE-Part/a", ".rakwire-part"] {
            assert_eq!(begin(&mut store, 0, path), Err(StorageError), "{path}");
        }
        begin(&mut store, 0, ".rakwire-parts/a").expect("a part");
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// Received files may be passed on to another system, or the directory may be mounted from one.
    #[test]
    fn windows_reserved_names_are_refused_on_all_systems() {
        let mut store = store("windows", 3);
        for path in ["aux.txt", "maps/NUL", "ice.", "a /b", "what?", "a|b", ".. /up"] {
            assert_eq!(begin(&mut store, 0, path), Err(StorageError), "{path}");
        }
        begin(&mut store, 0, "maps/auxiliary.txt").expect("a part");
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// Creates a store with an older version in its place, and returns it with the newer version.
    fn patched_store(name: &str) -> (DirectoryStore, Vec<u8>) {
        let old: Vec<u8> = (0..700_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        let new = [&old[..300_000], b"a change", &old[300_000..]].concat();
        let patch = patches::make(&old, &new).expect("a patch");
        let mut store = store(name, 0);
        fs::write(store.root.join("a"), &old).expect("a file");
        store = DirectoryStore::new(&store.root, limits(0, 1 << 30)).expect("a directory");
        assert_eq!(begin_patched(&mut store, &new), Ok(0));
        assert_eq!(store.base(0), Some(old.len() as u64));
        store.write_patch(0, 0, &patch).expect("a file");
        (store, new)
    }

    fn begin_patched(store: &mut DirectoryStore, new: &[u8]) -> Result<u64, StorageError> {
        store.begin(0, &Entry { path: b"a", size: new.len() as u64, digest: [0; 32] })
    }

    fn apply_all(store: &mut DirectoryStore) -> PatchStep {
        loop {
            match store.apply_patch(0, 256 * 1_024).expect("room") {
                PatchStep::Unfinished => {}
                step @ (PatchStep::Applied | PatchStep::Worthless) => return step,
            }
        }
    }

    #[test]
    fn patch_makes_a_file_step_by_step() {
        let (mut store, new) = patched_store("patched");
        assert_eq!(store.apply_patch(0, 256 * 1_024), Ok(PatchStep::Unfinished));
        assert_eq!(apply_all(&mut store), PatchStep::Applied);
        let mut end = [0; 100];
        store.read(0, new.len() as u64 - 100, &mut end).expect("it is here");
        assert!(new.ends_with(&end));
        store.finish(0).expect("a right file");
        assert_eq!(fs::read(store.root.join("a")).expect("a file"), new);
        store.remove_parts().expect("they are there");
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// Even after a crash, a partly patched file is not mistaken for the beginning of the file.
    #[test]
    fn interrupted_patch_leaves_no_part() {
        let (mut store, new) = patched_store("interrupted");
        assert_eq!(store.apply_patch(0, 1_000), Ok(PatchStep::Unfinished));
        let mut next = DirectoryStore::new(&store.root, limits(0, 1 << 30)).expect("a directory");
        assert_eq!(begin_patched(&mut next, &new), Ok(0));
        let made = store.file(0).expect("it is open").made();
        store.close();
        assert!(!made.exists());
        assert_eq!(begin_patched(&mut store, &new), Ok(0));
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// A completely patched file need not be made again.
    #[test]
    fn patched_file_is_kept_as_a_part_until_verified() {
        let (mut store, new) = patched_store("made");
        assert_eq!(apply_all(&mut store), PatchStep::Applied);
        let made = store.file(0).expect("it is open").made();
        store.close();
        assert!(!made.exists());
        assert_eq!(begin_patched(&mut store, &new), Ok(new.len() as u64));
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// A file that replaces a wrongly patched one is an ordinary part.
    #[test]
    fn wrongly_patched_file_is_fetched_as_a_part() {
        let (mut store, new) = patched_store("wrong");
        assert_eq!(apply_all(&mut store), PatchStep::Applied);
        let made = store.file(0).expect("it is open").made();
        store.discard(0).expect("it is open");
        assert!(!made.exists());
        store.write(0, 0, &new[..1_000]).expect("room");
        store.close();
        assert_eq!(begin_patched(&mut store, &new), Ok(1_000));
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// A full disk does not mean that the patch is wrong: fetching the whole file would fail as well.
    #[test]
    fn patch_that_runs_out_of_room_ends_the_transfer() {
        let (mut store, _) = patched_store("full");
        assert_eq!(store.apply_patch(0, 1_000), Ok(PatchStep::Unfinished));
        let open = store.file(0).expect("it is open");
        let read_only = File::open(open.made()).expect("a file");
        open.making.as_mut().expect("it is being made").1 = read_only;
        let made = open.made();
        assert_eq!(store.apply_patch(0, 1_000), Err(StorageError));
        assert!(matches!(store.error.take(), Some(DirectoryError::CannotWrite(..))));
        assert!(!made.exists());
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    #[test]
    fn malformed_patch_is_reported_as_worthless() {
        let (mut store, _) = patched_store("worthless");
        store.write_patch(0, 0, b"BSDIFF50").expect("room");
        assert_eq!(apply_all(&mut store), PatchStep::Worthless);
        assert_eq!(store.file(0).expect("it is open").file.metadata().expect("a file").len(), 0);
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    #[test]
    fn directories_nest_up_to_the_maximum_depth() {
        let mut store = store("depth", 100);
        begin(&mut store, 0, &format!("{}file", "d/".repeat(MAX_DEPTH))).expect("a part");
        store.finish(0).expect("as deep as may be");
        assert!(begin(&mut store, 1, &format!("{}file", "d/".repeat(MAX_DEPTH + 1))).is_err());
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// Returns the bytes of all files in a directory and its subdirectories.
    fn bytes_in(directory: &Path) -> u64 {
        let entries =
            fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
        entries.map(|path| if path.is_dir() { bytes_in(&path) } else { length(&path) }).sum()
    }

    /// Runs one interrupted attempt, in which `of_each` bytes of each file arrive.
    fn attempt(store: &mut DirectoryStore, files: &[(&str, u64)], of_each: u64) -> Result<(), StorageError> {
        for (number, (path, size)) in files.iter().enumerate() {
            let number = number as u32;
            let present =
                store.begin(number, &Entry { path: path.as_bytes(), size: *size, digest: [0; 32] })?;
            if of_each > present {
                store.write(number, present, &vec![7; (of_each - present) as usize])?;
            }
            if of_each == *size {
                store.finish(number)?;
            }
        }
        Ok(())
    }

    fn exceeds(store: &mut DirectoryStore) -> Option<DirectoryLimit> {
        match store.error.take() {
            Some(DirectoryError::Exceeds(_, limit)) => Some(limit),
            _ => None,
        }
    }

    /// A peer that names other files each time cannot fill the disk, within one run of the program or across many.
    #[test]
    fn many_attempts_stay_within_the_byte_limit() {
        let mut store = store("attempts", 0);
        let limits = limits(0, 10_000);
        for is_new_run in [false, true] {
            for number in 0..20 {
                if is_new_run || number == 0 {
                    store = DirectoryStore::new(&store.root, limits).expect("parts make room");
                }
                let (one, other) = (format!("a{number}"), format!("b{number}"));
                assert_eq!(attempt(&mut store, &[(&one, 9_000), (&other, 9_000)], 4_000), Ok(()));
                store.close();
                assert!(bytes_in(&store.root) <= 10_000);
            }
        }
        // Complete files stay and count.
        assert_eq!(attempt(&mut store, &[("c", 6_000)], 6_000), Ok(()));
        store.close();
        assert_eq!(attempt(&mut store, &[("d", 6_000)], 6_000), Err(StorageError));
        assert_eq!(exceeds(&mut store), Some(DirectoryLimit::Bytes(10_000)));
        store.close();
        assert!(bytes_in(&store.root) <= 10_000);
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    #[test]
    fn many_small_files_stay_within_the_file_limit() {
        let mut store = store("small", 0);
        let count = |store: &DirectoryStore| {
            let parts = fs::read_dir(store.root.join(PARTS)).expect("a directory").count();
            parts + fs::read_dir(&store.root).expect("a directory").count() - 1
        };
        for number in 0..50 {
            let (one, other) = (format!("a{number}"), format!("b{number}"));
            assert_eq!(attempt(&mut store, &[(&one, 1), (&other, 1)], 0), Ok(()));
            store.close();
            assert!(count(&store) <= 10, "{}", count(&store));
        }
        for number in 0..10 {
            assert_eq!(attempt(&mut store, &[(&format!("c{number}"), 0)], 0), Ok(()), "{number}");
        }
        assert_eq!(attempt(&mut store, &[("c10", 0)], 0), Err(StorageError));
        assert_eq!(exceeds(&mut store), Some(DirectoryLimit::Files(10)));
        // Other versions of files that already exist.
        for number in 0..50 {
            let digest = [number; 32];
            assert!(store.begin(0, &Entry { path: b"c0", size: 1, digest }).is_ok());
            store.close();
            assert!(count(&store) <= 12, "{}", count(&store));
        }
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// Parts from earlier runs are removed; complete files that exceed the limit are refused.
    #[test]
    fn lowered_limit_applies_when_reopened() {
        let mut store = store("lowered", 0);
        assert_eq!(attempt(&mut store, &[("a", 4_000)], 4_000), Ok(()));
        assert_eq!(attempt(&mut store, &[("b", 9_000)], 3_000), Ok(()));
        store.close();
        let lowered = DirectoryStore::new(&store.root, limits(0, 5_000)).expect("the part makes room");
        assert_eq!(bytes_in(&lowered.root), 4_000);
        let refused = DirectoryStore::new(&store.root, limits(0, 3_999)).expect_err("a file is no part");
        assert!(matches!(refused, DirectoryError::Exceeds(_, DirectoryLimit::Bytes(3_999))), "{refused}");
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    /// A resumed part is not counted twice, and a replaced file does not count any more.
    #[test]
    fn resumed_and_replaced_files_count_once() {
        let mut store = store("once", 0);
        let limits = limits(0, 10_000);
        for of_each in [2_000, 4_000, 8_000, 10_000] {
            store = DirectoryStore::new(&store.root, limits).expect("a directory");
            assert_eq!(attempt(&mut store, &[("a", 10_000)], of_each), Ok(()), "{of_each}");
            store.close();
        }
        store = DirectoryStore::new(&store.root, DirectoryLimits { bytes: 12_000, ..limits })
            .expect("a directory");
        for size in [2_000, 8_000, 3_000, 9_000] {
            assert_eq!(attempt(&mut store, &[("a", size)], size), Ok(()), "{size}");
        }
        assert_eq!(bytes_in(&store.root), 9_000);
        assert_eq!(store.usage.check(), Ok(()));
        assert_eq!(
            attempt(&mut store, &[("a", 4_000)], 4_000),
            Err(StorageError),
            "both are there for a while"
        );
        fs::remove_dir_all(&store.root).expect("it is there");
    }

    #[test]
    fn patch_and_patched_file_count_toward_the_limit() {
        let (mut store, new) = patched_store("counted-patch");
        assert_eq!(apply_all(&mut store), PatchStep::Applied);
        store.finish(0).expect("a right file");
        store.remove_parts().expect("they are there");
        let left = bytes_in(&store.root);
        assert_eq!(left, new.len() as u64);
        let mut usage = Usage::new(limits(0, left));
        core::mem::swap(&mut usage, &mut store.usage);
        assert_eq!(usage.grow((1 << 30) - left), Ok(()), "nothing else is counted");
        assert!(usage.grow(1).is_err());
        fs::remove_dir_all(&store.root).expect("it is there");
    }
}

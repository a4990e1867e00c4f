//! A directory that files are received in.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rakwire_plugins::files::{BASE_LENGTH, Entry, StorageError, Store};
use sha2::{Digest, Sha256};

use super::source::{base, digest};
use super::{PARTS, hex, patches, shown};
use crate::failure::Failure;

/// A directory. A file comes to its place when it is complete and right; until then it is a part beside the others. Nothing
/// is written through a link.
pub(crate) struct DirectoryStore {
    root: PathBuf,
    open: HashMap<u32, OpenFile>,
    /// Why a file cannot be written.
    pub(crate) error: Option<String>,
}

struct OpenFile {
    path: PathBuf,
    part: PathBuf,
    file: File,
    /// The file in its place is looked at, not a part.
    is_in_place: bool,
    size: u64,
    patch: Option<File>,
}

impl DirectoryStore {
    /// The directory is made if it does not exist.
    pub(crate) fn new(root: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(root)
            .map_err(|error| Failure::usage(format!("cannot write to {}: {error}", shown(root))))?;
        Ok(Self { root: root.to_owned(), open: HashMap::new(), error: None })
    }

    /// Closes the files of a transfer that has ended. Their parts stay, for the next attempt.
    pub(crate) fn close(&mut self) {
        self.open.clear();
    }

    /// Removes what is left of earlier attempts, when everything is here.
    pub(crate) fn remove_parts(&mut self) -> io::Result<()> {
        self.close();
        let parts = self.root.join(PARTS);
        if metadata(&parts)?.is_some_and(|found| found.is_dir()) { fs::remove_dir_all(parts) } else { Ok(()) }
    }

    fn try_begin(&mut self, number: u32, entry: &Entry<'_>) -> io::Result<u64> {
        let name = std::str::from_utf8(entry.path).map_err(io::Error::other)?;
        if name.split('/').next() == Some(PARTS) {
            return Err(io::Error::other("the name is kept for parts of files"));
        }
        let path = self.place(name)?;
        let digest = Sha256::new().chain_update(name).chain_update([0]).chain_update(entry.digest).finalize();
        let parts = self.root.join(PARTS);
        make_directory(&parts)?;
        let part = parts.join(hex(digest.as_slice()));
        let is_in_place = metadata(&path)?.is_some_and(|found| found.len() == entry.size);
        let file = if is_in_place { File::open(&path)? } else { open_part(&part)? };
        let mut present = file.metadata()?.len();
        if present > entry.size {
            file.set_len(0)?;
            present = 0;
        }
        let size = entry.size;
        self.open.insert(number, OpenFile { path, part, file, is_in_place, size, patch: None });
        Ok(present)
    }

    /// Where a file belongs. Its directories are made, and neither they nor the file are links.
    fn place(&self, name: &str) -> io::Result<PathBuf> {
        let mut path = self.root.clone();
        let mut parts = name.split('/').peekable();
        while let Some(part) = parts.next() {
            path.push(part);
            if parts.peek().is_some() {
                make_directory(&path)?;
            } else if metadata(&path)?.is_some_and(|found| !found.is_file()) {
                return Err(io::Error::other(format!("{} is no file", shown(&path))));
            }
        }
        Ok(path)
    }

    fn file(&mut self, number: u32) -> io::Result<&mut OpenFile> {
        self.open.get_mut(&number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn try_finish(&mut self, number: u32) -> io::Result<()> {
        let Some(OpenFile { path, part, file, is_in_place, .. }) = self.open.remove(&number) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        drop(file);
        if is_in_place {
            return Ok(());
        }
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let name = name.ok_or(io::ErrorKind::NotFound)?.replace(std::path::MAIN_SEPARATOR, "/");
        fs::rename(part, self.place(&name)?)
    }

    /// Remembers why something failed.
    fn failed(&mut self, name: &str, error: &io::Error) -> StorageError {
        self.error = Some(format!("cannot write {name}: {error}"));
        StorageError
    }

    fn file_failed(&mut self, number: u32, error: &io::Error) -> StorageError {
        let name = self.open.get(&number).map_or_else(String::new, |open| shown(&open.path));
        self.failed(&name, error)
    }
}

/// What is there; links are not followed, and are an error.
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

impl OpenFile {
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(buffer)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    /// The version that is in place, if a patch may start from it.
    fn base(&self) -> io::Result<Option<[u8; BASE_LENGTH]>> {
        let Some(found) = metadata(&self.path)? else { return Ok(None) };
        if !found.is_file() || found.len().max(self.size) > patches::LONGEST {
            return Ok(None);
        }
        digest(&self.path).map(|(_, digest)| Some(base(&digest)))
    }

    fn write_patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.patch.is_none() {
            let file = open_part(&self.part.with_extension("patch"))?;
            file.set_len(0)?;
            self.patch = Some(file);
        }
        let Some(patch) = &mut self.patch else { return Ok(()) };
        patch.seek(SeekFrom::Start(offset))?;
        patch.write_all(bytes)
    }

    /// False if the patch does not fit; nothing of the file is here then.
    fn apply_patch(&mut self) -> io::Result<bool> {
        let Some(mut file) = self.patch.take() else { return Ok(false) };
        let mut patch = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut patch)?;
        fs::remove_file(self.part.with_extension("patch"))?;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        let made = fs::read(&self.path)
            .and_then(|old| patches::apply(&old, &patch, self.size, BufWriter::new(&self.file)));
        if made.is_err() {
            self.file.set_len(0)?;
        }
        Ok(made.is_ok())
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
        self.try_begin(file, entry).map_err(|error| self.failed(&crate::text::escape(entry.path), &error))
    }

    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        let read = self.file(file).and_then(|open| open.read(offset, buffer));
        read.map_err(|error| self.file_failed(file, &error))
    }

    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let written = self.file(file).and_then(|open| open.write(offset, bytes));
        written.map_err(|error| self.file_failed(file, &error))
    }

    fn discard(&mut self, file: u32) -> Result<(), StorageError> {
        let discarded = self.file(file).and_then(OpenFile::discard);
        discarded.map_err(|error| self.file_failed(file, &error))
    }

    fn base(&mut self, file: u32) -> Option<[u8; BASE_LENGTH]> {
        // What cannot be read is fetched.
        self.file(file).and_then(|open| open.base()).ok().flatten()
    }

    fn write_patch(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let written = self.file(file).and_then(|open| open.write_patch(offset, bytes));
        written.map_err(|error| self.file_failed(file, &error))
    }

    fn apply_patch(&mut self, file: u32) -> Result<bool, StorageError> {
        let applied = self.file(file).and_then(OpenFile::apply_patch);
        applied.map_err(|error| self.file_failed(file, &error))
    }

    fn finish(&mut self, file: u32) -> Result<(), StorageError> {
        let name = self.open.get(&file).map_or_else(String::new, |open| shown(&open.path));
        self.try_finish(file).map_err(|error| self.failed(&name, &error))
    }
}

//! A directory that is sent.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rakwire_plugins::files::{DIGEST_LENGTH, Entry, Source, StorageError, Totals, check_path};
use sha2::{Digest, Sha256};

use super::{PARTS, shown};
use crate::failure::Failure;

/// How much of a file is read at once.
const PIECE: usize = 64 * 1_024;

/// The files of a directory, as they were when it was read.
pub(crate) struct DirectorySource {
    files: Vec<SourceFile>,
    totals: Totals,
    open: Option<(u32, File)>,
    /// Why a file cannot be read.
    pub(crate) error: Option<String>,
}

struct SourceFile {
    path: String,
    file: PathBuf,
    size: u64,
    digest: [u8; DIGEST_LENGTH],
}

impl DirectorySource {
    /// Reads every file. Links are refused: what they lead to may be elsewhere.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let mut files = Vec::new();
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            let entries = fs::read_dir(&directory).map_err(|error| cannot_read(&directory, &error))?;
            for entry in entries {
                let entry = entry.map_err(|error| cannot_read(&directory, &error))?;
                let (path, kind) = (entry.path(), entry.file_type());
                let kind = kind.map_err(|error| cannot_read(&path, &error))?;
                if directory == root && entry.file_name() == PARTS {
                    continue;
                }
                if kind.is_dir() {
                    directories.push(path);
                } else if kind.is_file() {
                    files.push(SourceFile::read(root, path)?);
                } else {
                    let what = if kind.is_symlink() { "a symbolic link" } else { "no file and no directory" };
                    return Err(Failure::usage(format!(
                        "{} is {what}, which is not sent; remove it, or push another directory",
                        shown(&path)
                    )));
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let count = u32::try_from(files.len()).map_err(|_| Failure::usage("there are too many files"))?;
        let totals = Totals { files: count, bytes: files.iter().map(|file| file.size).sum() };
        Ok(Self { files, totals, open: None, error: None })
    }

    fn read_at(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
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
    fn read(root: &Path, file: PathBuf) -> Result<Self, Failure> {
        let path = relative(root, &file).ok_or_else(|| {
            Failure::usage(format!(
                "{} has a name that cannot be sent: up to 255 bytes of UTF-8 without backslashes, colons and control \
                 characters; rename it",
                shown(&file)
            ))
        })?;
        let (size, digest) = digest(&file).map_err(|error| cannot_read(&file, &error))?;
        Ok(Self { path, file, size, digest })
    }
}

/// The path of a file below the directory, with `/` between its parts.
fn relative(root: &Path, file: &Path) -> Option<String> {
    let parts = file.strip_prefix(root).ok()?.iter().map(|part| part.to_str());
    let path = parts.collect::<Option<Vec<_>>>()?.join("/");
    check_path(path.as_bytes()).map(str::to_owned)
}

/// Opens a file that is not a link.
fn open(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file any more"));
    }
    File::open(path)
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

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {}: {error}", shown(path)))
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
}

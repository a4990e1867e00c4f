//! A file that is being transferred: its final path, its partial file, and the patch for it. No link is followed.

use std::format;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;

use crate::directory::patches::{self, Patcher, StepError};
use crate::directory::shown;
use crate::files::PatchStep;

/// A file that a transfer has begun but not finished.
pub(super) struct OpenFile {
    pub(super) path: PathBuf,
    pub(super) part: PathBuf,
    pub(super) file: File,
    /// True if `file` is the complete file at its final path, opened for reading, and not the partial file.
    pub(super) is_in_place: bool,
    /// True if the partial file counts as a file; a partial file that replaces an existing file does not.
    pub(super) is_counted: bool,
    pub(super) size: u64,
    /// The older version at the final path.
    pub(super) base: Option<File>,
    pub(super) patch: Option<File>,
    /// The patcher in progress, and its output file.
    pub(super) making: Option<(Patcher<File, File>, File)>,
}

impl OpenFile {
    pub(super) fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        read_at(&mut self.file, offset, buffer)
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    /// Returns the size of the version at the final path if a patch may be applied to it.
    pub(super) fn base(&mut self) -> io::Result<Option<u64>> {
        let Some(found) = metadata(&self.path)? else { return Ok(None) };
        if !found.is_file() || found.len().max(self.size) > patches::LONGEST {
            return Ok(None);
        }
        self.base = Some(File::open(&self.path)?);
        Ok(Some(found.len()))
    }

    pub(super) fn read_base(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let base = self.base.as_mut().ok_or(io::ErrorKind::NotFound)?;
        read_at(base, offset, buffer)
    }

    pub(super) fn write_patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let patch = self.patch.as_mut().ok_or(io::ErrorKind::NotFound)?;
        patch.seek(SeekFrom::Start(offset))?;
        patch.write_all(bytes)
    }

    pub(super) fn patch_path(&self) -> PathBuf {
        self.part.with_extension("patch")
    }

    /// Returns the total bytes of the partial file and of the patch.
    pub(super) fn kept(&self) -> u64 {
        length(&self.part).saturating_add(length(&self.patch_path()))
    }

    /// Returns the path of the output file of the patch.
    pub(super) fn made(&self) -> PathBuf {
        self.part.with_extension("new")
    }

    pub(super) fn apply_patch(&mut self, bytes: u64) -> io::Result<PatchStep> {
        let Some((mut patcher, file)) = self.making()? else { return self.end_patch(PatchStep::Invalid) };
        let stepped = patcher.step(&mut BufWriter::new(&file), bytes);
        if let Ok(true) = stepped {
            self.making = Some((patcher, file));
            return Ok(PatchStep::Unfinished);
        }
        drop(patcher);
        match stepped {
            Ok(_) => {
                // The output has the expected length, so it is verified like any other partial file.
                (self.file, self.is_in_place) = (file, false);
                fs::rename(self.made(), &self.part)?;
                self.end_patch(PatchStep::Applied)
            }
            Err(StepError { error, is_of_writer: true }) => {
                drop(file);
                // The output may be the reason why the disk is full.
                let _ = fs::remove_file(self.made());
                Err(error)
            }
            Err(_) => {
                drop(file);
                fs::remove_file(self.made())?;
                self.end_patch(PatchStep::Invalid)
            }
        }
    }

    /// Removes the patch, which is no longer needed.
    fn end_patch(&self, step: PatchStep) -> io::Result<PatchStep> {
        fs::remove_file(self.patch_path())?;
        Ok(step)
    }

    /// Returns the patcher and its output, either from the previous step or new. `None` if the patch is malformed.
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

    pub(super) fn discard(&mut self) -> io::Result<()> {
        if self.is_in_place {
            self.file = open_part(&self.part)?;
            self.is_in_place = false;
        }
        self.file.set_len(0)
    }
}

/// Returns the length of a file; 0 if it does not exist.
pub(super) fn length(path: &Path) -> u64 {
    fs::symlink_metadata(path).map_or(0, |found| found.len())
}

/// Returns the metadata of a path; `None` if it does not exist. A link is an error.
pub(super) fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::other(format!("{} is a symbolic link", shown(path))))
        }
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn open_part(path: &Path) -> io::Result<File> {
    metadata(path)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

pub(super) fn open_empty(path: &Path) -> io::Result<File> {
    let file = open_part(path)?;
    file.set_len(0)?;
    Ok(file)
}

fn read_at(file: &mut File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(buffer)
}

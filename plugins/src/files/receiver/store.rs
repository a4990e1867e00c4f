//! Where a receiver puts files.

use crate::files::outcome::StorageError;
use crate::files::wire::Entry;

/// How far the file is that a patch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStep {
    /// Not all of it is made.
    Unfinished,
    /// All of it is.
    Applied,
    /// The patch is worth nothing. Nothing of the file is here, and all of it is fetched.
    Worthless,
}

/// The application's storage. A file is named by its number from [`begin`](Self::begin) on until it is finished or the transfer
/// has ended; several are under way at a time.
///
/// Whoever writes files of others to a disk should not write through links that are there.
pub trait Store {
    /// A file is to come; its path is [one that a file may have](crate::files::check_path), and comes once. Returns how many bytes of
    /// it are here from its beginning on, of an earlier attempt or an earlier version: they are read back, and all are fetched
    /// again if the SHA-256 is wrong in the end.
    ///
    /// # Errors
    /// [`StorageError`], which ends the transfer, as in the other methods.
    fn begin(&mut self, file: u32, entry: &Entry<'_>) -> Result<u64, StorageError>;

    /// Reads bytes back, as many as the buffer has.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError>;

    /// Writes bytes; not always in order where the protocol knows none.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError>;

    /// What is here of a file is wrong; everything will be written again, from the beginning on.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    fn discard(&mut self, file: u32) -> Result<(), StorageError>;

    /// How many bytes an older version of a file has that is here, and from which a patch may start. Asked where nothing of the
    /// file is here, or what is here is wrong. None unless the application can apply patches.
    fn base(&mut self, _file: u32) -> Option<u64> {
        None
    }

    /// Reads bytes of the older version, as many as the buffer has, from its beginning to its end: its SHA-256 names it to the
    /// sender.
    ///
    /// # Errors
    /// [`StorageError`], after which the file is fetched as if there were no older version.
    fn read_base(&mut self, _file: u32, _offset: u64, _buffer: &mut [u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }

    /// Writes bytes of a patch for a file, which is shorter than the file; not always in order where the protocol knows none.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    fn write_patch(&mut self, _file: u32, _offset: u64, _bytes: &[u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }

    /// All bytes of a patch are here: makes the file from it and the older version, about so many bytes of it, before other
    /// things have their time. Called again until the file is made, which is read back then.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    fn apply_patch(&mut self, _file: u32, _bytes: u64) -> Result<PatchStep, StorageError> {
        Ok(PatchStep::Worthless)
    }

    /// All bytes of a file are here, and their SHA-256 is right.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    fn finish(&mut self, file: u32) -> Result<(), StorageError>;
}

//! The storage interface of a receiver.

use crate::files::outcome::StorageError;
use crate::files::wire::Entry;

/// The progress of applying a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchStep {
    /// The file is not complete yet.
    Unfinished,
    /// The file is complete.
    Applied,
    /// The patch is unusable. The store has discarded the file, and the file is fetched in full.
    Invalid,
}

/// The application's storage for received files.
///
/// A file is identified by its number from [`begin`](Self::begin) until it is finished or the transfer has
/// ended. Several files are in progress at the same time. Implementations that write to a disk should not
/// follow existing links, because the remote peer chooses the paths.
pub trait Store {
    /// Starts a file. Returns how many of its first bytes are already present.
    ///
    /// The path is [allowed](crate::files::check_path) and unique. Existing bytes may come from an earlier
    /// attempt or an older version. They are read back, and if the SHA-256 does not match, the whole file is
    /// fetched again.
    ///
    /// # Errors
    /// Returns a [`StorageError`], which aborts the transfer. The other methods do the same.
    fn begin(&mut self, file: u32, entry: &Entry<'_>) -> Result<u64, StorageError>;

    /// Reads bytes back until the buffer is full.
    ///
    /// # Errors
    /// Returns the error of [`begin`](Self::begin).
    fn read(&mut self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError>;

    /// Writes bytes, not necessarily in order if the protocol is unordered.
    ///
    /// # Errors
    /// Returns the error of [`begin`](Self::begin).
    fn write(&mut self, file: u32, offset: u64, bytes: &[u8]) -> Result<(), StorageError>;

    /// Discards the stored bytes of a file because they are wrong. The whole file is then written again.
    ///
    /// # Errors
    /// Returns the error of [`begin`](Self::begin).
    fn discard(&mut self, file: u32) -> Result<(), StorageError>;

    /// Returns the size of an older version of a file to which a patch may apply.
    ///
    /// It is called if no bytes of the file are present, or only wrong bytes. The default returns `None`, for
    /// applications that cannot apply patches.
    fn base(&mut self, _file: u32) -> Option<u64> {
        None
    }

    /// Reads bytes of the older version until the buffer is full. The whole version is read once, because its
    /// SHA-256 identifies it to the sender.
    ///
    /// # Errors
    /// Returns a [`StorageError`], after which the whole file is fetched.
    fn read_base(&mut self, _file: u32, _offset: u64, _buffer: &mut [u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }

    /// Writes bytes of a patch for a file, not necessarily in order if the protocol is unordered. A patch is
    /// shorter than its file.
    ///
    /// # Errors
    /// Returns the error of [`begin`](Self::begin).
    fn write_patch(&mut self, _file: u32, _offset: u64, _bytes: &[u8]) -> Result<(), StorageError> {
        Err(StorageError)
    }

    /// Produces about `bytes` bytes of a file from its complete patch and the older version.
    ///
    /// It is called repeatedly until the file is complete, so that other work can run between the calls. The file is
    /// then read back.
    ///
    /// # Errors
    /// Returns the error of [`begin`](Self::begin).
    fn apply_patch(&mut self, _file: u32, _bytes: u64) -> Result<PatchStep, StorageError> {
        Ok(PatchStep::Invalid)
    }

    /// Finishes a file that is complete and has the correct SHA-256.
    ///
    /// # Errors
    /// Returns the error of [`begin`](Self::begin).
    fn finish(&mut self, file: u32) -> Result<(), StorageError>;
}

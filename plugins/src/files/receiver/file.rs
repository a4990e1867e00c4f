//! The state of a file being received: its requested and verified parts.

use sha2::{Digest, Sha256};

use crate::files::outcome::{Reason, StorageError};
use crate::files::wire::{BASE_LENGTH, DIGEST_LENGTH, Entry, Request};

use super::store::{PatchStep, Store};

/// The state of a file being received.
#[derive(Clone, Debug)]
pub(super) struct IncomingFile {
    pub(super) number: u32,
    pub(super) size: u64,
    digest: [u8; DIGEST_LENGTH],
    /// The number of bytes that were present before the transfer.
    pub(super) present: u64,
    /// The end offset of the bytes that are present or were requested.
    pub(super) requested: u64,
    hashed: u64,
    hasher: Sha256,
    pub(super) patch: Patch,
}

/// The state of patching a file, which is attempted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    /// Patching is attempted if an older version is present.
    Untried,
    /// The digest of the older version is being computed; `read` of its `size` bytes are done.
    Hashing { size: u64, read: u64 },
    /// A patch from the version with this digest should be requested.
    Wanted([u8; BASE_LENGTH]),
    /// The patch was requested, and no reply has arrived.
    AskedFor,
    /// The sender has a patch, and its bytes are being fetched.
    Fetching { number: u32, size: u64, requested: u64 },
    /// The patch is complete and is being applied.
    Applying,
    /// The file was produced from the patch.
    Applied,
    /// The file cannot be patched, or patching failed.
    Impossible,
}

/// The result of checking a file against its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// Some bytes have not arrived or have not been read back.
    Incomplete,
    Right,
    /// The digest does not match, and some bytes were present before the transfer.
    WrongAndOld,
    /// The digest does not match, and all bytes were received in this transfer.
    Wrong,
}

impl IncomingFile {
    pub(super) fn new(number: u32, entry: &Entry<'_>, present: u64) -> Self {
        let present = present.min(entry.size);
        Self {
            number,
            size: entry.size,
            digest: entry.digest,
            present,
            requested: present,
            hashed: 0,
            hasher: Sha256::new(),
            patch: Patch::Untried,
        }
    }

    /// Returns the initial state of the same file, without any bytes.
    pub(super) fn anew(&self) -> Self {
        let patch = if self.patch == Patch::Untried { Patch::Untried } else { Patch::Impossible };
        Self { present: 0, requested: 0, hashed: 0, hasher: Sha256::new(), patch, ..*self }
    }

    /// Looks for an older version if no bytes of the new one are present.
    pub(super) fn find_base<S: Store>(&mut self, store: &mut S) {
        if self.patch == Patch::Untried && self.present == 0 && self.size > 0 {
            let hashing = |size| Patch::Hashing { size, read: 0 };
            self.patch = store.base(self.number).map_or(Patch::Impossible, hashing);
        }
    }

    /// Reads at most `budget` bytes of the older version. Returns the remaining budget.
    pub(super) fn hash_base<S: Store>(&mut self, store: &mut S, buffer: &mut [u8], mut budget: u64) -> u64 {
        let Patch::Hashing { size, mut read } = self.patch else { return budget };
        while read < size && budget > 0 {
            let bytes = piece(buffer, (size - read).min(budget));
            if store.read_base(self.number, read, bytes).is_err() {
                (self.patch, self.hasher) = (Patch::Impossible, Sha256::new());
                return budget;
            }
            self.hasher.update(&*bytes);
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            (read, budget) = (read.saturating_add(length), budget.saturating_sub(length));
        }
        self.patch = Patch::Hashing { size, read };
        if read == size {
            let digest = core::mem::take(&mut self.hasher).finalize();
            self.patch = digest.first_chunk().copied().map_or(Patch::Impossible, Patch::Wanted);
        }
        budget
    }

    /// Handles the reply to a patch request: the number of the patch and its size, which is 0 if there is none.
    pub(super) fn on_patch(&mut self, number: u32, size: u64) {
        let is_worth_it = size > 0 && size < self.size;
        self.patch =
            if is_worth_it { Patch::Fetching { number, size, requested: 0 } } else { Patch::Impossible };
    }

    /// Applies more of the patch, producing about `bytes` bytes of the file.
    pub(super) fn apply_patch<S: Store>(&mut self, store: &mut S, bytes: u64) -> Result<(), StorageError> {
        match store.apply_patch(self.number, bytes)? {
            PatchStep::Unfinished => {}
            PatchStep::Applied => {
                self.patch = Patch::Applied;
                (self.present, self.requested) = (self.size, self.size);
            }
            PatchStep::Invalid => self.patch = Patch::Impossible,
        }
        Ok(())
    }

    /// Returns the next request for this file, for at most `chunk` bytes.
    pub(super) fn next_request(&self, number: u32, chunk: u32) -> Option<Request> {
        let (file, size, offset) = match self.patch {
            Patch::Wanted(base) => return Some(Request::FindPatch { number, file: self.number, base }),
            Patch::Hashing { .. } | Patch::AskedFor | Patch::Applying => return None,
            Patch::Fetching { number, size, requested } => (number, size, requested),
            Patch::Untried | Patch::Applied | Patch::Impossible => (self.number, self.size, self.requested),
        };
        let rest = size.checked_sub(offset).filter(|rest| *rest > 0)?;
        let length = u32::try_from(rest).unwrap_or(u32::MAX).min(chunk);
        Some(Request::Read { number, file, offset, length })
    }

    /// Records that the request of [`next_request`](Self::next_request) was sent.
    pub(super) fn on_requested(&mut self, end: u64) {
        match &mut self.patch {
            Patch::Wanted(_) => self.patch = Patch::AskedFor,
            Patch::Fetching { requested, .. } => *requested = end,
            Patch::Untried
            | Patch::Hashing { .. }
            | Patch::AskedFor
            | Patch::Applying
            | Patch::Applied
            | Patch::Impossible => self.requested = end,
        }
    }

    /// Returns true if the older version must be read or the patch applied.
    pub(super) const fn is_being_patched(&self) -> bool {
        matches!(self.patch, Patch::Hashing { .. } | Patch::Applying)
    }

    /// Returns true if bytes up to `stored` must be read back, or the file is complete.
    pub(super) const fn can_be_checked(&self, stored: u64) -> bool {
        self.hashed < stored || self.hashed == self.size
    }

    /// Reads back at most `budget` bytes up to `stored`. Returns the remaining budget. The digest is computed over
    /// bytes read back, so that it covers what the application has stored.
    pub(super) fn check<S: Store>(
        &mut self,
        store: &mut S,
        stored: u64,
        buffer: &mut [u8],
        mut budget: u64,
    ) -> Result<u64, Reason> {
        while self.hashed < stored && budget > 0 {
            let bytes = piece(buffer, (stored - self.hashed).min(budget));
            store.read(self.number, self.hashed, bytes).map_err(|StorageError| Reason::Storage)?;
            self.hasher.update(&*bytes);
            let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.hashed = self.hashed.saturating_add(read);
            budget = budget.saturating_sub(read);
        }
        Ok(budget)
    }

    pub(super) fn checked(&self) -> Checked {
        if self.hashed < self.size {
            return Checked::Incomplete;
        }
        if self.hasher.clone().finalize().as_slice() == self.digest.as_slice() {
            return Checked::Right;
        }
        if self.present > 0 { Checked::WrongAndOld } else { Checked::Wrong }
    }
}

/// Returns the first `length` bytes of the buffer, or all of it if it is shorter.
fn piece(buffer: &mut [u8], length: u64) -> &mut [u8] {
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
    buffer.get_mut(..length).unwrap_or_default()
}

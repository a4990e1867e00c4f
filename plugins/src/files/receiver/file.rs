//! A file on its way: what was asked for, and what was checked.

use sha2::{Digest, Sha256};

use crate::files::outcome::{Reason, StorageError};
use crate::files::wire::{DIGEST_LENGTH, Entry};

use super::store::Store;

/// What of a file is here, asked for and checked.
#[derive(Clone, Debug)]
pub(super) struct IncomingFile {
    pub(super) number: u32,
    pub(super) size: u64,
    digest: [u8; DIGEST_LENGTH],
    /// How many bytes were here before.
    pub(super) present: u64,
    /// Up to where bytes are here or were asked for.
    pub(super) requested: u64,
    hashed: u64,
    hasher: Sha256,
}

/// What is known of a file of which all bytes are here and were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// They are not all here, or were not all read yet.
    Incomplete,
    Right,
    /// They are wrong, and some of them were here before.
    WrongAndOld,
    /// They are wrong, and all came in this transfer.
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
        }
    }

    /// The same file without any of its bytes.
    pub(super) fn anew(&self) -> Self {
        Self { present: 0, requested: 0, hashed: 0, hasher: Sha256::new(), ..*self }
    }

    /// Whether bytes up to `stored` wait to be read, or it is complete.
    pub(super) const fn can_be_checked(&self, stored: u64) -> bool {
        self.hashed < stored || self.hashed == self.size
    }

    /// Reads what is here up to `stored` back, at most `budget` bytes, of which the rest is returned. So what the digest is of
    /// is what the application has stored.
    pub(super) fn check<S: Store>(
        &mut self,
        store: &mut S,
        stored: u64,
        buffer: &mut [u8],
        mut budget: u64,
    ) -> Result<u64, Reason> {
        while self.hashed < stored && budget > 0 {
            let length = (stored - self.hashed).min(budget);
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
            let bytes = buffer.get_mut(..length).unwrap_or_default();
            store.read(self.number, self.hashed, bytes).map_err(|StorageError| Reason::Storage)?;
            self.hasher.update(&*bytes);
            let read = u64::try_from(length).unwrap_or(u64::MAX);
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

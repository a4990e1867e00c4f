//! One transfer at the receiver.

use core::time::Duration;

use heapless::{Deque, Vec};
use rakwire::Instant;
use rakwire::endpoint::ConnectionId;

use super::file::{Checked, IncomingFile, Patch};
use super::store::Store;
use crate::files::outcome::{Progress, Reason, StorageError, Totals};
use crate::files::path::{MAX_PATH, check_path};
use crate::files::wire::{Entry, Page, Request};

/// The limits of a receiver. A transfer that exceeds one is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of files.
    pub files: u32,
    /// The maximum size of one file, in bytes.
    pub file_bytes: u64,
    /// The maximum size of all files, in bytes.
    pub bytes: u64,
    /// The maximum time without a reply from the sender while requests are open.
    pub timeout: Duration,
}

/// An open request about a file.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    number: u32,
    file: u32,
    what: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Bytes of the file.
    Bytes { offset: u64, length: u32 },
    /// A patch for the file.
    Patch,
    /// Bytes of the patch.
    PatchBytes { offset: u64, length: u32 },
}

/// A transfer from one connection, with up to `WINDOW` open requests for up to `AHEAD` files.
#[derive(Debug)]
pub(super) struct Transfer<const WINDOW: usize, const AHEAD: usize> {
    pub(super) id: ConnectionId,
    pub(super) progress: Progress,
    limits: Limits,
    /// The maximum number of bytes per request.
    chunk: u32,
    /// The maximum number of open requests.
    window: usize,
    /// The totals of the manifest pages received so far.
    listed: Totals,
    /// The last path in the manifest pages received so far.
    last_path: Vec<u8, MAX_PATH>,
    is_begun: bool,
    listing: Option<u32>,
    files: Deque<IncomingFile, AHEAD>,
    open: Vec<OpenRequest, WINDOW>,
    last_received_at: Option<Instant>,
    next_number: u32,
}

impl<const WINDOW: usize, const AHEAD: usize> Transfer<WINDOW, AHEAD> {
    /// `next_number` must differ from the numbers of earlier transfers, because their replies may still arrive.
    pub(super) fn new(id: ConnectionId, limits: Limits, chunk: u32, next_number: u32) -> Self {
        Self {
            id,
            progress: Progress::default(),
            limits,
            chunk,
            window: WINDOW,
            listed: Totals::default(),
            last_path: Vec::new(),
            is_begun: false,
            listing: None,
            files: Deque::new(),
            open: Vec::new(),
            last_received_at: None,
            next_number,
        }
    }

    pub(super) const fn next_number(&self) -> u32 {
        self.next_number
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_begun && self.listed.files == self.progress.total.files && self.files.is_empty()
    }

    fn is_waiting(&self) -> bool {
        self.listing.is_some() || !self.open.is_empty()
    }

    /// Returns the time at which the transfer times out.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.last_received_at
            .filter(|_| self.is_waiting())
            .map(|last_received_at| last_received_at + self.limits.timeout)
    }

    /// Handles a page of the manifest. Returns false if the page was not requested.
    pub(super) fn on_page<S: Store>(
        &mut self,
        now: Instant,
        store: &mut S,
        page: &Page<'_>,
    ) -> Result<bool, Reason> {
        if self.listing != Some(page.number) {
            return Ok(false);
        }
        (self.listing, self.last_received_at) = (None, Some(now));
        if !self.is_begun {
            self.on_first_page(page)?;
        }
        if page.totals != self.progress.total || page.first != self.listed.files {
            return Err(Reason::BadManifest);
        }
        for entry in page.entries {
            self.on_entry(store, &entry)?;
        }
        let is_last = self.listed.files == page.totals.files;
        // The receiver would request an empty page again and again.
        let is_empty = page.first == self.listed.files;
        if (is_empty && !is_last) || (is_last && self.listed.bytes != page.totals.bytes) {
            return Err(Reason::BadManifest);
        }
        Ok(true)
    }

    fn on_first_page(&mut self, page: &Page<'_>) -> Result<(), Reason> {
        if page.totals.files > self.limits.files {
            return Err(Reason::TooManyFiles);
        }
        if page.totals.bytes > self.limits.bytes {
            return Err(Reason::TooManyBytes);
        }
        if page.chunk == 0 || page.window == 0 {
            return Err(Reason::BadMessage);
        }
        self.is_begun = true;
        self.progress.total = page.totals;
        self.chunk = self.chunk.min(page.chunk);
        self.window = self.window.min(page.window.into());
        Ok(())
    }

    fn on_entry<S: Store>(&mut self, store: &mut S, entry: &Entry<'_>) -> Result<(), Reason> {
        let number = self.listed.files;
        check_path(entry.path).ok_or(Reason::BadPath)?;
        // Strictly ascending paths contain no duplicates.
        let is_in_order = number == 0 || self.last_path.as_slice() < entry.path;
        let bytes = self.listed.bytes.checked_add(entry.size).ok_or(Reason::BadManifest)?;
        if !is_in_order || number >= self.progress.total.files || bytes > self.progress.total.bytes {
            return Err(Reason::BadManifest);
        }
        if entry.size > self.limits.file_bytes {
            return Err(Reason::FileTooLong);
        }
        if self.files.is_full() {
            return Err(Reason::BadMessage);
        }
        self.last_path.clear();
        self.last_path.extend_from_slice(entry.path).map_err(|_| Reason::BadPath)?;
        self.listed = Totals { files: number.saturating_add(1), bytes };
        let present = store.begin(number, entry).map_err(|StorageError| Reason::Storage)?;
        let mut file = IncomingFile::new(number, entry, present);
        file.find_base(store);
        self.progress.done.bytes = self.progress.done.bytes.saturating_add(file.present);
        self.files.push_back(file).map_err(|_| Reason::BadMessage)
    }

    /// Handles bytes of a file. Returns false if the bytes were not requested.
    pub(super) fn on_data<S: Store>(
        &mut self,
        now: Instant,
        store: &mut S,
        number: u32,
        bytes: &[u8],
    ) -> Result<bool, Reason> {
        let Some(OpenRequest { file, what, .. }) = self.on_answer(now, number) else { return Ok(false) };
        let (Asked::Bytes { offset, length } | Asked::PatchBytes { offset, length }) = what else {
            return Err(Reason::BadMessage);
        };
        if u32::try_from(bytes.len()) != Ok(length) {
            return Err(Reason::BadMessage);
        }
        self.progress.received = self.progress.received.saturating_add(length.into());
        let stored = if matches!(what, Asked::PatchBytes { .. }) {
            self.begin_to_patch(file);
            store.write_patch(file, offset, bytes)
        } else {
            self.progress.done.bytes = self.progress.done.bytes.saturating_add(length.into());
            store.write(file, offset, bytes)
        };
        stored.map_err(|StorageError| Reason::Storage)?;
        Ok(true)
    }

    /// Removes and returns the open request with this number; `None` if there is none.
    fn on_answer(&mut self, now: Instant, number: u32) -> Option<OpenRequest> {
        let at = self.open.iter().position(|open| open.number == number)?;
        self.last_received_at = Some(now);
        Some(self.open.remove(at))
    }

    /// Handles the reply to a patch request. Returns false if the reply was not requested.
    pub(super) fn on_patch(
        &mut self,
        now: Instant,
        number: u32,
        patch: u32,
        size: u64,
    ) -> Result<bool, Reason> {
        let Some(OpenRequest { file, what, .. }) = self.on_answer(now, number) else { return Ok(false) };
        let is_beyond_files = size == 0 || patch >= self.progress.total.files;
        if what != Asked::Patch || !is_beyond_files {
            return Err(Reason::BadMessage);
        }
        if let Some(file) = self.files.iter_mut().find(|other| other.number == file) {
            file.on_patch(patch, size);
        }
        Ok(true)
    }

    /// Starts applying the patch of a file if the patch is complete.
    fn begin_to_patch(&mut self, number: u32) {
        let Some(file) = self.files.iter_mut().find(|other| other.number == number) else { return };
        let Patch::Fetching { size, requested, .. } = file.patch else { return };
        if requested == size && self.open.iter().all(|open| open.file != number) {
            file.patch = Patch::Applying;
        }
    }

    /// Returns the length of the contiguous start of the first file.
    fn stored(&self, first: &IncomingFile) -> u64 {
        let open = self.open.iter().filter(|open| open.file == first.number);
        let offsets = open.filter_map(|open| match open.what {
            Asked::Bytes { offset, .. } => Some(offset),
            Asked::Patch | Asked::PatchBytes { .. } => None,
        });
        offsets.min().unwrap_or(first.requested)
    }

    /// Returns true if bytes must be verified, patches applied or older versions read.
    pub(super) fn can_be_checked(&self) -> bool {
        self.files.front().is_some_and(|first| first.can_be_checked(self.stored(first)))
            || self.files.iter().any(IncomingFile::is_being_patched)
    }

    /// Applies about `budget` bytes of patches to the next file with a complete patch. Returns the remaining budget.
    pub(super) fn apply_patches<S: Store>(&mut self, store: &mut S, budget: u64) -> Result<u64, Reason> {
        let file = self.files.iter_mut().find(|file| file.patch == Patch::Applying);
        let Some(file) = file.filter(|_| budget > 0) else { return Ok(budget) };
        file.apply_patch(store, budget).map_err(|StorageError| Reason::Storage)?;
        if file.patch == Patch::Applied {
            self.progress.done.bytes = self.progress.done.bytes.saturating_add(file.present);
        }
        Ok(0)
    }

    /// Reads at most `budget` bytes of older versions, in the order of the files.
    pub(super) fn hash_bases<S: Store>(&mut self, store: &mut S, buffer: &mut [u8], mut budget: u64) {
        for file in &mut self.files {
            if budget == 0 {
                return;
            }
            budget = file.hash_base(store, buffer, budget);
        }
    }

    /// Reads back at most `budget` bytes, and finishes complete files. Returns true if a file was finished,
    /// and the remaining budget.
    pub(super) fn check<S: Store>(
        &mut self,
        store: &mut S,
        buffer: &mut [u8],
        mut budget: u64,
    ) -> Result<(bool, u64), Reason> {
        let mut is_finished = false;
        while let Some(stored) = self.files.front().map(|first| self.stored(first)) {
            let Some(first) = self.files.front_mut() else { break };
            budget = first.check(store, stored, buffer, budget)?;
            match first.checked() {
                Checked::Incomplete => break,
                Checked::Wrong => return Err(Reason::BadDigest),
                Checked::WrongAndOld => {
                    store.discard(first.number).map_err(|StorageError| Reason::Storage)?;
                    self.progress.done.bytes = self.progress.done.bytes.saturating_sub(first.size);
                    *first = first.anew();
                    first.find_base(store);
                }
                Checked::Right => {
                    store.finish(first.number).map_err(|StorageError| Reason::Storage)?;
                    let is_patched = first.patch == Patch::Applied;
                    let is_unchanged = first.present == first.size && !is_patched;
                    self.progress.done.files = self.progress.done.files.saturating_add(1);
                    self.progress.patched = self.progress.patched.saturating_add(u32::from(is_patched));
                    self.progress.unchanged = self.progress.unchanged.saturating_add(u32::from(is_unchanged));
                    self.files.pop_front();
                    is_finished = true;
                }
            }
        }
        Ok((is_finished, budget))
    }

    /// Returns the next request. Requests for the manifest come first, so that there are always files to request.
    pub(super) fn next_request(&self) -> Option<Request> {
        let room = AHEAD.saturating_sub(self.files.len());
        let is_listed = self.is_begun && self.listed.files == self.progress.total.files;
        if !is_listed && self.listing.is_none() && room > 0 {
            let count = u16::try_from(room).unwrap_or(u16::MAX);
            return Some(Request::List { number: self.next_number, first: self.listed.files, count });
        }
        if self.open.len() >= self.window {
            return None;
        }
        self.files.iter().find_map(|file| file.next_request(self.next_number, self.chunk))
    }

    /// Records that the request was sent.
    pub(super) fn on_requested(&mut self, now: Instant, request: Request) {
        if !self.is_waiting() {
            self.last_received_at = Some(now);
        }
        self.next_number = self.next_number.wrapping_add(1);
        match request {
            Request::List { number, .. } => self.listing = Some(number),
            Request::Read { number, offset, length, .. } => {
                self.on_requested_of_file(number, offset.saturating_add(length.into()), |patch| {
                    if matches!(patch, Patch::Fetching { .. }) {
                        Asked::PatchBytes { offset, length }
                    } else {
                        Asked::Bytes { offset, length }
                    }
                });
            }
            Request::FindPatch { number, .. } => self.on_requested_of_file(number, 0, |_| Asked::Patch),
            Request::Done | Request::Failed(_) => {}
        }
    }

    /// Records that a request of [`next_request`](Self::next_request) about a file was sent.
    fn on_requested_of_file(&mut self, number: u32, end: u64, what: impl Fn(Patch) -> Asked) {
        let chunk = self.chunk;
        let file = self.files.iter_mut().find(|file| file.next_request(number, chunk).is_some());
        let Some(file) = file else { return };
        let open = OpenRequest { number, file: file.number, what: what(file.patch) };
        file.on_requested(end);
        // This cannot fail: requests are only created while there is capacity.
        let _ = self.open.push(open);
    }
}

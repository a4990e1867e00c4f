//! The last lines of what a program did.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use rakwire_udp::printable;

use super::cut::cut;

const NOTES: usize = 64;
const LONGEST: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<VecDeque<(SystemTime, String)>>);

impl Notes {
    /// A line stays one, whatever players put into it.
    pub(super) fn push(&self, at: SystemTime, line: &str) {
        let line = printable(cut(line, LONGEST));
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() == NOTES {
            notes.pop_front();
        }
        notes.push_back((at, line));
    }

    /// The oldest first; none if the lock is held, perhaps by the thread that panics.
    pub(super) fn copy(&self) -> Vec<(SystemTime, String)> {
        match self.0.try_lock() {
            Ok(notes) => notes.iter().cloned().collect(),
            Err(TryLockError::Poisoned(notes)) => notes.into_inner().iter().cloned().collect(),
            Err(TryLockError::WouldBlock) => Vec::new(),
        }
    }
}

//! The thread that writes to the database.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::database::{self, SqliteLogError};
use super::record::{Record, since_1970};

/// Maximum number of records per transaction: enough to make the cost of a transaction negligible.
const BATCH: usize = 4_096;

/// State of the writing thread that the handles of a log read.
#[derive(Debug)]
pub(super) struct Progress {
    path: PathBuf,
    missed: AtomicU64,
    failure: Mutex<Option<SqliteLogError>>,
}

impl Progress {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), missed: AtomicU64::new(0), failure: Mutex::new(None) }
    }

    pub(super) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    pub(super) fn failure(&self) -> Option<SqliteLogError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, error: &rusqlite::Error) {
        let error = SqliteLogError::new(&self.path, error);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Writes records into a database until a write fails.
pub(super) struct Writer {
    /// `None` after a failure.
    database: Option<Connection>,
    progress: Arc<Progress>,
    max_rows: u64,
    /// The number of missed records that has been written to the file.
    reported: u64,
}

impl Writer {
    pub(super) const fn new(database: Connection, progress: Arc<Progress>, max_rows: u64) -> Self {
        Self { database: Some(database), progress, max_rows, reported: 0 }
    }

    /// Runs until the last sender is dropped.
    pub(super) fn run(mut self, records: Receiver<Record>) {
        while let Ok(first) = records.recv() {
            let (mut batch, mut flushes) = (Vec::new(), Vec::new());
            for record in std::iter::once(first).chain(records.try_iter()).take(BATCH) {
                match record {
                    Record::Flush(done) => flushes.push(done),
                    record @ (Record::Datagram(_) | Record::Samples(_)) => batch.push(record),
                }
            }
            self.write(&batch);
            flushes.iter().for_each(answer);
        }
    }

    fn write(&mut self, batch: &[Record]) {
        let missed = self.progress.missed();
        let result = self
            .database
            .as_mut()
            .map(|database| commit(database, batch, missed - self.reported, self.max_rows));
        match result {
            Some(Ok(())) => self.reported = missed,
            Some(Err(error)) => {
                self.progress.fail(&error);
                self.database = None;
                batch.iter().for_each(|_| self.progress.miss());
            }
            None => batch.iter().for_each(|_| self.progress.miss()),
        }
    }
}

fn commit(database: &mut Connection, batch: &[Record], missed: u64, max_rows: u64) -> rusqlite::Result<()> {
    let transaction = database.transaction()?;
    for record in batch {
        match record {
            Record::Datagram(datagram) => database::insert_datagram(&transaction, datagram)?,
            Record::Samples(samples) => database::insert_samples(&transaction, samples)?,
            Record::Flush(_) => {}
        }
    }
    if missed > 0 {
        database::insert_gap(&transaction, since_1970(), missed)?;
    }
    database::delete_oldest(&transaction, max_rows)?;
    transaction.commit()
}

/// Notifies a task that waits for a flush, which may have been cancelled.
fn answer(done: &SyncSender<()>) {
    let _ = done.try_send(());
}

//! Reports of panics: a file for each, and email if somebody is to be told (feature `crash-report`, for email `crash-email`).
//!
//! A report has the program and its version, the time, the thread, the message and place of the panic, a backtrace and the last
//! [notes](CrashReports::note). On Unix only its owner may read it. A run writes at most [`MAX_REPORTS`]; panics after that
//! are counted, so that a fault which players can repeat does not fill the disk.
//!
//! ```
//! use rakwire_native::crash_report::CrashReports;
//!
//! # fn main() -> std::io::Result<()> {
//! # let folder = std::env::temp_dir().join(format!("rakwire-doc-crash-{}", std::process::id()));
//! let reports = CrashReports::install(&folder, "my-server", env!("CARGO_PKG_VERSION"))?;
//! reports.note("the map is \"castle\"");
//! let failed = std::thread::spawn(|| panic!("no more snow")).join();
//! assert!(failed.is_err());
//!
//! let report = std::fs::read_to_string(&reports.unsent()?[0])?;
//! assert!(report.contains("no more snow") && report.contains("the map is \"castle\""));
//! # std::fs::remove_dir_all(&folder)
//! # }
//! ```

mod cut;
#[cfg(feature = "crash-email")]
mod email;
mod folder;
mod notes;
mod report;

use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use std::{fmt, io};

use folder::Folder;
use notes::Notes;
use report::Report;

#[cfg(feature = "crash-email")]
pub use email::{CrashEmail, CrashEmailError};
#[cfg(feature = "crash-email")]
pub use report::MAX_EMAIL;

/// How many reports a run of a program writes.
pub const MAX_REPORTS: u32 = 20;

/// The reports of a program. A clone is another handle.
#[derive(Clone, Debug)]
pub struct CrashReports(Arc<Shared>);

struct Shared {
    folder: Folder,
    program: String,
    version: String,
    notes: Notes,
    written: AtomicU32,
    suppressed: AtomicU64,
    /// Told of new reports.
    listener: Mutex<Option<SyncSender<()>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("program", &self.program).finish_non_exhaustive()
    }
}

impl CrashReports {
    /// From now on every panic of this process writes a report into `folder`, which is made if need be, and is then handled as
    /// before. `program` is the beginning of the names of the files: letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// If the folder cannot be made or no file can be written into it, or `program` has another character or none.
    pub fn install(folder: impl AsRef<Path>, program: &str, version: &str) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            folder: Folder::open(folder.as_ref(), program)?,
            program: program.to_owned(),
            version: version.to_owned(),
            notes: Notes::default(),
            written: AtomicU32::new(0),
            suppressed: AtomicU64::new(0),
            listener: Mutex::new(None),
        });
        let (reporting, previous) = (Arc::clone(&shared), panic::take_hook());
        panic::set_hook(Box::new(move |panic| {
            reporting.report(panic);
            previous(panic);
        }));
        Ok(Self(shared))
    }

    /// Keeps a line for the next reports, which have the last 64: what a server did, or its statistics. Lines are cut at 1,000
    /// bytes. No secrets: reports are read by others, and may travel by email.
    pub fn note(&self, line: impl AsRef<str>) {
        self.0.notes.push(SystemTime::now(), line.as_ref());
    }

    /// The reports that nobody has sent, also those of earlier runs, the oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn unsent(&self) -> io::Result<Vec<PathBuf>> {
        self.0.folder.unsent()
    }

    /// Marks a report as sent: renames it from `NAME.crash.txt` to `NAME.sent.txt`.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn mark_as_sent(&self, report: &Path) -> io::Result<()> {
        self.0.folder.mark_as_sent(report)
    }

    /// The panics without a report: above [`MAX_REPORTS`], or the file could not be written.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        self.0.suppressed.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Must not panic, and takes no lock that the thread which panicked may hold.
    fn report(&self, panic: &PanicHookInfo<'_>) {
        let number = self.written.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |written| {
            (written < MAX_REPORTS).then_some(written + 1)
        });
        let report = Report::new(&self.program, &self.version, panic, &self.notes);
        let written = number.is_ok_and(|number| self.folder.write(number, &report).is_ok());
        if !written {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if let Ok(listener) = self.listener.try_lock() {
            // Who listens reads the folder, so that one word is enough for several reports.
            let _ = listener.as_ref().map(|listener| listener.try_send(()));
        }
    }

    #[cfg_attr(not(feature = "crash-email"), expect(dead_code))]
    fn listen(&self, listener: SyncSender<()>) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }
}

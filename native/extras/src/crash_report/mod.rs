//! Reports of panics: one file each, optionally sent by email (feature `crash-report`, for email `crash-email`).
//!
//! A report contains the program and its version, the time, the thread, the message and location of the panic, a
//! backtrace and the latest [notes](CrashReports::note). On Unix only its owner may read it. A run of a program writes
//! at most [`MAX_REPORTS`]. Further panics are only counted, so that a fault that players can repeat does not fill the
//! disk.
//!
//! ```
//! use rakwire_extras::crash_report::CrashReports;
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

#[cfg(feature = "crash-email")]
mod email;

use std::backtrace::Backtrace;
use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::panic::{self, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use humantime::{format_rfc3339_millis, format_rfc3339_seconds};
use rakwire_udp::{printable, private_file};

#[cfg(feature = "crash-email")]
pub use email::{CrashEmail, CrashEmailError};

/// Maximum number of reports that a run of a program writes.
pub const MAX_REPORTS: u32 = 20;

/// Maximum length of a report in an email, in bytes. Longer reports are cut; the file is complete.
#[cfg(feature = "crash-email")]
pub const MAX_EMAIL: usize = 200_000;

/// The crash reports of a program. A clone is another handle.
#[derive(Clone, Debug)]
pub struct CrashReports(Arc<Shared>);

struct Shared {
    folder: Folder,
    program: String,
    version: String,
    notes: Notes,
    written: AtomicU32,
    suppressed: AtomicU64,
    /// Notified of new reports.
    listener: Mutex<Option<SyncSender<()>>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("program", &self.program).finish_non_exhaustive()
    }
}

impl CrashReports {
    /// Installs a panic hook: every further panic of this process writes a report into `folder`, and is then handled as
    /// usual.
    ///
    /// The folder is created if necessary. `program` is the prefix of the file names: letters, digits, `-` and `_`.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or written to, or `program` is empty or contains another
    /// character.
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

    /// Adds a line to the notes. A report contains the last 64 notes before its panic.
    ///
    /// Typical notes are actions of a server, or its statistics. Lines are cut at 1,000 bytes. Do not include secrets:
    /// reports are read by other people, and may be sent by email.
    pub fn note(&self, line: impl AsRef<str>) {
        self.0.notes.push(SystemTime::now(), line.as_ref());
    }

    /// Returns the reports that have not been sent, including those of earlier runs, oldest first.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn unsent(&self) -> io::Result<Vec<PathBuf>> {
        self.0.folder.unsent()
    }

    /// Marks a report as sent: renames it from `NAME.crash.txt` to `NAME.sent.txt`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be renamed.
    pub fn mark_as_sent(&self, report: &Path) -> io::Result<()> {
        self.0.folder.mark_as_sent(report)
    }

    /// Returns the number of panics without a report: those beyond [`MAX_REPORTS`], and those for which the file could
    /// not be written.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        self.0.suppressed.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Writes the report of a panic. Must not panic, and takes no lock that the panicking thread may hold.
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
            // The listener reads the whole folder, so one notification is enough for several reports.
            let _ = listener.as_ref().map(|listener| listener.try_send(()));
        }
    }

    #[cfg_attr(not(feature = "crash-email"), expect(dead_code))]
    fn listen(&self, listener: SyncSender<()>) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }
}

/// Maximum length of a panic's message in bytes. A limit is needed because a message may contain data from players.
const LONGEST_MESSAGE: usize = 10_000;

struct Report<'a> {
    program: &'a str,
    version: &'a str,
    panic: &'a PanicHookInfo<'a>,
    at: SystemTime,
    backtrace: Backtrace,
    notes: Vec<(SystemTime, String)>,
}

impl<'a> Report<'a> {
    fn new(program: &'a str, version: &'a str, panic: &'a PanicHookInfo<'a>, notes: &Notes) -> Self {
        let (at, backtrace) = (SystemTime::now(), Backtrace::force_capture());
        Self { program, version, panic, at, backtrace, notes: notes.copy() }
    }

    const fn at(&self) -> SystemTime {
        self.at
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thread = std::thread::current();
        writeln!(f, "program:  {} {}", self.program, self.version)?;
        writeln!(f, "time:     {}", format_rfc3339_millis(self.at))?;
        writeln!(f, "system:   {} {}", std::env::consts::OS, std::env::consts::ARCH)?;
        writeln!(f, "process:  {}", std::process::id())?;
        writeln!(f, "thread:   {}", thread.name().unwrap_or("without a name"))?;
        match self.panic.location() {
            Some(place) => writeln!(f, "place:    {place}")?,
            None => writeln!(f, "place:    unknown")?,
        }
        // The indentation separates the lines of the message from those of the report, whatever players put into the
        // message.
        let lines = cut(message(self.panic), LONGEST_MESSAGE).lines().map(printable);
        writeln!(f, "message:  {}", lines.collect::<Vec<_>>().join("\n          "))?;
        writeln!(f, "\nlast notes:")?;
        for (at, line) in &self.notes {
            writeln!(f, "  {} {line}", format_rfc3339_seconds(*at))?;
        }
        writeln!(f, "\nbacktrace:\n{}", self.backtrace)
    }
}

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("not text")
}

const NOTES: usize = 64;
const LONGEST: usize = 1_000;

#[derive(Debug, Default)]
struct Notes(Mutex<VecDeque<(SystemTime, String)>>);

impl Notes {
    /// Escapes line breaks, so that a note stays on one line, whatever players put into it.
    fn push(&self, at: SystemTime, line: &str) {
        let line = printable(cut(line, LONGEST));
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() == NOTES {
            notes.pop_front();
        }
        notes.push_back((at, line));
    }

    /// Copies the notes, oldest first. Returns no notes if the lock is held, perhaps by the panicking thread.
    fn copy(&self) -> Vec<(SystemTime, String)> {
        match self.0.try_lock() {
            Ok(notes) => notes.iter().cloned().collect(),
            Err(TryLockError::Poisoned(notes)) => notes.into_inner().iter().cloned().collect(),
            Err(TryLockError::WouldBlock) => Vec::new(),
        }
    }
}

const UNSENT: &str = ".crash.txt";
const SENT: &str = ".sent.txt";

struct Folder {
    path: PathBuf,
    program: String,
}

impl Folder {
    /// Opens the folder, creates it if necessary, and checks that it is writable.
    fn open(path: &Path, program: &str) -> io::Result<Self> {
        let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        if program.is_empty() || !program.chars().all(fits) {
            let reason =
                format!("the program name {program:?} cannot be a file name; use letters, digits, - and _");
            return Err(io::Error::new(ErrorKind::InvalidInput, reason));
        }
        fs::create_dir_all(path)?;
        let folder = Self { path: path.to_owned(), program: program.to_owned() };
        let probe = folder.path.join(format!("{program}-{}.probe", std::process::id()));
        private_file::create_new(&probe)?;
        fs::remove_file(probe)?;
        Ok(folder)
    }

    fn write(&self, number: u32, report: &Report<'_>) -> io::Result<()> {
        // Windows does not allow colons in file names.
        let time = format_rfc3339_seconds(report.at()).to_string().replace(':', "");
        let name = format!("{}-{time}-{}-{number:02}{UNSENT}", self.program, std::process::id());
        let mut file = private_file::create_new(self.path.join(name))?;
        file.write_all(report.to_string().as_bytes())?;
        file.sync_all()
    }

    /// Returns the unsent reports, sorted by name, which begins with the time.
    fn unsent(&self) -> io::Result<Vec<PathBuf>> {
        let begin = format!("{}-", self.program);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| name.starts_with(&begin) && name.ends_with(UNSENT)) {
                found.push(self.path.join(name));
            }
        }
        found.sort();
        Ok(found)
    }

    #[expect(clippy::unused_self, reason = "a report of this folder")]
    fn mark_as_sent(&self, report: &Path) -> io::Result<()> {
        let name =
            report.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(UNSENT));
        let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not an unsent report"))?;
        fs::rename(report, report.with_file_name(format!("{name}{SENT}")))
    }
}

/// Returns the beginning of a text, at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most).rev().find_map(|end| text.get(..end));
    if text.len() <= most { text } else { end.unwrap_or("") }
}

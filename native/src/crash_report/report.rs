//! What a report says.

use std::backtrace::Backtrace;
use std::fmt;
use std::panic::PanicHookInfo;
use std::time::SystemTime;

use humantime::{format_rfc3339_millis, format_rfc3339_seconds};
use rakwire_udp::printable;

use super::cut::cut;
use super::notes::Notes;

/// A report by email is cut at this length in bytes; the file is whole.
#[cfg(feature = "crash-email")]
pub const MAX_EMAIL: usize = 200_000;

/// In bytes: a message may contain all that a player sent.
const LONGEST_MESSAGE: usize = 10_000;

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}

pub(super) struct Report<'a> {
    program: &'a str,
    version: &'a str,
    panic: &'a PanicHookInfo<'a>,
    at: SystemTime,
    backtrace: Backtrace,
    notes: Vec<(SystemTime, String)>,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        program: &'a str,
        version: &'a str,
        panic: &'a PanicHookInfo<'a>,
        notes: &Notes,
    ) -> Self {
        let (at, backtrace) = (SystemTime::now(), Backtrace::force_capture());
        Self { program, version, panic, at, backtrace, notes: notes.copy() }
    }

    pub(super) const fn at(&self) -> SystemTime {
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
        // Its lines are told from those of the report by the space before them, whatever players put into it.
        let lines = cut(message(self.panic), LONGEST_MESSAGE).lines().map(printable);
        writeln!(f, "message:  {}", lines.collect::<Vec<_>>().join("\n          "))?;
        writeln!(f, "\nlast notes:")?;
        for (at, line) in &self.notes {
            writeln!(f, "  {} {line}", format_rfc3339_seconds(*at))?;
        }
        writeln!(f, "\nbacktrace:\n{}", self.backtrace)
    }
}

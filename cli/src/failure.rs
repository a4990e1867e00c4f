//! Failures of the program: one line that describes the fix, and an exit status.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// A failure that stops the program.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The line to print; `None` if another program has printed the reason.
    line: Option<String>,
    status: u8,
}

impl Failure {
    /// Creates the failure of an operation.
    pub(crate) fn runtime(line: impl Display) -> Self {
        Self::new(line, 1)
    }

    /// Creates a failure for invalid arguments: wrong options, addresses or ports.
    pub(crate) fn usage(line: impl Display) -> Self {
        Self::new(line, 2)
    }

    fn new(line: impl Display, status: u8) -> Self {
        Self { line: Some(line.to_string()), status }
    }

    /// Creates the failure of another program, which has printed its reason.
    pub(crate) const fn reported(status: u8) -> Self {
        Self { line: None, status }
    }

    /// Prints the line and returns the exit status. A failure to print is ignored.
    pub(crate) fn report(&self) -> ExitCode {
        if let Some(line) = &self.line {
            let _ = writeln!(io::stderr(), "error: {line}");
        }
        ExitCode::from(self.status)
    }
}

/// Writes to standard output and flushes it. A broken pipe is not a failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::runtime(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

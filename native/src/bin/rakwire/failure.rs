//! How the program fails: one line that says what to do, and an exit status.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why the program ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    line: String,
    status: u8,
}

impl Failure {
    /// What was asked for was tried and did not work.
    pub(crate) fn runtime(line: impl Display) -> Self {
        Self::new(line, 1)
    }

    /// What was asked for can never work: wrong arguments, addresses or ports.
    pub(crate) fn usage(line: impl Display) -> Self {
        Self::new(line, 2)
    }

    fn new(line: impl Display, status: u8) -> Self {
        Self { line: line.to_string(), status }
    }

    /// Says what is wrong and gives the exit status. When nobody listens, the status says enough.
    pub(crate) fn report(&self) -> ExitCode {
        let _ = writeln!(io::stderr(), "error: {}", self.line);
        ExitCode::from(self.status)
    }
}

/// Writes to the standard output, at once. A reader who went away wants no more: that is no failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::runtime(format!("cannot write to the standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

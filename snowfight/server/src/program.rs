//! Error reporting, output and signal handling, shared by the programs.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// The length of the queue of lines.
const LINES: usize = 16;

/// The failure of a program: an error line with a hint, and an exit status.
#[derive(Debug)]
pub struct Failure {
    line: String,
    status: u8,
}

impl Failure {
    /// Creates a runtime failure, with exit status 1.
    #[must_use]
    pub fn runtime(line: impl Display) -> Self {
        Self { line: line.to_string(), status: 1 }
    }

    /// Creates a failure for invalid arguments, with exit status 2.
    #[must_use]
    pub fn usage(line: impl Display) -> Self {
        Self { line: line.to_string(), status: 2 }
    }

    /// Prints the error to standard error and returns the exit status.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        // If standard error is closed, the error cannot be reported.
        let _ = writeln!(io::stderr(), "error: {}", self.line);
        ExitCode::from(self.status)
    }
}

/// Writes a line to standard output and flushes it. A broken pipe is not a failure.
///
/// # Errors
/// Returns a failure if writing fails for another reason.
pub fn print(line: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::runtime(format!("cannot write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints lines from its own thread, so that a stalled reader does not block the program. If 16 lines are queued,
/// further lines are dropped.
///
/// ```
/// let mut printer = snowfight_server::program::Printer::start()?;
/// printer.offer(format_args!("{} players", 3));
/// assert_eq!(printer.dropped(), 0);
/// # Ok::<(), snowfight_server::program::Failure>(())
/// ```
#[derive(Debug)]
pub struct Printer {
    lines: SyncSender<String>,
    dropped: u64,
}

impl Printer {
    /// Starts a printer to standard output.
    ///
    /// # Errors
    /// Returns a failure if the thread cannot be started.
    pub fn start() -> Result<Self, Failure> {
        Self::writing(|line| {
            // A line that cannot be written is dropped.
            let _ = print(line);
        })
    }

    fn writing(mut write: impl FnMut(String) + Send + 'static) -> Result<Self, Failure> {
        let (lines, waiting) = sync_channel(LINES);
        let work = move || waiting.into_iter().for_each(&mut write);
        let thread = thread::Builder::new().name("printer".into()).spawn(work);
        thread.map_err(|error| Failure::runtime(format!("cannot start a thread: {error}")))?;
        Ok(Self { lines, dropped: 0 })
    }

    /// Queues a line, or drops it if the queue is full.
    pub fn offer(&mut self, line: impl Display) {
        self.dropped += u64::from(self.lines.try_send(line.to_string()).is_err());
    }

    /// Returns the number of dropped lines.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Parses the command line.
///
/// # Errors
/// Returns the error as one line if the arguments are invalid. `--help` and `--version` print and exit.
pub fn parse<A: clap::Parser>() -> Result<A, Failure> {
    use clap::error::ErrorKind;
    A::try_parse().map_err(|error| {
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            error.exit();
        }
        let text = error.to_string();
        let lines = text.lines().take_while(|line| !line.is_empty());
        let line = lines.map(str::trim).collect::<Vec<_>>().join(" ");
        Failure::usage(format!("{}; see --help", line.trim_start_matches("error: ")))
    })
}

/// Runs a future on a multi-threaded runtime.
///
/// # Errors
/// Returns a failure if the runtime cannot be started, or the failure of the future.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::runtime(format!("cannot start: {error}")))?.block_on(future)
}

/// Returns a future that completes on Ctrl-C or a termination signal. The signals are caught from this call on.
///
/// # Errors
/// Returns a failure if the signal handlers cannot be installed.
pub fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let cannot = |error| Failure::runtime(format!("cannot wait for signals: {error}"));
    #[cfg(unix)]
    let (mut first, mut second) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::terminate()).map_err(cannot)?, signal(SignalKind::interrupt()).map_err(cannot)?)
    };
    #[cfg(windows)]
    let (mut first, mut second) = (
        tokio::signal::windows::ctrl_close().map_err(cannot)?,
        tokio::signal::windows::ctrl_c().map_err(cannot)?,
    );
    Ok(async move {
        tokio::select! {
            _ = first.recv() => {}
            _ = second.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn stalled_reader_does_not_block_the_program() {
        let (begun, begins) = channel();
        let (resume, stall) = channel::<()>();
        let mut printer = Printer::writing(move |line| {
            begun.send(line).unwrap();
            let _ = stall.recv();
        })
        .unwrap();
        printer.offer("first");
        assert_eq!(begins.recv().unwrap(), "first");
        (0..100).for_each(|number| printer.offer(number));
        assert_eq!(printer.dropped(), 100 - LINES as u64);
        drop(resume);
        let rest: Vec<_> = begins.iter().take(LINES).collect();
        assert_eq!(rest, (0..LINES).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

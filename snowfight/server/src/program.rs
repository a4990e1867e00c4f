//! What the programs have in common: how they fail, and when they end.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// Lines that wait for whoever reads them.
const LINES: usize = 16;

/// Why a program ends without success: one line that says what to do, and an exit status.
///
/// ```
/// use snowfight_server::program::Failure;
///
/// let _status: std::process::ExitCode = Failure::usage("give --listen ADDR:PORT").report();
/// ```
#[derive(Debug)]
pub struct Failure {
    line: String,
    status: u8,
}

impl Failure {
    /// What was asked for was tried and did not work: exit status 1.
    #[must_use]
    pub fn runtime(line: impl Display) -> Self {
        Self { line: line.to_string(), status: 1 }
    }

    /// What was asked for can never work: exit status 2.
    #[must_use]
    pub fn usage(line: impl Display) -> Self {
        Self { line: line.to_string(), status: 2 }
    }

    /// Says what is wrong on the standard error, and gives the exit status.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        // When nobody listens, the status says enough.
        let _ = writeln!(io::stderr(), "error: {}", self.line);
        ExitCode::from(self.status)
    }
}

/// Writes a line to the standard output, at once. A reader who went away wants no more: that is no failure.
///
/// # Errors
/// What else can go wrong.
pub fn print(line: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::runtime(format!("cannot write to the standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes lines from a thread of its own, so that a reader who stalls holds up nobody; lines that do not fit are dropped.
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
    /// A printer to the standard output.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start() -> Result<Self, Failure> {
        Self::writing(|line| {
            // Whoever does not read the lines does not want them.
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

    /// Writes a line if there is room for it.
    pub fn offer(&mut self, line: impl Display) {
        self.dropped += u64::from(self.lines.try_send(line.to_string()).is_err());
    }

    /// How many lines there was no room for.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Reads the command line.
///
/// # Errors
/// What is wrong with it, in one line; help and version end the program.
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

/// Runs a future on all cores that this program may use.
///
/// # Errors
/// The system gives no threads.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::runtime(format!("cannot start: {error}")))?.block_on(future)
}

/// Ends when the operator wants the program to end. It listens from this call on.
///
/// # Errors
/// The system does not tell.
pub fn end_of_operation() -> Result<impl Future<Output = ()>, Failure> {
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
    fn a_reader_who_stalls_holds_up_nobody() {
        let (begun, begins) = channel();
        let (goes_on, stall) = channel::<()>();
        let mut printer = Printer::writing(move |line| {
            begun.send(line).unwrap();
            let _ = stall.recv();
        })
        .unwrap();
        printer.offer("first");
        assert_eq!(begins.recv().unwrap(), "first");
        (0..100).for_each(|number| printer.offer(number));
        assert_eq!(printer.dropped(), 100 - LINES as u64);
        drop(goes_on);
        let rest: Vec<_> = begins.iter().take(LINES).collect();
        assert_eq!(rest, (0..LINES).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

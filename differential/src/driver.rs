//! Controls the driver process of a peer: sends calls to it, and reads results and events from it.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

/// A line of a driver's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The result of a call, without the prefix `= `.
    Result(String),
    /// An event, without the prefix `! `.
    Event(String),
}

/// A running driver process. Dropping this kills the process.
pub struct Driver {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Line>,
}

impl Driver {
    /// Starts a driver.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Discards errors that RakNet itself prints.
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let line = match line.split_at_checked(2) {
                    Some(("= ", result)) => Line::Result(result.to_owned()),
                    Some(("! ", event)) => Line::Event(event.to_owned()),
                    _ => continue,
                };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, lines })
    }

    /// Sends a call. The driver prints its result as a line.
    pub fn call(&mut self, words: &str) -> io::Result<()> {
        writeln!(self.input, "{words}")
    }

    /// Returns the next line of output, if one has arrived.
    pub fn next_line(&self) -> Option<Line> {
        self.lines.try_recv().ok()
    }

    /// Returns true while the driver runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The driver may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

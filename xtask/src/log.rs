//! The destination of output: the terminal, or a file for each part while several parts run in parallel.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};

/// The destination of the output of this process and its children.
#[derive(Clone, Debug)]
pub enum Log {
    /// Results go to the standard output, everything else to the standard error.
    Terminal,
    /// Everything goes to the standard error: the standard output is reserved for a single result.
    Stderr,
    /// Everything goes to a file.
    File(Arc<File>),
}

impl Log {
    /// Creates an empty log file.
    pub fn create(path: &Path) -> Result<Self> {
        let folder = path.parent().context("a log file has no folder")?;
        let open = || {
            fs::create_dir_all(folder)?;
            File::create(path)?;
            // Opened for appending, because this process and its children write to the same file.
            OpenOptions::new().append(true).open(path)
        };
        let file = open().with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Self::File(Arc::new(file)))
    }

    /// Writes a line of a result.
    pub fn print(&self, line: impl Display) {
        match self {
            Self::Terminal => println!("{line}"),
            Self::Stderr | Self::File(_) => self.note(line),
        }
    }

    /// Writes a line about progress.
    pub fn note(&self, line: impl Display) {
        match self {
            Self::Terminal | Self::Stderr => eprintln!("{line}"),
            Self::File(file) => {
                // A full disk also fails the command that is logged.
                let _ = file.as_ref().write_all(format!("{line}\n").as_bytes());
            }
        }
    }

    /// Returns the standard output for a child.
    pub fn stdout(&self) -> Stdio {
        match self {
            Self::Terminal => Stdio::inherit(),
            Self::Stderr => io::stderr().into(),
            Self::File(_) => self.stderr(),
        }
    }

    /// Returns the standard error for a child.
    pub fn stderr(&self) -> Stdio {
        match self {
            Self::Terminal | Self::Stderr => Stdio::inherit(),
            // If the file cannot be shared, the terminal gets the output, so that it is not lost.
            Self::File(file) => file.try_clone().map_or_else(|_| Stdio::inherit(), Stdio::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Cmd;

    #[test]
    fn a_file_keeps_lines_of_this_process_and_children_in_order() {
        let path = std::env::temp_dir().join(format!("rakwire-log-{}", std::process::id()));
        let log = Log::create(&path).unwrap();
        log.note("first");
        let script = Cmd::new("sh", ["-c", "echo second; echo third >&2"]).logged(&log);
        script.run().unwrap();
        log.print("fourth");
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(text, "first\n$ sh -c echo second; echo third >&2\nsecond\nthird\nfourth\n");
    }
}

//! Shared by `rakwire push` and `rakwire pull`: the connection, and the explanation of failures.

mod link;
mod progress;

use rakwire_plugins::directory::{DirectoryError, DirectoryLimit};
use rakwire_plugins::files::{self, Reason};

use crate::failure::Failure;

pub(crate) use self::link::{Link, PEERS, POLL};
pub(crate) use self::progress::ProgressLine;

/// The maximum number of requests in flight.
pub(crate) const WINDOW: usize = 64;
/// The size of a message in bytes.
pub(crate) const MESSAGE: usize = 32_768;

/// Describes why a transfer failed, and the fix. `error` describes a failure of this machine's disk, if there was one.
pub(crate) fn failed(failure: files::Failure, error: Option<String>) -> Failure {
    let advice = match failure {
        files::Failure::Local(Reason::Storage) => {
            return Failure::runtime(error.as_deref().unwrap_or("a file cannot be read or written"));
        }
        files::Failure::Disconnected => "; run the same command again to resume",
        files::Failure::Remote(Reason::Storage) => {
            "; the log or the output of the remote machine has the reason"
        }
        files::Failure::Local(Reason::TooManyFiles) => "; allow more with --max-files",
        files::Failure::Local(Reason::TooManyBytes) => "; allow more with --max-bytes",
        files::Failure::Local(Reason::FileTooLong) => "; allow more with --max-file-bytes",
        files::Failure::Local(_) | files::Failure::Remote(_) => "",
    };
    Failure::runtime(format!("the transfer failed: {failure}{advice}"))
}

/// Describes a problem with a directory, and the fix.
pub(crate) fn advised(error: &DirectoryError) -> String {
    let DirectoryError::Exceeds(_, limit) = error else { return error.to_string() };
    let option = if matches!(limit, DirectoryLimit::Bytes(_)) { "--max-bytes" } else { "--max-files" };
    format!("{error}; allow more with {option}, or remove files that are not needed")
}

//! What `rakwire push` and `rakwire pull` have in common: how they reach each other, and why a transfer failed.

mod link;
mod progress;

use rakwire_plugins::directory::{DirectoryError, DirectoryLimit};
use rakwire_plugins::files::{self, Reason};

use crate::failure::Failure;

pub(crate) use self::link::{Link, PEERS, POLL};
pub(crate) use self::progress::ProgressLine;

/// The most requests under way, and the bytes of a message.
pub(crate) const WINDOW: usize = 64;
pub(crate) const MESSAGE: usize = 32_768;

/// Why a transfer failed, and what to do about it; `error` is what the disk has said.
pub(crate) fn failed(failure: files::Failure, error: Option<String>) -> Failure {
    let advice = match failure {
        files::Failure::Here(Reason::Storage) => {
            return Failure::runtime(error.as_deref().unwrap_or("a file cannot be read or written"));
        }
        files::Failure::Disconnected => "; run the same again to go on",
        files::Failure::There(Reason::Storage) => "; look there for the reason",
        files::Failure::Here(Reason::TooManyFiles) => "; allow more with --max-files",
        files::Failure::Here(Reason::TooManyBytes) => "; allow more with --max-bytes",
        files::Failure::Here(Reason::FileTooLong) => "; allow more with --max-file-bytes",
        files::Failure::Here(_) | files::Failure::There(_) => "",
    };
    Failure::runtime(format!("the transfer failed: {failure}{advice}"))
}

/// What is wrong with a directory, and what to do about it.
pub(crate) fn advised(error: &DirectoryError) -> String {
    let DirectoryError::Exceeds(_, limit) = error else { return error.to_string() };
    let option = if matches!(limit, DirectoryLimit::Bytes(_)) { "--max-bytes" } else { "--max-files" };
    format!("{error}; allow more with {option}, or remove what is not needed there")
}

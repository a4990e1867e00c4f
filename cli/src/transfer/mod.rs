//! What `rakwire push` and `rakwire pull` have in common: how they reach each other, and directories on a disk.

mod link;
mod patches;
mod progress;
mod source;
mod store;

use std::fmt::Write;
use std::path::Path;

use rakwire_plugins::files::{self, Reason};

use crate::failure::Failure;

pub(crate) use self::link::{Link, PEERS, POLL};
pub(crate) use self::progress::ProgressLine;
pub(crate) use self::source::DirectorySource;
pub(crate) use self::store::DirectoryStore;

/// The directory for parts of files in the directory that files are received in.
const PARTS: &str = ".rakwire-part";
/// The most requests under way, and the bytes of a message.
pub(crate) const WINDOW: usize = 64;
pub(crate) const MESSAGE: usize = 32_768;

/// Why a transfer failed, and what to do about it; `error` is what the disk has said.
pub(crate) fn failed(failure: files::Failure, error: Option<&str>) -> Failure {
    let advice = match failure {
        files::Failure::Here(Reason::Storage) => {
            return Failure::runtime(error.unwrap_or("a file cannot be read or written"));
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

/// A path as text that is safe to print.
fn shown(path: &Path) -> String {
    crate::text::escape(path.as_os_str().as_encoded_bytes())
}

/// Bytes as hex digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

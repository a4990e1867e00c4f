//! Errors of directories.

use std::io;
use std::path::PathBuf;

use super::shown;
use super::usage::DirectoryLimit;

/// The reason why a directory cannot be sent, or cannot receive files.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryError {
    /// A file or a directory cannot be read.
    CannotRead(PathBuf, io::Error),
    /// A file cannot be written, or a directory cannot be created.
    CannotWrite(PathBuf, io::Error),
    /// The receiving directory exceeds a limit, or would exceed it with the files of the transfer.
    Exceeds(PathBuf, DirectoryLimit),
    /// The directory contains a symbolic link, which may lead elsewhere.
    Link(PathBuf),
    /// The directory contains an entry that is neither a file nor a directory.
    NoFile(PathBuf),
    /// A file has a name that other systems do not allow.
    ///
    /// See [`check_path`](crate::files::check_path) and [`is_portable_path`](rakwire_udp::is_portable_path).
    BadName(PathBuf),
    /// There are more than 4,294,967,295 files.
    TooManyFiles,
}

impl core::fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let not_sent = "which is not sent; remove it, or choose another directory";
        match self {
            Self::CannotRead(path, error) => write!(f, "cannot read {}: {error}", shown(path)),
            Self::CannotWrite(path, error) => write!(f, "cannot write to {}: {error}", shown(path)),
            Self::Exceeds(path, limit) => write!(
                f,
                "{} may hold at most {limit} including existing contents, and the transfer exceeds that",
                shown(path)
            ),
            Self::Link(path) => write!(f, "{} is a symbolic link, {not_sent}", shown(path)),
            Self::NoFile(path) => write!(f, "{} is neither a file nor a directory, {not_sent}", shown(path)),
            Self::BadName(path) => write!(
                f,
                "{} has a name that cannot be sent: up to 255 bytes of UTF-8 without control characters, and none \
                 that Windows gives another meaning, as aux.txt, those with one of < > : \" | ? * \\ and those with a dot or a space \
                 at the end; rename it",
                shown(path)
            ),
            Self::TooManyFiles => f.write_str("there are too many files"),
        }
    }
}

impl core::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::CannotRead(_, error) | Self::CannotWrite(_, error) => Some(error),
            Self::Exceeds(_, limit) => Some(limit),
            Self::Link(_) | Self::NoFile(_) | Self::BadName(_) | Self::TooManyFiles => None,
        }
    }
}

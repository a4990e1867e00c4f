//! Why a directory cannot be used.

use std::io;
use std::path::PathBuf;

use super::shown;
use super::usage::DirectoryLimit;

/// Why a directory cannot be sent, or not be received in.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryError {
    /// A file or a directory cannot be read.
    CannotRead(PathBuf, io::Error),
    /// A file cannot be written, or the directory not be made.
    CannotWrite(PathBuf, io::Error),
    /// The directory that files are received in has more than it may, or would have with what is to come.
    Exceeds(PathBuf, DirectoryLimit),
    /// It has a symbolic link, which may lead elsewhere.
    Link(PathBuf),
    /// It has something that is neither a file nor a directory.
    NoFile(PathBuf),
    /// A file has a name that other systems may not have (see [`check_path`](crate::files::check_path) and
    /// [`is_portable_path`](rakwire_udp::is_portable_path)).
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
                "{} may have {limit} in all, with what was in it before, and more does not fit",
                shown(path)
            ),
            Self::Link(path) => write!(f, "{} is a symbolic link, {not_sent}", shown(path)),
            Self::NoFile(path) => write!(f, "{} is no file and no directory, {not_sent}", shown(path)),
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

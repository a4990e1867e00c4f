//! How far a transfer is, and how it ends.

/// Why a transfer failed, as both peers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The application has ended it.
    Cancelled,
    /// The sender does not serve this peer.
    Forbidden,
    /// There are more files than the receiver takes.
    TooManyFiles,
    /// A file is longer than the receiver takes.
    FileTooLong,
    /// All files together are longer than the receiver takes.
    TooManyBytes,
    /// A path is none that a file may have.
    BadPath,
    /// The pages of the manifest contradict each other, or its paths are not in order.
    BadManifest,
    /// The bytes of a file are not those of its SHA-256.
    BadDigest,
    /// The application cannot read or write a file.
    Storage,
    /// What was asked for is not in the manifest.
    Unknown,
    /// More requests were under way than the sender allows.
    TooManyRequests,
    /// A message says nothing, or something else than what was asked for.
    BadMessage,
    /// A reply does not fit into the connection.
    TooLong,
    /// No answer came in time.
    TimedOut,
    /// Another reason, which this version does not know.
    Other(u8),
}

/// The reasons by their codes on the wire.
const REASONS: [Reason; 14] = [
    Reason::Cancelled,
    Reason::Forbidden,
    Reason::TooManyFiles,
    Reason::FileTooLong,
    Reason::TooManyBytes,
    Reason::BadPath,
    Reason::BadManifest,
    Reason::BadDigest,
    Reason::Storage,
    Reason::Unknown,
    Reason::TooManyRequests,
    Reason::BadMessage,
    Reason::TooLong,
    Reason::TimedOut,
];

impl Reason {
    pub(super) fn code(self) -> u8 {
        if let Self::Other(code) = self {
            return code;
        }
        let codes = 0..=u8::MAX;
        codes.zip(REASONS).find(|(_, reason)| *reason == self).map_or(u8::MAX, |(code, _)| code)
    }

    pub(super) fn of(code: u8) -> Self {
        REASONS.get(usize::from(code)).copied().unwrap_or(Self::Other(code))
    }
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "the transfer was cancelled",
            Self::Forbidden => "the sender does not serve this peer",
            Self::TooManyFiles => "there are more files than the receiver takes",
            Self::FileTooLong => "a file is longer than the receiver takes",
            Self::TooManyBytes => "the files have more bytes than the receiver takes",
            Self::BadPath => "a path is none that a file may have",
            Self::BadManifest => "the manifest contradicts itself",
            Self::BadDigest => "the bytes of a file are not those of its SHA-256",
            Self::Storage => "a file cannot be read or written",
            Self::Unknown => "something was asked for that is not in the manifest",
            Self::TooManyRequests => "more requests were under way than the sender allows",
            Self::BadMessage => "a message is not what was asked for",
            Self::TooLong => "a reply does not fit into the connection",
            Self::TimedOut => "no answer came in time",
            Self::Other(code) => return write!(f, "a reason unknown here, {code}"),
        })
    }
}

impl core::error::Error for Reason {}

/// Why a transfer did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// This peer has ended it, and has told the other one why.
    Here(Reason),
    /// The other peer has ended it.
    There(Reason),
    /// The connection has ended. The receiver may begin again on another one, and resumes from what it has.
    Disconnected,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Here(reason) => reason.fmt(f),
            Self::There(reason) => write!(f, "the other peer says: {reason}"),
            Self::Disconnected => f.write_str("the connection has ended"),
        }
    }
}

impl core::error::Error for Failure {}

/// The application's storage failed. What it knows of that it keeps itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageError;

impl core::fmt::Display for StorageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a file cannot be read or written")
    }
}

impl core::error::Error for StorageError {}

/// So many files with so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of files.
    pub files: u32,
    /// The bytes of all of them.
    pub bytes: u64,
}

/// How far a receiver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is to come in all, which is nothing until the first page of the manifest is here.
    pub total: Totals,
    /// What is here: files whose SHA-256 was right, and bytes, also those from before that are to be checked yet.
    pub done: Totals,
    /// Of these files those whose bytes were all here before.
    pub unchanged: u32,
    /// Of these files those that were made of an older version and a patch.
    pub patched: u32,
    /// The bytes that came over the connection.
    pub received: u64,
}

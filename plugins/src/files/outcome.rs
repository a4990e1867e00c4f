//! Progress and results of transfers.

/// The reason why a transfer failed, as sent to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The application cancelled the transfer.
    Cancelled,
    /// The sender does not serve this peer.
    Forbidden,
    /// The manifest lists more files than the receiver accepts.
    TooManyFiles,
    /// A file is longer than the receiver accepts.
    FileTooLong,
    /// All files together are longer than the receiver accepts.
    TooManyBytes,
    /// A path in the manifest is not allowed.
    BadPath,
    /// The pages of the manifest contradict each other, or its paths are not in order.
    BadManifest,
    /// The bytes of a file do not match its SHA-256.
    BadDigest,
    /// The application cannot read or write a file.
    Storage,
    /// The requested item is not in the manifest.
    Unknown,
    /// The receiver exceeded the sender's maximum number of open requests.
    TooManyRequests,
    /// A message is malformed, or does not match the request.
    BadMessage,
    /// A reply exceeds the maximum message length of the connection.
    TooLong,
    /// No reply arrived within the timeout.
    TimedOut,
    /// A reason that this version does not define.
    Other(u8),
}

/// The reasons, indexed by their codes on the wire.
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
            Self::TooManyFiles => "there are more files than the receiver accepts",
            Self::FileTooLong => "a file is longer than the receiver accepts",
            Self::TooManyBytes => "the files have more bytes than the receiver accepts",
            Self::BadPath => "a path in the manifest is not allowed",
            Self::BadManifest => "the manifest contradicts itself",
            Self::BadDigest => "the bytes of a file do not match its SHA-256",
            Self::Storage => "a file cannot be read or written",
            Self::Unknown => "a requested item is not in the manifest",
            Self::TooManyRequests => "there were more open requests than the sender allows",
            Self::BadMessage => "a message is malformed or does not match the request",
            Self::TooLong => "a reply exceeds the maximum message length",
            Self::TimedOut => "no answer arrived in time",
            Self::Other(code) => return write!(f, "a reason with the unknown code {code}"),
        })
    }
}

impl core::error::Error for Reason {}

/// The cause of a failed transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// This peer aborted the transfer, and has sent the reason to the remote peer.
    Local(Reason),
    /// The remote peer aborted the transfer.
    Remote(Reason),
    /// The connection closed. The receiver may fetch again on another connection, and resumes from its
    /// partial files.
    Disconnected,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Local(reason) => reason.fmt(f),
            Self::Remote(reason) => write!(f, "the remote peer ended the transfer: {reason}"),
            Self::Disconnected => f.write_str("the connection was closed"),
        }
    }
}

impl core::error::Error for Failure {}

/// The error of an application's storage. Only the application knows the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageError;

impl core::fmt::Display for StorageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a file cannot be read or written")
    }
}

impl core::error::Error for StorageError {}

/// A number of files and their total size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of files.
    pub files: u32,
    /// The total bytes of these files.
    pub bytes: u64,
}

/// The progress of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The whole transfer; zero until the first page of the manifest has arrived.
    pub total: Totals,
    /// The verified files, and all bytes present, including unverified bytes from earlier attempts.
    pub done: Totals,
    /// The number of complete files that were already present.
    pub unchanged: u32,
    /// The number of complete files that were produced from an older version and a patch.
    pub patched: u32,
    /// The bytes received over the connection.
    pub received: u64,
}

//! Why connections do not open, and why they end.

/// Why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// No challenge came.
    NoAnswer,
    /// The application gave up.
    Cancelled,
}

impl core::fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoAnswer => "the server does not answer",
            Self::Cancelled => "the attempt was cancelled",
        })
    }
}

impl core::error::Error for ConnectFailure {}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This application asked for it.
    Local,
    /// The other peer sent END. A client that is told so before anything else came was not let in.
    Remote,
    /// The other peer fell silent.
    Lost,
    /// A reliable message of the other peer can never fit into the memory that one connection may take.
    MessageTooLarge,
    /// The other peer began a reliable message and never finished it.
    MessageUnfinished,
}

impl core::fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Local => "this side disconnected",
            Self::Remote => "the other peer disconnected",
            Self::Lost => "the other peer fell silent",
            Self::MessageTooLarge => "a message of the other peer is larger than a connection may hold",
            Self::MessageUnfinished => "the other peer began a message and never finished it",
        })
    }
}

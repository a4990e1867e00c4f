//! Why a message is not accepted for sending.

/// Why a message was not accepted for sending. Nothing of it was kept.
///
/// ```
/// use rakwire::raknet::SendError;
///
/// assert_eq!(SendError::Empty.to_string(), "a message must have at least one byte");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendError {
    /// The connection does not exist, is not open yet or is ending.
    NotConnected,
    /// A message must have at least one byte: its id.
    Empty,
    /// The first byte is below 0x1B and belongs to RakNet itself.
    ReservedId,
    /// The message takes more than one connection may ever hold, with the memory that its channel takes when it is used
    /// for the first time; send it in pieces, on one of the channels 0 to 3, or give the peer more blocks.
    TooLong,
    /// This connection holds as much as it may; try again when some of it was acknowledged.
    QuotaExceeded,
    /// All connections together hold as much as there is; try again when some of it was acknowledged.
    PoolExhausted,
    /// A hook does not let this message through.
    Filtered,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotConnected => "the connection is not open",
            Self::Empty => "a message must have at least one byte",
            Self::ReservedId => "the first byte is below 0x1B and belongs to RakNet itself",
            Self::TooLong => "the message is larger than one connection may hold; send it in pieces",
            Self::QuotaExceeded => "the connection holds as much as it may; try again later",
            Self::PoolExhausted => "the peer holds as much as it can; try again later",
            Self::Filtered => "a hook does not let this message through",
        })
    }
}

impl core::error::Error for SendError {}

//! Why a peer does not do what its application asks.

/// Why a connection cannot be opened from here.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::game_protocol::{Config, ConnectError, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// peer.connect(Instant::ZERO, "127.0.0.1:8999".parse()?)?;
/// assert_eq!(peer.connect(Instant::ZERO, "127.0.0.1:9000".parse()?), Err(ConnectError::Full));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectError {
    /// A connection with this address exists already.
    AlreadyConnected,
    /// Every connection slot is taken.
    Full,
    /// The password is longer than 255 bytes.
    PasswordTooLong,
    /// There is no memory to keep the password until it is sent.
    NoMemory,
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::AlreadyConnected => "a connection with this address exists already",
            Self::Full => "every connection slot is taken",
            Self::PasswordTooLong => "a password has at most 255 bytes",
            Self::NoMemory => "there is no memory for the password",
        })
    }
}

impl core::error::Error for ConnectError {}

/// Why a message was not accepted for sending. Nothing of it was kept.
///
/// ```
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, Delivery, Peer, Resources, SendError};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let id = peer.connect(Instant::ZERO, "127.0.0.1:19132".parse()?)?;
/// let sent = peer.send(Instant::ZERO, id, b"\xFEhello", Delivery::RELIABLE);
/// assert_eq!(sent, Err(SendError::NotConnected)); // the server has not answered yet
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendError {
    /// The connection does not exist, is not open yet or is ending.
    NotConnected,
    /// A message has at least one byte; in RakNet that is its id.
    Empty,
    /// RakNet: the first byte is below 0x1B and belongs to RakNet itself.
    ReservedId,
    /// The Game Protocol: the message is longer than 129,024 bytes, which is 256 chunks. Send it in several.
    TooLong,
    /// The message takes more memory than one connection may ever hold. Send it in pieces, or give the peer more
    /// blocks. In RakNet the memory that a channel takes when it is first used counts too: the channels 0 to 3 take
    /// none.
    NeverFits,
    /// This connection holds as much as it may beside others; try again when some of it was acknowledged.
    /// [`Peer::poll_writable`](super::Peer::poll_writable) tells when.
    QuotaExceeded,
    /// The message needs more than what is guaranteed to a connection, and all connections together have left less; try
    /// again when [`Peer::poll_writable`](super::Peer::poll_writable) names this one.
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
            Self::TooLong => "a message has at most 129,024 bytes; send it in several",
            Self::NeverFits => "the message is larger than one connection may hold; send it in pieces",
            Self::QuotaExceeded => "the connection holds as much as it may; try again later",
            Self::PoolExhausted => "the peer holds as much as it can; try again later",
            Self::Filtered => "a hook does not let this message through",
        })
    }
}

impl core::error::Error for SendError {}

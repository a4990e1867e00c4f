//! What only RakNet's peers tell their applications.

use core::net::SocketAddr;
use core::time::Duration;

use super::types::RakNet;
use super::wire::Guid;
use super::wire::offline::Refusal;
use crate::endpoint::{ConnectionId, Message};

/// An event that only RakNet has; the others are in [`Event`](crate::endpoint::Event).
///
/// ```
/// use rakwire::raknet::{Event, Outcome, RakNetEvent, Receipt};
///
/// /// Whether the message that `sent` names is known to have arrived.
/// fn has_arrived(event: &Event<'_>, sent: Receipt) -> bool {
///     matches!(event, Event::Protocol(RakNetEvent::Receipt { receipt, outcome: Outcome::Acknowledged, .. })
///         if *receipt == sent)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RakNetEvent<'p> {
    /// It is known what became of a message sent with a receipt. Of messages whose fate was open when the connection
    /// ended, nothing is told.
    Receipt {
        /// The connection.
        id: ConnectionId,
        /// What `send` returned.
        receipt: Receipt,
        /// What became of the message.
        outcome: Outcome,
    },
    /// A message in parts has come further ([`Config::progress_interval`](super::Config)). Of several such messages
    /// the last news of each direction are told.
    Progress {
        /// The connection.
        id: ConnectionId,
        /// How far.
        progress: Progress,
    },
    /// A server answered a ping.
    Pong {
        /// The server's address.
        from: SocketAddr,
        /// The server's identity.
        guid: Guid,
        /// From the ping to the pong.
        latency: Duration,
        /// What the server says of itself, 0 to 399 bytes.
        data: Message<'p, RakNet>,
    },
    /// A peer without a connection sent a message ([`OutOfBand::Accept`](super::OutOfBand::Accept)).
    OutOfBand {
        /// Where it came from; may be forged.
        from: SocketAddr,
        /// Who sent it; may be forged.
        guid: Guid,
        /// What it says, 1 to 399 bytes.
        data: Message<'p, RakNet>,
    },
    /// A peer without a connection makes itself known ([`OutOfBand::Accept`](super::OutOfBand::Accept)).
    Advertisement {
        /// Where it came from; may be forged.
        from: SocketAddr,
        /// Who sent it; may be forged.
        guid: Guid,
        /// What it says of itself, 0 to 398 bytes.
        data: Message<'p, RakNet>,
    },
}

/// Names a message of one connection whose sender wants to know what becomes of it.
///
/// ```
/// assert_ne!(rakwire::raknet::Receipt(1), rakwire::raknet::Receipt(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt(pub u32);

/// What became of a message that was sent with a receipt.
///
/// ```
/// assert_eq!(rakwire::raknet::Outcome::default(), rakwire::raknet::Outcome::Acknowledged);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The other peer has it, all its parts.
    #[default]
    Acknowledged,
    /// It was sent unreliably and no acknowledgement came, or it waited too long to be sent. It may have arrived all
    /// the same.
    Lost,
}

/// Which way a message in parts goes.
///
/// ```
/// assert_ne!(rakwire::raknet::Direction::Sending, rakwire::raknet::Direction::Receiving);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the other peer.
    Sending,
    /// From the other peer.
    Receiving,
}

/// How far a message in parts has come.
///
/// ```
/// use rakwire::raknet::{Direction, Progress};
///
/// let progress = Progress { direction: Direction::Sending, message: 7, done: 32, parts: 128 };
/// assert_eq!(progress.done * 100 / progress.parts, 25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Which way it goes.
    pub direction: Direction,
    /// Tells it from the others that are under way in the same direction.
    pub message: u16,
    /// Parts that have arrived or were acknowledged.
    pub done: u32,
    /// Parts in all.
    pub parts: u32,
}

/// What a connection tells that only RakNet has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RakNetNotice {
    Progress(Progress),
    Receipt(Receipt, Outcome),
}

/// Why a connection could not be opened.
///
/// ```
/// use rakwire::raknet::ConnectFailure;
///
/// assert_eq!(ConnectFailure::NoAnswer.to_string(), "the server does not answer");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// Nothing came back.
    NoAnswer,
    /// The server refused.
    Refused(Refusal),
    /// The server speaks another version of the protocol.
    IncompatibleProtocol {
        /// The version that the server named.
        server: u8,
    },
    /// The server wants an encrypted connection.
    SecurityRequired,
    /// The server wants another password.
    InvalidPassword,
    /// The server ended the connection before it was open.
    Closed,
    /// The application gave up.
    Cancelled,
}

impl core::fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = match self {
            Self::NoAnswer => "the server does not answer",
            Self::Refused(Refusal::AttemptFailed) => "the server gave the attempt up",
            Self::Refused(Refusal::AlreadyConnected) => {
                "the server has a connection of this address or GUID already"
            }
            Self::Refused(Refusal::NoFreeIncomingConnections) => "the server is full",
            Self::Refused(Refusal::Banned) => "the server has banned this address",
            Self::Refused(Refusal::RecentlyConnected) => {
                "this address connected a moment ago; try again later"
            }
            Self::IncompatibleProtocol { server } => {
                return write!(f, "the server speaks protocol version {server}");
            }
            Self::SecurityRequired => "the server wants an encrypted connection",
            Self::InvalidPassword => "the server wants another password",
            Self::Closed => "the server ended the connection before it was open",
            Self::Cancelled => "the attempt was cancelled",
        };
        f.write_str(text)
    }
}

impl core::error::Error for ConnectFailure {}

/// Why a connection ended.
///
/// ```
/// use rakwire::raknet::DisconnectReason;
///
/// assert_eq!(DisconnectReason::Remote.to_string(), "the other peer disconnected");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// This application asked for it.
    Local,
    /// The other peer said goodbye.
    Remote,
    /// The other peer fell silent.
    Lost,
    /// A message of the other peer can never fit into the memory that one connection may take.
    MessageTooLarge,
    /// The other peer leaves gaps that hold more memory than one connection may take.
    ReceiveMemory,
}

impl core::fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Local => "this side disconnected",
            Self::Remote => "the other peer disconnected",
            Self::Lost => "the other peer fell silent",
            Self::MessageTooLarge => "a message of the other peer is larger than a connection may hold",
            Self::ReceiveMemory => "the other peer left gaps that hold too much memory",
        })
    }
}

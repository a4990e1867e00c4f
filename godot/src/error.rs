//! The errors of a session.

use std::io;

use rakwire_native::raknet::SetError;
use rakwire_native::rakwire::endpoint::SendError;
use rakwire_native::{BindError, ConnectError, KeyFileError};

/// The error of a [`Session`](crate::Session) call. `Display` describes the problem and a remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option has an invalid value, or does not exist.
    #[error("the option \"{name}\": {text}")]
    Option {
        /// The name of the option.
        name: String,
        /// The reason.
        text: String,
    },
    /// A port is outside 0 to 65,535.
    #[error("{0} is not a port; ports are 0 to 65535")]
    Port(i64),
    /// A number of clients is outside 1 to 65,534.
    #[error("max_clients must be 1 to 65534, not {0}")]
    MaxClients(i64),
    /// A host name or address could not be resolved.
    #[error("{host} could not be resolved: {source}")]
    Resolve {
        /// The name or address.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// A host name has no address that the socket can reach.
    #[error("{0} has no address that the socket can reach")]
    NoAddress(String),
    /// A pattern of addresses is invalid.
    #[error(
        "{0} is invalid; use an address, a wildcard such as 192.0.2.*, or a prefix such as 2001:db8::/32"
    )]
    Addresses(String),
    /// The socket could not be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The connection attempt could not be started.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A key file could not be read.
    #[error("{path}: {source}")]
    KeyFile {
        /// The path of the file.
        path: String,
        /// The reason.
        source: KeyFileError,
    },
    /// The connect token is malformed, or does not list the server.
    #[error("the connect token cannot be read: {0}")]
    Token(String),
    /// A password or an advertisement is too long.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The operating system provided no random bytes.
    #[error("the system provides no random bytes: {0}")]
    Entropy(#[from] io::Error),
    /// A session is already open.
    #[error("the peer is connecting or connected; call close() first")]
    AlreadyActive,
    /// There is no open session.
    #[error("the peer is not connected; call create_server() or create_client() first")]
    NotConnected,
    /// The session is not a server.
    #[error("only a server can do that; call create_server() first")]
    NotServer,
    /// There is no connection to a peer with this id.
    #[error("there is no connection to peer {0}")]
    NoPeer(i32),
    /// The transfer channel is outside 0 to 15.
    #[error("{0} is not a transfer channel; channels are 0 to 15")]
    Channel(i32),
    /// The packet is empty.
    #[error("a packet is empty; it must have at least one byte")]
    Empty,
    /// The packet exceeds the maximum length.
    #[error("a packet of {length} bytes exceeds the maximum of {most}; split it")]
    TooLong {
        /// The length of the packet in bytes.
        length: usize,
        /// The maximum length in bytes.
        most: usize,
    },
    /// More reliable packets are queued for a peer than the option `backlog` allows. The peer is being
    /// disconnected.
    #[error(
        "peer {0} does not keep up and is disconnected: its queued reliable packets exceed the option \"backlog\""
    )]
    Backlog(i32),
    /// A queued packet was refused by the connection. The peer is being disconnected.
    #[error("peer {peer} is disconnected, because a queued packet could not be sent: {source}")]
    Broken {
        /// The id of the peer.
        peer: i32,
        /// The reason.
        source: SendError,
    },
    /// The connection refused the packet.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The duration of a ban is negative, infinite or not a number.
    #[error("the duration of a ban must be 0 or more seconds, not {0}; 0 means permanent")]
    BanTime(f64),
    /// There are already 64 bans.
    #[error("there are already 64 bans, the maximum; remove one with unban()")]
    BansFull,
    /// Eight pings are already waiting for their pongs.
    #[error("eight pings, the maximum, are waiting for pongs; try again later")]
    PingsFull,
    /// The key does not have 32 bytes.
    #[error("a key has 32 bytes, not {0}")]
    KeyLength(usize),
}

impl Error {
    pub(crate) fn option(name: &str, text: impl Into<String>) -> Self {
        Self::Option { name: name.to_owned(), text: text.into() }
    }
}

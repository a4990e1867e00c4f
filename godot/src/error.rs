//! The errors of a session.

use std::io;

use rakwire_native::raknet::SetError;
use rakwire_native::rakwire::endpoint::SendError;
use rakwire_native::{BindError, ConnectError, KeyFileError};

/// The error of a call. Its text states what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option has a wrong value, or there is no such option.
    #[error("the option \"{name}\": {text}")]
    Option {
        /// The name of the option.
        name: String,
        /// The reason.
        text: String,
    },
    /// A port is not 0 to 65,535.
    #[error("{0} is not a port; ports are 0 to 65535")]
    Port(i64),
    /// A number of clients is not 1 to 65,534.
    #[error("a server has 1 to 65534 clients, not {0}")]
    MaxClients(i64),
    /// A name or an address could not be resolved.
    #[error("{host} could not be resolved: {source}")]
    Resolve {
        /// The name or address.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// A name has no address that the socket can reach.
    #[error("{0} has no address that the socket can reach")]
    NoAddress(String),
    /// A pattern of addresses is wrong.
    #[error("{0} is not an address, a wildcard such as 192.0.2.* or a prefix such as 2001:db8::/32")]
    Addresses(String),
    /// No socket could be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The attempt to connect could not begin.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The file of a key could not be read.
    #[error("{path}: {source}")]
    KeyFile {
        /// The path of the file.
        path: String,
        /// The reason.
        source: KeyFileError,
    },
    /// The connect token is damaged, or not for a server.
    #[error("the connect token cannot be read: {0}")]
    Token(String),
    /// A password or an advertisement is too long.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The system provides no random bytes.
    #[error("the system provides no random bytes: {0}")]
    Entropy(#[from] io::Error),
    /// A session is open already.
    #[error("the peer is connecting or connected; call close() first")]
    AlreadyActive,
    /// There is no open session.
    #[error("the peer is not connected; call create_server() or create_client() first")]
    NotConnected,
    /// The call needs a server.
    #[error("only a server can do that; call create_server() first")]
    NotServer,
    /// There is no connection to the peer.
    #[error("there is no connection to the peer {0}")]
    NoPeer(i32),
    /// The transfer channel is not 0 to 15.
    #[error("{0} is not a transfer channel; channels are 0 to 15")]
    Channel(i32),
    /// The packet is empty.
    #[error("a packet needs at least one byte")]
    Empty,
    /// The packet is too long.
    #[error("a packet of {length} bytes exceeds the maximum of {most}; send it in several")]
    TooLong {
        /// Its length.
        length: usize,
        /// The maximum.
        most: usize,
    },
    /// More reliable packets wait for a peer than the option `backlog` allows. It has been disconnected.
    #[error(
        "the peer {0} does not keep up: more reliable packets wait for it than \"backlog\" allows, and it is disconnected"
    )]
    Backlog(i32),
    /// A packet that waited for room was refused. Its peer has been disconnected.
    #[error("a packet for the peer {peer} could not be sent, and it is disconnected: {source}")]
    Broken {
        /// The peer.
        peer: i32,
        /// The reason.
        source: SendError,
    },
    /// The message was refused.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The time of a ban is not 0 or more seconds.
    #[error("a ban lasts 0 or more seconds, not {0}; 0 is for ever")]
    BanTime(f64),
    /// There are 64 bans already.
    #[error("there are 64 bans, the maximum; end one by unban()")]
    BansFull,
    /// Eight pings wait for their pongs.
    #[error("too many pings wait for their answers; try again later")]
    PingsFull,
    /// A key has a wrong length.
    #[error("a key has 32 bytes, not {0}")]
    KeyLength(usize),
}

impl Error {
    pub(crate) fn option(name: &str, text: impl Into<String>) -> Self {
        Self::Option { name: name.to_owned(), text: text.into() }
    }
}

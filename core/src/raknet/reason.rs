//! The reasons for failed attempts and closed connections, and the errors of RakNet's own operations.

use super::wire::offline::Refusal;

/// The reason why an attempt to connect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// No datagram was received from the server.
    NoAnswer,
    /// The operating system or a router signalled the address as unreachable.
    ///
    /// The cause is usually a closed port or a missing route. Only drivers that call
    /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) report it; with others the failure is
    /// [`NoAnswer`](Self::NoAnswer).
    Unreachable,
    /// The server responded, but the handshake did not complete in time.
    ///
    /// Either the server does not use RakNet or is overloaded, or the path drops large datagrams.
    HandshakeTimeout,
    /// The server refused the connection.
    Refused(Refusal),
    /// The protocol versions of client and server differ.
    ///
    /// Either [`ConnectOptions::protocol_version`](super::ConnectOptions::protocol_version) differs from the server's
    /// version, or the server rejected a request with the version that it had named.
    IncompatibleProtocol {
        /// The protocol version that the server named.
        server: u8,
    },
    /// The server named another protocol version, but did not respond to a request with it.
    ///
    /// Some servers ignore an address for 10 to 20 seconds after a request with a wrong version.
    NoAnswerAfterIncompatible {
        /// The protocol version that the server named; retry with it.
        server: u8,
    },
    /// The server requires a secure connection.
    SecurityRequired,
    /// The client requires a secure connection, which the server does not offer.
    ServerWithoutSecurity,
    /// The server requires a client identity, which needs a secure connection.
    IdentityRequired,
    /// The server rejected the identity of the client, or the connect token belongs to another client.
    InvalidIdentity,
    /// The server's public key is not the trusted one, or the server reported a key mismatch.
    PublicKeyMismatch,
    /// The server rejected the password or the connect token.
    ///
    /// A connect token is rejected if it has expired, was used before, or names another server or backend. The event
    /// [`Refused`](crate::endpoint::Event::Refused) at the server has the exact reason. After a simultaneous open,
    /// either peer may have refused.
    InvalidPassword,
    /// The server closed the connection before it was open.
    Closed,
    /// The application cancelled the attempt with `disconnect`.
    Cancelled,
}

/// Writes the text of a failure with the given `write!` macro, of `core` or of `defmt`.
macro_rules! write_text {
    ($write:ident, $f:expr, $failure:expr) => {
        match $failure {
            ConnectFailure::NoAnswer => $write!($f, "the server does not answer"),
            ConnectFailure::Unreachable => {
                $write!($f, "nothing is listening on this address, or no route leads there")
            }
            ConnectFailure::HandshakeTimeout => {
                $write!($f, "the server answered, but did not finish the handshake in time")
            }
            ConnectFailure::Refused(Refusal::AttemptFailed) => $write!($f, "the server ended the attempt"),
            ConnectFailure::Refused(Refusal::AlreadyConnected) => {
                $write!($f, "the server already has a connection with this address or GUID")
            }
            ConnectFailure::Refused(Refusal::NoFreeIncomingConnections) => $write!($f, "the server is full"),
            ConnectFailure::Refused(Refusal::Banned) => $write!($f, "the server has banned this address"),
            ConnectFailure::Refused(Refusal::RecentlyConnected) => {
                $write!($f, "this address connected a moment ago; try again later")
            }
            ConnectFailure::IncompatibleProtocol { server } => {
                $write!($f, "the server uses protocol version {}", server)
            }
            ConnectFailure::NoAnswerAfterIncompatible { server } => $write!(
                $f,
                "the server uses protocol version {} and has not answered since; it may ignore this address for 20 s \
                 after a request with another version",
                server
            ),
            ConnectFailure::SecurityRequired => $write!($f, "the server requires a secure connection"),
            ConnectFailure::ServerWithoutSecurity => $write!($f, "the server does not offer secure connections"),
            ConnectFailure::IdentityRequired => $write!($f, "the server requires the client's identity"),
            ConnectFailure::InvalidIdentity => {
                $write!($f, "the server rejected the client's identity, or the connect token belongs to another client")
            }
            ConnectFailure::PublicKeyMismatch => $write!($f, "the server has another public key"),
            ConnectFailure::InvalidPassword => {
                $write!(
                    $f,
                    "the server requires another password, or an unused and unexpired connect token of its own"
                )
            }
            ConnectFailure::Closed => $write!($f, "the server ended the connection before it was open"),
            ConnectFailure::Cancelled => $write!($f, "the attempt was cancelled"),
        }
    };
}

impl core::fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write_text!(write, f, self)
    }
}

// defmt interns these texts, so they take no flash.
#[cfg(feature = "defmt")]
impl defmt::Format for ConnectFailure {
    fn format(&self, f: defmt::Formatter<'_>) {
        use defmt::write;
        write_text!(write, f, self);
    }
}

impl core::error::Error for ConnectFailure {}

error_enum! {
    /// The reason why a connection closed.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// The application closed the connection with `disconnect`.
        Local => "this application ended the connection",
        /// The remote peer sent a disconnection notification.
        Remote => "the peer ended the connection",
        /// The remote peer did not respond within the timeout.
        Lost => "the connection timed out: the peer stopped answering",
        /// The remote peer sent a message that can never fit into the memory of one connection.
        MessageTooLarge => "the peer sent a message that exceeds the memory of a connection",
        /// The remote peer closed the connection because a message from this peer exceeds its memory.
        ///
        /// Only peers of this crate report this reason.
        SentTooLarge => "a message exceeds the memory of the peer; send it in pieces",
        /// The path MTU became too small for the parts of a message from this peer.
        ///
        /// The parts are lost, even with IP fragmentation, while smaller datagrams arrive. They cannot be split again,
        /// because the remote peer may have received some of them.
        PathTooNarrow => "the MTU of the path became too small for a message that was sent in parts",
        /// Out-of-order messages from the remote peer take more memory than one connection may hold.
        ReceiveMemory => "too many messages wait for earlier ones that the peer did not send",
    }
}

error_enum! {
    /// The reason why a ping was not sent.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Config, Peer, PingError, Resources};
    ///
    /// let mut memory = Resources::<1, 8, 64>::new();
    /// let mut peer = Peer::new(&mut memory, Config::new([7; 32]));
    /// let address = |port| ([192, 0, 2, 1], port).into();
    /// assert!((1..=8).all(|port| peer.ping(Instant::ZERO, address(port)).is_ok()));
    /// assert_eq!(peer.ping(Instant::ZERO, address(9)), Err(PingError::TooMany));
    /// peer.forget_ping(address(1));
    /// assert_eq!(peer.ping(Instant::ZERO, address(9)), Ok(()));
    /// ```
    #[non_exhaustive]
    pub enum PingError {
        /// Eight pings await their pongs; discard one with [`Peer::forget_ping`](crate::endpoint::Peer::forget_ping).
        TooMany => "too many pings wait for their pongs; wait for some of them",
    }
}

error_enum! {
    /// The reason why an out-of-band message was not queued.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::raknet::{Config, OutOfBandError, Peer, Resources};
    ///
    /// let mut memory = Resources::<1, 32, 64>::new();
    /// let mut peer = Peer::new(&mut memory, Config::new([7; 32]));
    /// let to = ([192, 0, 2, 1], 19132).into();
    /// assert_eq!(peer.send_out_of_band(Instant::ZERO, to, &[0; 400]), Err(OutOfBandError::BadLength));
    /// assert!((1..=8).all(|_| peer.send_out_of_band(Instant::ZERO, to, b"hello").is_ok()));
    /// assert_eq!(peer.send_out_of_band(Instant::ZERO, to, b"hello"), Err(OutOfBandError::TooMany));
    /// ```
    #[non_exhaustive]
    pub enum OutOfBandError {
        /// The message is empty, or longer than 399 bytes.
        BadLength => "an out-of-band message has 1 to 399 bytes",
        /// Eight out-of-band messages are already queued, or there is no free memory.
        TooMany => "too many out-of-band messages wait; try again later",
    }
}

error_enum! {
    /// The reason why a setting was rejected; it is unchanged.
    ///
    /// ```
    /// use rakwire::raknet::{Config, Peer, Resources, SetError};
    ///
    /// let mut memory = Resources::<1, 8, 64>::new();
    /// let mut peer = Peer::new(&mut memory, Config::new([7; 32]));
    /// assert_eq!(peer.set_advertisement(&[0; 400]), Err(SetError::AdvertisementTooLong));
    /// assert_eq!(peer.set_password(b"secret"), Ok(()));
    /// ```
    #[non_exhaustive]
    pub enum SetError {
        /// The advertisement is longer than 399 bytes, including its length prefix if there is one.
        AdvertisementTooLong => "an advertisement has at most 399 bytes, including its length prefix; shorten it",
        /// The password is longer than 255 bytes.
        PasswordTooLong => "a password has at most 255 bytes; shorten it",
        /// The connection does not exist.
        NoConnection => "the connection does not exist, or has closed",
        /// There are more addresses than `address_count` of the configuration allows.
        TooManyAddresses => "there are more addresses than `address_count`; raise it, to at most 20",
        /// There is no free memory for the addresses.
        NoMemory => "there is no memory for the addresses; configure more blocks",
    }
}

//! The reasons why connections do not open or end, and the errors of operations that only RakNet has.

use super::wire::offline::Refusal;

/// The reason why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// Nothing was received.
    NoAnswer,
    /// The system or a router reported that the address is unreachable.
    ///
    /// No socket is open at the port, or no route leads to the host. Only drivers that call
    /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) detect that; elsewhere it is
    /// [`NoAnswer`](Self::NoAnswer).
    Unreachable,
    /// The server answered, but the handshake was not completed.
    ///
    /// The server is of another kind or too busy, or the path only carries small datagrams.
    HandshakeTimeout,
    /// The server refused the connection.
    Refused(Refusal),
    /// The protocol versions do not match.
    ///
    /// The server uses a version other than the one that the application requires, or does not support the version
    /// that it names.
    IncompatibleProtocol {
        /// The version that the server named.
        server: u8,
    },
    /// The server named another protocol version, and has not answered a request with it.
    ///
    /// Some servers ignore an address for 10 to 20 seconds after a request with another version.
    NoAnswerAfterIncompatible {
        /// The version that the server named, with which to try again.
        server: u8,
    },
    /// The server requires an encrypted connection.
    SecurityRequired,
    /// The client requires a secure connection, which the server does not offer.
    ServerWithoutSecurity,
    /// The server requires the identity of the client, which only an encrypted connection can carry.
    IdentityRequired,
    /// The server rejected the identity of the client, or its connect token belongs to another client.
    InvalidIdentity,
    /// The server has a public key other than the expected one, or reports that.
    PublicKeyMismatch,
    /// The server requires another password or connect token.
    ///
    /// A token that has expired, was used before, or is for another server or of another backend gets this answer. The
    /// server's event [`Refused`](crate::endpoint::Event::Refused) has the exact reason. If both peers dialled each
    /// other at once, either of them may have refused.
    InvalidPassword,
    /// The server ended the connection before it was open.
    Closed,
    /// The application cancelled the attempt.
    Cancelled,
}

/// Writes the text of a failure with `core::write` or with `defmt::write`.
macro_rules! write_text {
    ($write:ident, $f:expr, $failure:expr) => {
        match $failure {
            ConnectFailure::NoAnswer => $write!($f, "the server does not answer"),
            ConnectFailure::Unreachable => {
                $write!($f, "nothing listens at this address, or no route leads there")
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

// The texts of defmt take no flash.
#[cfg(feature = "defmt")]
impl defmt::Format for ConnectFailure {
    fn format(&self, f: defmt::Formatter<'_>) {
        use defmt::write;
        write_text!(write, f, self);
    }
}

impl core::error::Error for ConnectFailure {}

error_enum! {
    /// The reason why a connection ended.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// This application requested it.
        Local => "this application ended the connection",
        /// The remote peer sent its disconnection notification.
        Remote => "the peer ended the connection",
        /// The remote peer became unresponsive.
        Lost => "the connection timed out: the peer stopped answering",
        /// A message of the remote peer can never fit into the memory of one connection.
        MessageTooLarge => "the peer sent a message that exceeds the memory of a connection",
        /// The remote peer ended the connection because it cannot hold a message of this side.
        ///
        /// Only peers of this crate report that.
        SentTooLarge => "a message exceeds the memory of the peer; send it in pieces",
        /// The path has become too narrow for the parts of a message of this side.
        ///
        /// They are lost, even in fragments, while smaller datagrams arrive. They cannot be cut again because some of
        /// them have arrived, or may have.
        PathTooNarrow => "the MTU of the path became too small for a message that was sent in parts",
        /// The gaps in the remote peer's messages hold more memory than one connection may take.
        ReceiveMemory => "too many messages wait for earlier ones that the peer did not send",
    }
}

error_enum! {
    /// The reason why a ping cannot be sent.
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
        /// Too many pings wait for their pongs; stop waiting for some with
        /// [`Peer::forget_ping`](crate::endpoint::Peer::forget_ping).
        TooMany => "too many pings wait for their pongs; wait for some of them",
    }
}

error_enum! {
    /// The reason why an out-of-band message cannot be sent.
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
        /// Eight such messages wait to be sent, or there is no memory for another.
        TooMany => "too many out-of-band messages wait; try again later",
    }
}

error_enum! {
    /// The reason why a peer rejects a setting, which then has no effect.
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
        /// The advertisement has more than 399 bytes, including its length prefix if there is one.
        AdvertisementTooLong => "an advertisement has at most 399 bytes with the length before it; shorten it",
        /// The password has more than 255 bytes.
        PasswordTooLong => "a password has at most 255 bytes; shorten it",
        /// The connection does not exist, or has ended.
        NoConnection => "the connection does not exist, or has ended",
        /// There are more addresses than the configuration lists.
        TooManyAddresses => "the configuration lists fewer addresses; raise `address_count`, to at most 20",
        /// There is no memory for the addresses.
        NoMemory => "there is no memory for the addresses; configure more blocks",
    }
}

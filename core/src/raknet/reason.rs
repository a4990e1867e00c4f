//! Why connections do not open, why they end, and why a peer does not do what only RakNet's applications ask.

use super::wire::offline::Refusal;

/// Why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// Nothing came back.
    NoAnswer,
    /// The system or a router reports that nothing can be reached at the address: nothing listens at the port, or no route
    /// leads to the host. Only drivers that call
    /// [`handle_unreachable`](crate::endpoint::Peer::handle_unreachable) notice that; elsewhere it is [`NoAnswer`](Self::NoAnswer).
    Unreachable,
    /// The server answered, and then the handshake went no further: the server is of another kind, too busy, or something
    /// between the two passes small datagrams alone.
    HandshakeTimeout,
    /// The server refused.
    Refused(Refusal),
    /// The server speaks another version of the protocol than the one that the application insists on, or none that it
    /// names.
    IncompatibleProtocol {
        /// The version that the server named.
        server: u8,
    },
    /// The server named another version of the protocol, and has not answered to that one. Some servers hear nothing from
    /// an address for 10 to 20 seconds after a request with another version.
    SilentSinceIncompatible {
        /// The version that the server named, with which to try again.
        server: u8,
    },
    /// The server wants an encrypted connection.
    SecurityRequired,
    /// The client wants an encrypted connection, and the server has no security.
    ServerWithoutSecurity,
    /// The server wants a client that shows its identity, which only an encrypted connection can.
    IdentityRequired,
    /// The server says that the identity of the client is not right, or that its connect token belongs to another one.
    InvalidIdentity,
    /// The server has another public key than the client expects, or says so.
    PublicKeyMismatch,
    /// The server wants another password or connect token: a token that has expired, was used before, or is for another server or
    /// of another backend gets this answer. The server's event [`Refused`](crate::endpoint::Event::Refused) says which. If both peers dialled each other at once: one of them does.
    InvalidPassword,
    /// The server ended the connection before it was open.
    Closed,
    /// The application gave up.
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
            ConnectFailure::Refused(Refusal::AttemptFailed) => $write!($f, "the server gave the attempt up"),
            ConnectFailure::Refused(Refusal::AlreadyConnected) => {
                $write!($f, "the server has a connection of this address or GUID already")
            }
            ConnectFailure::Refused(Refusal::NoFreeIncomingConnections) => $write!($f, "the server is full"),
            ConnectFailure::Refused(Refusal::Banned) => $write!($f, "the server has banned this address"),
            ConnectFailure::Refused(Refusal::RecentlyConnected) => {
                $write!($f, "this address connected a moment ago; try again later")
            }
            ConnectFailure::IncompatibleProtocol { server } => {
                $write!($f, "the server speaks protocol version {}", server)
            }
            ConnectFailure::SilentSinceIncompatible { server } => $write!(
                $f,
                "the server speaks protocol version {} and has been silent since it said so; it may hear nothing from \
                 this address for 20 s after a request with another version",
                server
            ),
            ConnectFailure::SecurityRequired => $write!($f, "the server wants an encrypted connection"),
            ConnectFailure::ServerWithoutSecurity => $write!($f, "the server has no security"),
            ConnectFailure::IdentityRequired => $write!($f, "the server wants to know the client's identity"),
            ConnectFailure::InvalidIdentity => {
                $write!($f, "the server does not believe the client's identity, or the connect token belongs to another client")
            }
            ConnectFailure::PublicKeyMismatch => $write!($f, "the server has another public key"),
            ConnectFailure::InvalidPassword => {
                $write!(
                    $f,
                    "the server wants another password, or a connect token that is its own, has not expired and was not used"
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
    /// Why a connection ended.
    #[non_exhaustive]
    pub enum DisconnectReason {
        /// This application asked for it.
        Local => "this side disconnected",
        /// The other peer sent its disconnection notification.
        Remote => "the other peer disconnected",
        /// The other peer fell silent.
        Lost => "the other peer fell silent",
        /// A message of the other peer can never fit into the memory that one connection may take.
        MessageTooLarge => "a message of the other peer is larger than a connection may hold",
        /// The other peer has ended the connection because it cannot hold a message of this side. Peers of this crate say so.
        SentTooLarge => "the other peer cannot hold a message as large as one that this side sent",
        /// The path to the other peer has become too narrow for the parts of a message of this side: they are lost, also in fragments,
        /// while smaller datagrams arrive, and cannot be cut again because some of them have arrived, or may have.
        PathTooNarrow => "the path has become too narrow for a message that was sent in parts",
        /// The other peer leaves gaps that hold more memory than one connection may take.
        ReceiveMemory => "the other peer left gaps that hold too much memory",
    }
}

error_enum! {
    /// Why a ping cannot be sent.
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
        /// Too many pings wait for their pongs; give some up with
        /// [`Peer::forget_ping`](crate::endpoint::Peer::forget_ping).
        TooMany => "too many pings wait for their pongs",
    }
}

error_enum! {
    /// Why an out-of-band message cannot be sent.
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
        /// It has no bytes, or more than 399.
        BadLength => "an out-of-band message has 1 to 399 bytes",
        /// Eight such messages wait to be sent, or there is no memory for another.
        TooMany => "too many out-of-band messages wait; try again later",
    }
}

error_enum! {
    /// Why a peer does not take a setting; nothing changed then.
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
        /// The advertisement has more than 399 bytes, with the length before it if there is one.
        AdvertisementTooLong => "an advertisement has at most 399 bytes with the length before it; shorten it",
        /// The password has more than 255 bytes.
        PasswordTooLong => "a password has at most 255 bytes; shorten it",
        /// There is no such connection, or nothing is left of it.
        NoConnection => "nothing is left of this connection",
        /// There are more addresses than the configuration lists.
        TooManyAddresses => "the configuration lists fewer addresses; raise `address_count`, to at most 20",
        /// There is no memory for the addresses.
        NoMemory => "there is no memory for the addresses",
    }
}

//! Why a peer does not do what its application asks.

error_enum! {
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
    #[non_exhaustive]
    pub enum ConnectError {
        /// A connection with this address exists already.
        AlreadyConnected => "a connection with this address exists already",
        /// The address is that of nobody: its port or its IP address is zero.
        UnassignedAddress => "an address to connect to has a port and an IP address other than zero",
        /// The largest MTU of the configuration is not one of 576 to 1492 bytes; only in RakNet.
        InvalidMtu => "the largest MTU must be 576 to 1492 bytes",
        /// Every connection slot is taken.
        Full => "every connection slot is taken",
        /// The password is longer than 255 bytes; only in RakNet.
        PasswordTooLong => "a password has at most 255 bytes",
        /// A secure connection is wanted, and the configuration has no security; only in RakNet.
        NoSecurity => "a secure connection needs a configuration with security",
        /// The client has an identity, which only a secure connection shows, and is not told which server to trust; only in
        /// RakNet. Give `ConnectOptions::trust`, or leave out the identity for a plain connection.
        IdentityWithoutTrust => "an identity is for secure connections: say which server to trust, or leave it out",
        /// The data of an identity is longer than 95 bytes, or there is no identity to send it with; only in RakNet.
        InvalidIdentityData => "the data of an identity has at most 95 bytes, and needs an identity",
        /// There is no memory to keep the password until it is sent; only in RakNet.
        NoMemory => "there is no memory for the password",
    }
}

error_enum! {
    /// Why a peer does not become one of several that partition the ids of connections.
    ///
    /// ```
    /// use rakwire::endpoint::PartitionError;
    /// use rakwire::raknet::{Config, Peer, Resources};
    ///
    /// let mut resources = Resources::<1, 32, 128>::new();
    /// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// assert_eq!(peer.partition_ids(2, 2), Err(PartitionError::NoSuchPeer)); // the second one of two has number 1
    /// ```
    #[non_exhaustive]
    pub enum PartitionError {
        /// The number is not below that of the peers.
        NoSuchPeer => "the number of a peer must be below that of all peers",
        /// An id was given to a connection already, or a part was set before. Partition ids before there are connections.
        InUse => "ids are in use; partition them before there are connections",
    }
}

error_enum! {
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
    #[non_exhaustive]
    pub enum SendError {
        /// The connection does not exist, is not open yet or is ending.
        NotConnected => "the connection is not open",
        /// A message has at least one byte; in RakNet that is its id.
        Empty => "a message must have at least one byte",
        /// RakNet: the first byte is below 0x1B and belongs to RakNet itself.
        ReservedId => "the first byte is below 0x1B and belongs to RakNet itself",
        /// The Game Protocol: the message is longer than 129,024 bytes, which is 256 chunks. Send it in several.
        TooLong => "a message has at most 129,024 bytes; send it in several",
        /// The message takes more memory than one connection may ever hold. Send it in pieces, or give the peer more
        /// blocks. In RakNet the memory that a channel takes when it is first used counts too: the channels 0 to 3 take
        /// none.
        NeverFits => "the message is larger than one connection may hold; send it in pieces",
        /// This connection holds as much as it may beside others; try again when some of it was acknowledged.
        /// [`Peer::poll_writable`](super::Peer::poll_writable) tells when.
        QuotaExceeded => "the connection holds as much as it may; try again later",
        /// The message needs more than what is guaranteed to a connection, and all connections together have left less;
        /// try again when [`Peer::poll_writable`](super::Peer::poll_writable) names this one.
        PoolExhausted => "the peer holds as much as it can; try again later",
        /// RakNet: what the message needs was left out of the build: the feature `splitting` for one that is longer than a
        /// datagram, `sequencing` for one of which only the newest counts, `channels` for one on a channel from 4 on.
        LeftOut => "this build leaves out what the message needs",
        /// A hook does not let this message through.
        Filtered => "a hook does not let this message through",
    }
}

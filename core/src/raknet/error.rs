//! Why a peer does not do what only RakNet's applications ask.

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

//! Why a peer does not do what only RakNet's applications ask.

error_enum! {
    /// Why a ping cannot be sent.
    ///
    /// ```
    /// assert_eq!(rakwire::raknet::PingError::TooMany.to_string(), "too many pings wait for their pongs");
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
    /// use rakwire::raknet::OutOfBandError;
    ///
    /// assert_eq!(OutOfBandError::BadLength.to_string(), "an out-of-band message has 1 to 399 bytes");
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
    }
}

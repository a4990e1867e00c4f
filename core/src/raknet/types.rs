//! The protocol's name among types, and how a connection is opened.

use core::time::Duration;

/// RakNet, as a [`Protocol`](crate::endpoint::Protocol).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RakNet;

/// How one connection is opened, where that differs from the configuration.
///
/// ```
/// use core::time::Duration;
/// use rakwire::Instant;
/// use rakwire::raknet::{Config, ConnectError, ConnectOptions, Peer, Resources};
///
/// let mut resources = Resources::<1, 32, 128>::new();
/// let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
/// let to = ([192, 0, 2, 1], 19132).into();
/// let options = ConnectOptions { password: &[b'x'; 256], ..Default::default() };
/// assert_eq!(peer.connect_with(Instant::ZERO, to, &options), Err(ConnectError::PasswordTooLong));
/// let options = ConnectOptions { password: b"secret", timeout: Some(Duration::from_secs(3)), ..Default::default() };
/// assert!(peer.connect_with(Instant::ZERO, to, &options).is_ok());
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectOptions<'p> {
    /// What the server asks for, 0 to 255 bytes. It crosses the network in the clear, except in a secure connection.
    /// `Debug` does not show it.
    pub password: &'p [u8],
    /// Whom to take for the server, for a secure connection or none at all. Default: none, for a plain connection. It needs a
    /// configuration with [`security`](super::Config::security).
    #[cfg(feature = "secure")]
    pub trust: Option<crate::secure::ServerTrust>,
    /// The key by which the server knows this client in a secure connection. Default: that of
    /// [`Security::identity`](super::Security::identity). It needs `trust`.
    #[cfg(feature = "secure")]
    pub identity: Option<&'p crate::secure::StaticKey>,
    /// What the server gets with the identity, encrypted with it and bound to it: 0 to
    /// [`MAX_IDENTITY_DATA`](crate::secure::MAX_IDENTITY_DATA) bytes, which
    /// [`ClientIdentity::data`](crate::secure::ClientIdentity::data) has there. It needs an identity, of these options or of the
    /// configuration.
    #[cfg(feature = "secure")]
    pub identity_data: &'p [u8],
    /// The protocol version to announce, and no other. Default: the one that the server named in its last answer (with the
    /// feature `alloc`), or else that of the configuration; and if the server turns out to speak another one, that.
    pub protocol_version: Option<u8>,
    /// How long the attempt may take until the connection is open. Default: what `attempts` and `interval` make of it, or
    /// 21 s after the server named another version, and then the configuration's `handshake_timeout`. The first request
    /// is repeated all that time.
    pub connect_timeout: Option<Duration>,
    /// How often the first request is repeated, at least 3.
    pub attempts: Option<u8>,
    /// The time between two first requests, at most 71 minutes; more counts as that.
    pub interval: Option<Duration>,
    /// How long the other peer may stay silent once the connection is open.
    pub timeout: Option<Duration>,
}

debug_without_secrets! {
    ConnectOptions<'_> as "ConnectOptions";
    shown: #[cfg(feature = "secure")] trust, #[cfg(feature = "secure")] identity,
        #[cfg(feature = "secure")] identity_data, protocol_version, connect_timeout, attempts,
        interval, timeout;
    hidden: password;
}

impl ConnectOptions<'_> {
    /// Whether the connection is to be secure or none at all.
    pub(crate) const fn wants_security(&self) -> bool {
        #[cfg(feature = "secure")]
        let wants = self.trust.is_some();
        #[cfg(not(feature = "secure"))]
        let wants = false;
        wants
    }
}

//! The errors of opening a connection.

use rakwire::endpoint::{self, Protocol};

/// The reason why a connection could not be opened.
///
/// ```
/// use rakwire::raknet::{self, ConnectFailure, ConnectOptions, RakNet};
/// use rakwire_embassy::raknet::ConnectError;
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
/// # let (client, _server) = loopback::peers::<RakNet>(stack);
/// let options = ConnectOptions { protocol_version: Some(99), ..Default::default() };
/// let failed = client.connect_with(loopback::SERVER, &options).await;
/// let failure = ConnectFailure::IncompatibleProtocol { server: 11 };
/// assert_eq!(failed.err(), Some(ConnectError::Failed(failure)));
///
/// let connection = client.connect(loopback::SERVER).await?;
/// let second = client.connect(loopback::SERVER).await;
/// assert_eq!(second.err(), Some(ConnectError::NotStarted(raknet::ConnectError::AlreadyConnected)));
/// # Ok(()) }) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError<P: Protocol> {
    /// The attempt was not started, for example because all slots are in use or the remote peer is already connected.
    NotStarted(endpoint::ConnectError),
    /// The attempt failed for this reason.
    Failed(P::ConnectFailure),
}

impl<P: Protocol> core::fmt::Display for ConnectError<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotStarted(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl<P: Protocol> core::error::Error for ConnectError<P> {}

// A derived implementation would require `P: Format`.
#[cfg(feature = "defmt")]
impl<P: Protocol> defmt::Format for ConnectError<P> {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self {
            Self::NotStarted(error) => defmt::write!(f, "NotStarted({})", error),
            Self::Failed(failure) => defmt::write!(f, "Failed({})", failure),
        }
    }
}

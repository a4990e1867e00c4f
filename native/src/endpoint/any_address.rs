//! Connections to a server that has several addresses.

use std::net::SocketAddr;

use rakwire::endpoint::Protocol;

use super::{ConnectError, Connection, Endpoint};

impl<P: Protocol> Endpoint<P> {
    /// Opens a connection to the first of these addresses at which a server answers, and waits until it is open: those of a name,
    /// as [`lookup`](crate::lookup) finds them. The next address is tried when an attempt has had no answer, which is at once if
    /// [nothing can be reached](super::Options::hears_unreachable) there or the socket has another address family, and otherwise
    /// after the timeouts of [`connect`](Self::connect). A server that refuses has answered.
    ///
    /// A socket of this machine reaches IPv4 and IPv6 if it is bound to `[::]:0`.
    ///
    /// # Errors
    /// Those of [`connect_with`](Self::connect_with), for the last address that was tried; [`ConnectError::UnassignedAddress`]
    /// without addresses.
    ///
    /// ```
    /// use rakwire_native::{ConnectOptions, Endpoint, Options, lookup};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let addresses = lookup(&format!("localhost:{}", server.local_addr().port())).await?;
    /// let connection = client.connect_any(&addresses, &ConnectOptions::default()).await?;
    /// assert_eq!(connection.remote(), server.local_addr());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect_any(
        &self,
        addresses: &[SocketAddr],
        options: &P::ConnectOptions<'_>,
    ) -> Result<Connection<P>, ConnectError<P::ConnectFailure>> {
        let mut failed = ConnectError::UnassignedAddress;
        for address in addresses {
            match self.connect_with(*address, options).await {
                Err(error) if was_unanswered::<P>(&error) => failed = error,
                result => return result,
            }
        }
        Err(failed)
    }
}

/// Whether no server answered at the address of an attempt, so that one may at another address.
fn was_unanswered<P: Protocol>(error: &ConnectError<P::ConnectFailure>) -> bool {
    match error {
        ConnectError::AddressFamily => true,
        ConnectError::Failed(failure) => P::was_unanswered(failure),
        ConnectError::AlreadyConnected
        | ConnectError::Full
        | ConnectError::UnassignedAddress
        | ConnectError::InvalidMtu
        | ConnectError::PasswordTooLong
        | ConnectError::NoSecurity
        | ConnectError::IdentityWithoutTrust
        | ConnectError::InvalidIdentityData
        | ConnectError::EndpointClosed
        | ConnectError::Disconnected => false,
    }
}

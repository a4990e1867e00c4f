//! Why an endpoint could not be bound.

use std::io;
use std::net::SocketAddr;

/// Why an endpoint could not be bound.
///
/// ```
/// use rakwire_native::{BindError, Endpoint, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let first = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let second = Endpoint::bind(first.local_addr(), Options::client()?).await;
/// assert!(matches!(second, Err(BindError::Socket { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The host name could not be resolved.
    #[error("the name cannot be resolved: {0}")]
    Resolve(#[source] io::Error),
    /// The host name has no address.
    #[error("the name has no address")]
    NoAddress,
    /// The system could not bind the socket, for example because the port is in use.
    #[error("cannot listen on {address}: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}

//! Why a socket cannot be bound.

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
    /// The name of the address means nothing, or nothing could be asked.
    #[error("the name cannot be resolved: {0}")]
    Resolve(#[source] io::Error),
    /// The name of the address stands for no address.
    #[error("the name has no address")]
    NoAddress,
    /// The system refuses the socket: the port is taken, or the address is not one of this machine.
    #[error("cannot listen on {address}: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

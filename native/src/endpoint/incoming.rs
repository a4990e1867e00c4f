//! Clients that ask for a connection, and for which the application decides.

use std::net::SocketAddr;
use std::sync::Arc;

use rakwire::endpoint::{Client, Decision, Protocol};
use rakwire::raknet::{Guid, RakNet};

use super::shared::Shared;

/// A client that asks for a connection, and has got none yet. [`Endpoint::incoming`](super::Endpoint::incoming) returns it
/// if the endpoint [defers](super::Options::defer_incoming) what becomes of clients.
///
/// Nothing of a connection exists until [`accept`](Self::accept) is called. Dropping it is to [`refuse`](Self::refuse).
///
/// ```
/// use rakwire_native::raknet::{ConnectError, ConnectFailure, Endpoint, Options, Refusal};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut options = Options::server(8)?;
/// options.defer_incoming = true;
/// let server = Endpoint::bind("127.0.0.1:0", options).await?;
/// let address = server.local_addr();
/// let bouncer = server.clone();
/// tokio::spawn(async move {
///     let mut asked = 0;
///     while let Some(incoming) = bouncer.incoming().await {
///         asked += 1;
///         if asked == 1 { incoming.refuse() } else { incoming.accept() }
///     }
/// });
///
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let refused = ConnectFailure::Refused(Refusal::NoFreeIncomingConnections);
/// assert_eq!(client.connect(address).await.err(), Some(ConnectError::Failed(refused)));
/// let here = client.connect(address).await?;
/// let there = server.accept().await.ok_or("the server is closed")?;
/// assert_eq!(there.remote(), client.local_addr());
/// # drop(here);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Incoming<P: Protocol> {
    shared: Arc<Shared<P>>,
    client: Client,
    is_decided: bool,
}

impl<P: Protocol> Incoming<P> {
    pub(super) const fn new(shared: Arc<Shared<P>>, client: Client) -> Self {
        Self { shared, client, is_decided: false }
    }

    /// The address of the client. It has proved it, unless the cookies of RakNet are off.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.client.remote
    }

    /// Lets the client in. Its handshake continues, and [`accept`](super::Endpoint::accept) returns the connection once it
    /// is open. A RakNet client without the password is still turned away, and one that is gone by
    /// now is not returned.
    pub fn accept(self) {
        self.decide(Decision::Accept);
    }

    /// Tells the client that it gets no connection: in RakNet that there are no free incoming connections (0x14), and in
    /// the Game Protocol END, as a full server does. The client may ask again.
    pub fn refuse(self) {
        self.decide(Decision::Refuse);
    }

    /// Says nothing to the client. It may repeat its request, and comes as another `Incoming` then.
    pub fn ignore(self) {
        self.decide(Decision::Ignore);
    }

    fn decide(mut self, decision: Decision) {
        self.apply(decision);
    }

    fn apply(&mut self, decision: Decision) {
        self.is_decided = true;
        let remote = self.client.remote;
        self.shared.act_on_drop(move |state, now| state.decide(now, remote, decision));
    }
}

impl Incoming<RakNet> {
    /// The GUID of the client, which it chose itself. The protocol's version is not known here: it is in the client's first
    /// request, of which a server keeps nothing.
    #[must_use]
    pub fn guid(&self) -> Guid {
        Guid(self.client.guid.unwrap_or_default())
    }
}

impl<P: Protocol> Drop for Incoming<P> {
    fn drop(&mut self) {
        if !self.is_decided {
            self.apply(Decision::Refuse);
        }
    }
}

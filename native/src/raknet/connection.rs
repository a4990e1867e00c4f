//! What only RakNet connections have: receipts, progress, a GUID and a timeout of their own.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::{Guid, Outcome, Progress, RakNet, Receipt, SetError};

use crate::endpoint::Connection;

impl Connection<RakNet> {
    /// The smoothed round-trip time; `None` before the first measurement, and once the connection has ended. It contains the
    /// other peer's wait before it acknowledges.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// println!("{:?}", connection.rtt());
    /// connection.disconnect().await;
    /// assert_eq!(connection.rtt(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.stats().map(|stats| stats.round_trip).filter(|rtt| !rtt.is_zero())
    }

    /// The MTU of new datagrams, with 28 bytes of IP and UDP headers; `None` once the connection has ended.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(connection.mtu(), Some(1_492));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn mtu(&self) -> Option<u16> {
        self.stats().map(|stats| stats.mtu)
    }

    /// Waits for the next outcome of a message that was sent with receipt. Returns `None` once the connection has ended and
    /// all receipts have been received; messages without an outcome until then may or may not have arrived. Unread receipts
    /// use memory until the connection is dropped.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Endpoint, Options, Outcome, Reliability};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// let delivery = Delivery::new(Reliability::ReliableWithReceipt);
    /// let receipt = connection.send(b"\x90state", delivery).await?.ok_or("it has a receipt")?;
    /// assert_eq!(connection.recv_receipt().await, Some((receipt, Outcome::Acknowledged)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.reference.inbox.recv_receipt().await
    }

    /// Waits for the progress of a large message in either direction. Returns `None` once the connection has ended and all
    /// progress has been received.
    ///
    /// Progress is reported every [`progress_interval`](crate::Config::progress_interval) parts, and not at all while that
    /// is 0, the default. Only the latest progress of each message is kept, for at most 64 messages.
    ///
    /// ```
    /// use rakwire_native::{Delivery, Direction, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// let mut options = Options::client()?;
    /// options.config.progress_interval = 16;
    /// let client = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// connection.send(&[0x90; 100_000], Delivery::RELIABLE).await?;
    /// let progress = connection.recv_progress().await.ok_or("the connection has ended")?;
    /// assert_eq!(progress.direction, Direction::Sending);
    /// assert!(progress.done >= 16 && progress.done <= progress.parts);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn recv_progress(&self) -> Option<Progress> {
        self.reference.inbox.recv_progress().await
    }

    /// Waits until the MTU of the connection has changed, because the path carries less than the peers agreed on, and returns
    /// the latest one, with 28 bytes of IP and UDP headers. Returns `None` once the connection has ended.
    ///
    /// [`mtu`](Self::mtu) is the MTU now.
    ///
    /// ```
    /// use rakwire_native::Connection;
    ///
    /// /// Logs how the path of a connection becomes narrower.
    /// async fn log_mtu(connection: &Connection) {
    ///     while let Some(mtu) = connection.mtu_changed().await {
    ///         println!("{}: MTU {mtu}", connection.remote());
    ///     }
    /// }
    /// ```
    pub async fn mtu_changed(&self) -> Option<u16> {
        self.reference.inbox.new_mtu().await
    }

    /// Sets how long the other peer of this connection may be silent while acknowledgements are outstanding, instead of the
    /// `timeout` of the configuration.
    ///
    /// # Errors
    /// [`SetError::NoConnection`] if the connection has ended.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), SetError> {
        self.reference.shared.act(|state, _| state.hooked.peer.set_timeout(self.reference.id, timeout))
    }

    /// The addresses that the other peer has said are its own, without those that it left unassigned; nobody has proved
    /// them. They are known as long as there is a `Connection`.
    ///
    /// ```
    /// use rakwire_native::Connection;
    ///
    /// /// Whether the other peer is behind an address translator.
    /// fn is_translated(connection: &Connection) -> bool {
    ///     !connection.internal_addresses().contains(&connection.remote())
    /// }
    /// ```
    #[must_use]
    pub fn internal_addresses(&self) -> Vec<SocketAddr> {
        self.reference.inbox.internal_addresses()
    }

    /// The GUID of the other peer, which chose it itself.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.identity
    }
}

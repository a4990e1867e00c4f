//! What only a connection of RakNet can do.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::{Guid, Outcome, Progress, RakNet, Receipt, SetError};

use crate::endpoint::Connection;

impl Connection<RakNet> {
    /// What became of the next message that was sent with a receipt reliability; waits until that is known of one.
    /// Nothing once the connection has ended: what was still open then stays unknown. The receipts of an application
    /// that never asks for them take memory until the connection ends.
    ///
    /// ```
    /// use rakwire_native::{Connection, Delivery, Outcome, Reliability, SendError};
    ///
    /// async fn deliver(connection: &Connection, state: &[u8]) -> Result<bool, SendError> {
    ///     let sent = connection.send(state, Delivery::new(Reliability::UnreliableWithReceipt)).await?;
    ///     while let Some((receipt, outcome)) = connection.recv_receipt().await {
    ///         if Some(receipt) == sent {
    ///             return Ok(outcome == Outcome::Acknowledged);
    ///         }
    ///     }
    ///     Ok(false)
    /// }
    /// ```
    pub async fn recv_receipt(&self) -> Option<(Receipt, Outcome)> {
        self.reference.inbox.recv_receipt().await
    }

    /// How far a large message has come that this side sends or receives; waits until one has come further. Nothing once
    /// the connection has ended.
    ///
    /// Progress is told every [`progress_interval`](crate::Config::progress_interval) parts, so none is told while that is
    /// 0, as it is unless changed. A reader that is late gets only the last progress of each message, of 64 messages at
    /// most.
    ///
    /// ```
    /// use rakwire_native::{Connection, Direction, Options};
    ///
    /// fn options() -> std::io::Result<Options> {
    ///     let mut options = Options::client()?;
    ///     options.config.progress_interval = 16;
    ///     Ok(options)
    /// }
    ///
    /// async fn show_download(connection: &Connection) {
    ///     while let Some(progress) = connection.recv_progress().await {
    ///         if progress.direction == Direction::Receiving {
    ///             println!("{} of {} parts", progress.done, progress.parts);
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn recv_progress(&self) -> Option<Progress> {
        self.reference.inbox.recv_progress().await
    }

    /// Sets how long the other peer of this connection may stay silent while it owes an acknowledgement.
    ///
    /// # Errors
    /// [`SetError::NoConnection`] when nothing is left of the connection.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{Connection, SetError};
    ///
    /// fn while_loading(connection: &Connection) -> Result<(), SetError> {
    ///     connection.set_timeout(Duration::from_secs(60))
    /// }
    /// ```
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), SetError> {
        self.reference.shared.act(|state, _| state.hooked.peer.set_timeout(self.reference.id, timeout))
    }

    /// The addresses that the other peer has said are its own, without those that it left unassigned; nobody has proved
    /// them. Empty when nothing is left of the connection.
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
        self.reference.shared.lock().hooked.peer.internal_addresses(self.reference.id).to_vec()
    }

    /// The identity that the other peer gave itself.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.identity
    }
}

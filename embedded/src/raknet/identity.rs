//! GUIDs of peers, and the settings of a RakNet connection.

use core::time::Duration;

use rakwire::raknet::{Guid, Hook, RakNet, SetError};

use crate::connection::Connection;
use crate::handle::Handle;
use crate::reference::ConnectionRef;

impl<'d, H: Hook<RakNet>> Handle<'d, RakNet, H> {
    /// Returns the GUID of this peer.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.shared.read(|inner| inner.hooked.peer.config().guid)
    }

    /// Returns another reference to the open connection with the peer that has this GUID, if a task has opened or
    /// accepted it.
    ///
    /// ```
    /// use embassy_futures::join::join;
    /// use rakwire::raknet::RakNet;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, server) = loopback::peers::<RakNet>(stack);
    /// let (opened, accepted) = join(client.connect(loopback::SERVER), server.accept()).await;
    /// let (_opened, guest) = (opened?, client.guid());
    /// assert_eq!(accepted.guid(), guest);
    /// let same = server.connection_of(guest).ok_or("the guest is not connected")?;
    /// assert_eq!(same.remote(), accepted.remote());
    /// assert!(client.connection_of(guest).is_none());
    /// # Ok(()) }) }
    /// ```
    #[must_use]
    pub fn connection_of(&self, guid: Guid) -> Option<Connection<'d, RakNet, H>> {
        let (slot, remote) = self.shared.update(|inner, _| {
            let id = inner.hooked.peer.connection_of(guid)?;
            let slot = inner.slots.retain_connected(id)?;
            Some((slot, inner.hooked.peer.connection(id)?.remote))
        })?;
        Some(Connection::new(ConnectionRef::new(self.shared, slot), remote, guid))
    }
}

impl<H: Hook<RakNet>> Connection<'_, RakNet, H> {
    /// Returns the GUID that the remote peer chose for itself. It is not verified.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.identity()
    }

    /// Sets how long the remote peer may be silent while acknowledgements are outstanding. It overrides the `timeout`
    /// of the configuration for this connection.
    ///
    /// # Errors
    /// [`SetError::NoConnection`] if the connection is closed.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), SetError> {
        self.reference
            .update(|hooked, _, id| hooked.peer.set_timeout(id.ok_or(SetError::NoConnection)?, timeout))
    }
}

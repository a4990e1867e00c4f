//! The internal addresses that peers announce in the handshake.

use core::net::SocketAddr;

use rakwire::raknet::{Hook, InternalAddresses, RakNet, SetError};

use crate::connection::Connection;
use crate::handle::Handle;

impl<H: Hook<RakNet>> Handle<'_, RakNet, H> {
    /// Sets the addresses that this peer announces as its own in the handshake of later connections. By default it
    /// announces none. Each address takes 7 or 29 bytes of the blocks.
    ///
    /// ```
    /// use core::net::SocketAddr;
    /// use rakwire::raknet::SetError;
    /// use rakwire_embassy::raknet::Handle;
    ///
    /// /// Announces the address that the interface was configured with.
    /// fn say(handle: &Handle<'_>, own: [u8; 4], port: u16) -> Result<(), SetError> {
    ///     handle.set_internal_addresses(&[SocketAddr::from((own, port))])
    /// }
    /// ```
    ///
    /// # Errors
    /// [`SetError::TooManyAddresses`] if there are more than [`address_count`](rakwire::raknet::Config::address_count),
    /// and [`SetError::NoMemory`] if no block is free.
    pub fn set_internal_addresses(&self, addresses: &[SocketAddr]) -> Result<(), SetError> {
        self.shared.update(|inner, _| inner.hooked.peer.set_internal_addresses(addresses))
    }
}

impl<H: Hook<RakNet>> Connection<'_, RakNet, H> {
    /// Returns the addresses that the remote peer announced as its own, without unassigned ones. They are not
    /// validated.
    ///
    /// The addresses are available from the moment the connection opens until the first call that waits for a message
    /// or another event. An idle connection therefore needs no memory for them. At any other time the result is empty.
    #[must_use]
    pub fn internal_addresses(&self) -> InternalAddresses {
        self.reference.update(|hooked, _, id| {
            id.map_or_else(InternalAddresses::new, |id| hooked.peer.internal_addresses(id))
        })
    }
}

//! The addresses that peers say are their own.

use core::net::SocketAddr;

use rakwire::raknet::{Hook, InternalAddresses, RakNet, SetError};

use crate::connection::Connection;
use crate::handle::Handle;

impl<H: Hook<RakNet>> Handle<'_, RakNet, H> {
    /// Sets the addresses that this peer says are its own in the handshake of every connection from now on. Without any,
    /// which is the default, it says none. They take 7 or 29 bytes each of the blocks.
    ///
    /// ```
    /// use core::net::SocketAddr;
    /// use rakwire::raknet::SetError;
    /// use rakwire_embassy::raknet::Handle;
    ///
    /// /// Says what the interface was configured with.
    /// fn say(handle: &Handle<'_>, own: [u8; 4], port: u16) -> Result<(), SetError> {
    ///     handle.set_internal_addresses(&[SocketAddr::from((own, port))])
    /// }
    /// ```
    ///
    /// # Errors
    /// [`SetError::TooManyAddresses`] if there are more than the configuration lists, and [`SetError::NoMemory`].
    pub fn set_internal_addresses(&self, addresses: &[SocketAddr]) -> Result<(), SetError> {
        self.shared.update(|inner, _| inner.hooked.peer.set_internal_addresses(addresses))
    }
}

impl<H: Hook<RakNet>> Connection<'_, RakNet, H> {
    /// The addresses that the other peer has said are its own, without those that it left unassigned; nobody has proved
    /// them. They are known from when the connection opens until it is first waited for a message or another event, so that
    /// an idle connection takes no memory for them. Empty at any other time.
    #[must_use]
    pub fn internal_addresses(&self) -> InternalAddresses {
        self.reference.update(|hooked, _, id| {
            id.map_or_else(InternalAddresses::new, |id| hooked.peer.internal_addresses(id))
        })
    }
}

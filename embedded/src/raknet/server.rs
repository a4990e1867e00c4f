//! What only RakNet's servers do (feature `server`).

use rakwire::raknet::{RakNet, SetError};

use crate::handle::Handle;

impl Handle<'_, RakNet> {
    /// Sets what the answers to pings say, 0 to 399 bytes.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`].
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shared.update(|inner, _| inner.peer.set_advertisement(data))
    }
}

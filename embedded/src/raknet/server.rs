//! RakNet servers (feature `server`).

use rakwire::raknet::{RakNet, SetError};

use crate::handle::Handle;

impl Handle<'_, RakNet> {
    /// Sets the data of pongs, 0 to 399 bytes.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`]; the data does not change then.
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shared.update(|inner, _| inner.peer.set_advertisement(data))
    }
}

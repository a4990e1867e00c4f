//! What a peer tells and asks those that want to connect (feature `server`).

use super::bans::BanList;
use super::error::SetError;
use super::state::Bans;
use super::types::RakNet;
use crate::endpoint::Peer;

impl<'a> Peer<'a, RakNet> {
    /// Sets what the answers to pings say, 0 to 399 bytes, or 397 where the configuration's
    /// [`pong_framing`](crate::raknet::Config::pong_framing) has them begin with their length.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`].
    pub fn set_advertisement(&mut self, data: &[u8]) -> Result<(), SetError> {
        if self.state.responder.advertise(&self.config, data) {
            Ok(())
        } else {
            Err(SetError::AdvertisementTooLong)
        }
    }

    /// Sets the password that clients must give, 0 to 255 bytes; empty means none.
    ///
    /// # Errors
    /// [`SetError::PasswordTooLong`].
    pub fn set_password(&mut self, password: &[u8]) -> Result<(), SetError> {
        self.state.password = heapless::Vec::from_slice(password).map_err(|_| SetError::PasswordTooLong)?;
        Ok(())
    }

    /// Lends the list of addresses that may not connect. Without one, nobody is banned.
    pub fn lend_bans(&mut self, bans: &'a mut BanList) {
        self.state.bans = Bans::Lent(bans);
    }

    /// The list of addresses that may not connect, to change. With the feature `alloc` it is made when it is first
    /// asked for; without it, it is the one that was lent.
    pub fn bans_mut(&mut self) -> Option<&mut BanList> {
        #[cfg(feature = "alloc")]
        if matches!(self.state.bans, Bans::None) {
            self.state.bans = Bans::Owned(alloc::boxed::Box::default());
        }
        match &mut self.state.bans {
            Bans::None => None,
            Bans::Lent(bans) => Some(bans),
            #[cfg(feature = "alloc")]
            Bans::Owned(bans) => Some(bans),
        }
    }
}

//! What a peer says to others without a connection (feature `unconnected`).

use core::net::SocketAddr;

use super::connection::BlockHeader;
use super::error::{OutOfBandError, PingError};
use super::responder::Answerers;
use super::types::RakNet;
use super::wire::id;
use super::wire::offline::{MAX_OUT_OF_BAND_DATA, PingScope};
use crate::endpoint::Peer;
use crate::time::Instant;

impl Peer<'_, RakNet> {
    /// Pings the server at `to` for its advertisement, which comes with [`Event::Pong`](crate::endpoint::Event::Pong). A
    /// lost ping is not repeated.
    ///
    /// # Errors
    /// [`PingError::TooMany`] when eight pings wait for their pongs.
    pub fn ping(&mut self, now: Instant, to: SocketAddr) -> Result<(), PingError> {
        self.ping_as(now, to, Answerers::One, PingScope::Any)
    }

    /// Pings every server that a datagram to `to`, a broadcast or multicast address, reaches. Each answer of the next five
    /// seconds is an [`Event::Pong`](crate::endpoint::Event::Pong).
    ///
    /// # Errors
    /// [`PingError::TooMany`] when eight pings wait for their pongs.
    pub fn discover(&mut self, now: Instant, to: SocketAddr, scope: PingScope) -> Result<(), PingError> {
        self.ping_as(now, to, Answerers::Many, scope)
    }

    fn ping_as(
        &mut self,
        now: Instant,
        to: SocketAddr,
        answerers: Answerers,
        scope: PingScope,
    ) -> Result<(), PingError> {
        self.advance(now);
        if self.state.responder.ping(to, answerers, scope, self.last_now) {
            Ok(())
        } else {
            Err(PingError::TooMany)
        }
    }

    /// Sends `data`, 1 to 399 bytes, once to a peer without a connection, which gets it only if it
    /// [accepts](crate::raknet::OutOfBand::Accept) such messages.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing was kept then.
    pub fn send_out_of_band(
        &mut self,
        now: Instant,
        to: SocketAddr,
        data: &[u8],
    ) -> Result<(), OutOfBandError> {
        self.advance(now);
        if data.is_empty() || data.len() > MAX_OUT_OF_BAND_DATA {
            return Err(OutOfBandError::BadLength);
        }
        let stored = self.tables.pool.store_common(data, &BlockHeader::default());
        let stored = stored.ok_or(OutOfBandError::TooMany)?;
        if self.state.responder.out_of_band(to, stored) {
            return Ok(());
        }
        self.tables.pool.free_common(stored);
        Err(OutOfBandError::TooMany)
    }

    /// Makes this peer known to one without a connection, with `data`, 0 to 398 bytes, of the application.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing was kept then.
    pub fn advertise(&mut self, now: Instant, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        let mut message = [id::ADVERTISE_SYSTEM; MAX_OUT_OF_BAND_DATA];
        let rest = message.get_mut(1..=data.len()).ok_or(OutOfBandError::BadLength)?;
        rest.copy_from_slice(data);
        let message = message.get(..=data.len()).ok_or(OutOfBandError::BadLength)?;
        self.send_out_of_band(now, to, message)
    }

    /// Gives up waiting for a pong from `to`.
    pub fn forget_ping(&mut self, to: SocketAddr) {
        self.state.responder.forget_ping(to);
    }
}

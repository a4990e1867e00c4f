//! Questions to servers without a connection (feature `unconnected`).

use core::future::poll_fn;
use core::net::SocketAddr;

use embassy_time::{Duration, Instant, with_deadline};
use rakwire::raknet::{self, PingScope};

use super::error::PingError;
use super::handle::Handle;
use super::protocol::RakNet;
use super::received::Pong;
use crate::shared::Shared;

impl<'d> Handle<'d> {
    /// Asks the server at `to` what it says of itself.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] when nothing came within `patience`, [`PingError::TooMany`].
    pub async fn ping(&self, to: SocketAddr, patience: Duration) -> Result<Pong<'d>, PingError> {
        let asked = self.shared.act(|inner, now| inner.peer.ping(now, to));
        let answer = self.answer(asked, patience).await;
        if answer.is_err() {
            self.shared.act(|inner, _| inner.peer.forget_ping(to));
        }
        answer
    }

    /// Asks all servers that hear a datagram to `to`, the broadcast address of the network with the port of the game,
    /// and returns the first answer.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] when nothing came within `patience`, [`PingError::TooMany`].
    ///
    /// ```
    /// use core::net::{Ipv4Addr, SocketAddr};
    /// use rakwire_embassy::raknet::{Handle, PingError};
    ///
    /// async fn find(handle: Handle<'static>) -> Result<SocketAddr, PingError> {
    ///     let everybody = SocketAddr::from((Ipv4Addr::BROADCAST, 19132));
    ///     Ok(handle.discover(everybody, embassy_time::Duration::from_secs(1)).await?.from())
    /// }
    /// ```
    pub async fn discover(&self, to: SocketAddr, patience: Duration) -> Result<Pong<'d>, PingError> {
        let asked = self.shared.act(|inner, now| inner.peer.discover(now, to, PingScope::Any));
        self.answer(asked, patience).await
    }

    async fn answer(
        &self,
        asked: Result<(), raknet::PingError>,
        patience: Duration,
    ) -> Result<Pong<'d>, PingError> {
        asked.map_err(|_| PingError::TooMany)?;
        let _pinger = Pinger::new(self.shared);
        let pong = poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_stranger()));
        let news = with_deadline(Instant::now() + patience, pong).await;
        Ok(Pong::new(self.shared, news.map_err(|_| PingError::NoAnswer)?))
    }
}

/// Counts one who waits for a pong, so that none is thrown away.
struct Pinger<'d> {
    shared: &'d Shared<'d, RakNet>,
}

impl<'d> Pinger<'d> {
    fn new(shared: &'d Shared<'d, RakNet>) -> Self {
        shared.act(|inner, _| inner.listeners = inner.listeners.saturating_add(1));
        Self { shared }
    }
}

impl Drop for Pinger<'_> {
    fn drop(&mut self) {
        self.shared.act(|inner, _| inner.listeners = inner.listeners.saturating_sub(1));
    }
}

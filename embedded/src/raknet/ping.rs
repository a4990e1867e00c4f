//! Pings to servers without a connection (feature `unconnected`).

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;
use core::time::Duration;

use embassy_time::with_timeout;
use rakwire::raknet::{self, Event, Guid, PingScope, RakNet};

use crate::handle::Handle;
use crate::read_guard::ReadGuard;
use crate::shared::{Inner, Shared};

/// A pong, whose bytes are lent by the peer.
#[derive(Clone, Copy, Debug)]
struct PongNotice {
    from: SocketAddr,
    guid: Guid,
    latency: Duration,
}

/// A server's advertisement. It should be dropped soon, as a [`Received`](super::Received).
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire_embassy::raknet::Pong;
///
/// /// The address of a server of our game.
/// fn ours(pong: &Pong<'_>) -> Option<SocketAddr> {
///     let mut buffer = [0; 64];
///     pong.copy_to(&mut buffer)?.starts_with(b"our game").then_some(pong.from())
/// }
/// ```
#[derive(Debug)]
#[must_use = "it is gone when this is dropped"]
pub struct Pong<'d> {
    bytes: ReadGuard<'d, RakNet>,
    notice: PongNotice,
}

impl Pong<'_> {
    /// Where the server is.
    #[must_use]
    pub const fn from(&self) -> SocketAddr {
        self.notice.from
    }

    /// Who the server is.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.notice.guid
    }

    /// From the ping to the pong.
    #[must_use]
    pub const fn latency(&self) -> Duration {
        self.notice.latency
    }

    /// Copies what the server says, 0 to 399 bytes, to the front of `buffer`; nothing when it does not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.bytes.read(|message| message.copy_to(buffer))
    }
}

/// Why nobody answered a ping.
///
/// ```
/// assert_eq!(rakwire_embassy::raknet::PingError::NoAnswer.to_string(), "no answer came in time");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PingError {
    /// Eight pings wait for their answers already.
    TooMany,
    /// No answer came in time.
    NoAnswer,
}

impl core::fmt::Display for PingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many pings wait for their answers",
            Self::NoAnswer => "no answer came in time",
        })
    }
}

impl core::error::Error for PingError {}

impl<'d> Handle<'d, RakNet> {
    /// Pings the server at `to` for its advertisement.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] when nothing came within `timeout`, [`PingError::TooMany`].
    pub async fn ping(&self, to: SocketAddr, timeout: embassy_time::Duration) -> Result<Pong<'d>, PingError> {
        let sent = self.shared.update(|inner, now| inner.peer.ping(now, to));
        let answer = self.pong(sent, timeout).await;
        if answer.is_err() {
            self.shared.update(|inner, _| inner.peer.forget_ping(to));
        }
        answer
    }

    /// Asks all servers that hear a datagram to `to`, the broadcast address of the network with the port of the game,
    /// and returns the first answer.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] when nothing came within `timeout`, [`PingError::TooMany`].
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
    pub async fn discover(
        &self,
        to: SocketAddr,
        timeout: embassy_time::Duration,
    ) -> Result<Pong<'d>, PingError> {
        let sent = self.shared.update(|inner, now| inner.peer.discover(now, to, PingScope::Any));
        self.pong(sent, timeout).await
    }

    async fn pong(
        &self,
        sent: Result<(), raknet::PingError>,
        timeout: embassy_time::Duration,
    ) -> Result<Pong<'d>, PingError> {
        sent.map_err(|_| PingError::TooMany)?;
        let _pinger = Pinger::new(self.shared);
        let pong = poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_pong()));
        let notice = with_timeout(timeout, pong).await.map_err(|_| PingError::NoAnswer)?;
        Ok(Pong { bytes: ReadGuard::new(self.shared), notice })
    }
}

impl Inner<'_, RakNet> {
    /// The next pong, if one has arrived.
    fn poll_pong(&mut self) -> Poll<PongNotice> {
        if self.is_lending {
            return Poll::Pending;
        }
        while let Some(event) = self.peer.poll_unconnected() {
            if let Event::Pong { from, identity: guid, latency, .. } = event {
                self.is_lending = true;
                return Poll::Ready(PongNotice { from, guid, latency });
            }
        }
        Poll::Pending
    }
}

/// Counts a task that waits for a pong, so that none is thrown away.
struct Pinger<'d> {
    shared: &'d Shared<'d, RakNet>,
}

impl<'d> Pinger<'d> {
    fn new(shared: &'d Shared<'d, RakNet>) -> Self {
        shared.update(|inner, _| inner.pingers = inner.pingers.saturating_add(1));
        Self { shared }
    }
}

impl Drop for Pinger<'_> {
    fn drop(&mut self) {
        self.shared.update(|inner, _| inner.pingers = inner.pingers.saturating_sub(1));
    }
}

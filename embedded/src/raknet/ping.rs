//! Unconnected pings and discovery (feature `unconnected`).

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;
use core::time::Duration;

use embassy_time::with_timeout;
use rakwire::raknet::{self, Event, Guid, Hook, PingScope, RakNet, UnconnectedEvents};

use crate::handle::Handle;
use crate::read_guard::ReadGuard;
use crate::shared::{Inner, Shared};

/// A pong without its data, which remains in the peer's memory.
#[derive(Clone, Copy, Debug)]
struct PongInfo {
    from: SocketAddr,
    guid: Guid,
    latency: Duration,
}

/// The reply of a server to a ping. Drop it soon, like a [`Received`](super::Received).
#[derive(Debug)]
#[must_use = "the pong is lost when this value is dropped"]
pub struct Pong<'d, H: Hook<RakNet> = ()> {
    bytes: ReadGuard<'d, RakNet, H>,
    info: PongInfo,
}

impl<H: Hook<RakNet>> Pong<'_, H> {
    /// Returns the address of the server.
    #[must_use]
    pub const fn from(&self) -> SocketAddr {
        self.info.from
    }

    /// Returns the GUID of the server.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.info.guid
    }

    /// Returns the time between ping and pong.
    #[must_use]
    pub const fn latency(&self) -> Duration {
        self.info.latency
    }

    /// Copies the server's advertisement, 0 to 399 bytes, to the start of `buffer`, and returns that part. Returns
    /// `None` if `buffer` is too short.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.bytes.read(|message| message.copy_to(buffer))
    }
}

/// The reason why a ping failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PingError {
    /// Eight pings are outstanding.
    TooMany,
    /// No pong arrived in time.
    NoAnswer,
}

impl core::fmt::Display for PingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooMany => "too many pings wait for their pongs; wait for some of them",
            Self::NoAnswer => "the server does not answer",
        })
    }
}

impl core::error::Error for PingError {}

impl<'d, H: Hook<RakNet>> Handle<'d, RakNet, H> {
    /// Pings the server at `to` once, and waits for its pong.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] after `timeout`, and [`PingError::TooMany`] if eight pings are outstanding.
    pub async fn ping(
        &self,
        to: SocketAddr,
        timeout: embassy_time::Duration,
    ) -> Result<Pong<'d, H>, PingError> {
        let sent = self.shared.update(|inner, now| inner.hooked.peer.ping(now, to));
        let answer = self.pong(sent, timeout).await;
        if answer.is_err() {
            self.shared.update(|inner, _| inner.hooked.peer.forget_ping(to));
        }
        answer
    }

    /// Pings a broadcast address once, and waits for the first pong of any server.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] after `timeout`, and [`PingError::TooMany`] if eight pings are outstanding.
    ///
    /// ```
    /// use core::net::Ipv4Addr;
    /// use embassy_time::Duration;
    /// use rakwire::raknet::RakNet;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, server) = loopback::peers::<RakNet>(stack);
    /// server.set_advertisement(b"our game")?;
    /// let broadcast = (Ipv4Addr::BROADCAST, loopback::SERVER.port()).into();
    /// let pong = client.discover(broadcast, Duration::from_secs(5)).await?;
    /// assert_eq!(pong.from(), loopback::SERVER);
    /// assert_eq!(pong.copy_to(&mut [0; 64]), Some(&b"our game"[..]));
    /// # Ok(()) }) }
    /// ```
    pub async fn discover(
        &self,
        to: SocketAddr,
        timeout: embassy_time::Duration,
    ) -> Result<Pong<'d, H>, PingError> {
        let sent = self.shared.update(|inner, now| inner.hooked.peer.discover(now, to, PingScope::Any));
        self.pong(sent, timeout).await
    }

    /// Pings a broadcast address once, and calls `found` with each pong that arrives within `time`, at most five
    /// seconds. A server that answers twice is reported twice.
    ///
    /// # Errors
    /// [`PingError::TooMany`] if eight pings are outstanding.
    ///
    /// ```
    /// use core::net::Ipv4Addr;
    /// use embassy_time::Duration;
    /// use rakwire::raknet::{PingScope, RakNet};
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, _server) = loopback::peers::<RakNet>(stack);
    /// let broadcast = (Ipv4Addr::BROADCAST, loopback::SERVER.port()).into();
    /// let mut servers = heapless::Vec::<_, 8>::new();
    /// let time = Duration::from_millis(200);
    /// client
    ///     .discover_all(broadcast, PingScope::OpenConnections, time, |pong| {
    ///         let _ = servers.push(pong.from()); // the first eight are enough
    ///     })
    ///     .await?;
    /// assert_eq!(servers, [loopback::SERVER]);
    /// # Ok(()) }) }
    /// ```
    pub async fn discover_all(
        &self,
        to: SocketAddr,
        scope: PingScope,
        time: embassy_time::Duration,
        mut found: impl FnMut(Pong<'d, H>),
    ) -> Result<(), PingError> {
        let end = embassy_time::Instant::now() + time;
        let mut sent = self.shared.update(|inner, now| inner.hooked.peer.discover(now, to, scope));
        loop {
            let left = end.saturating_duration_since(embassy_time::Instant::now());
            match self.pong(sent, left).await {
                Ok(pong) => found(pong),
                Err(PingError::NoAnswer) => return Ok(()),
                Err(error @ PingError::TooMany) => return Err(error),
            }
            sent = Ok(());
        }
    }

    async fn pong(
        &self,
        sent: Result<(), raknet::PingError>,
        timeout: embassy_time::Duration,
    ) -> Result<Pong<'d, H>, PingError> {
        sent.map_err(|_| PingError::TooMany)?;
        let _pending = PendingPing::new(self.shared);
        let pong = poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_pong()));
        let info = with_timeout(timeout, pong).await.map_err(|_| PingError::NoAnswer)?;
        Ok(Pong { bytes: ReadGuard::new(self.shared), info })
    }
}

impl<H: Hook<RakNet>> Inner<'_, RakNet, H> {
    /// Returns the next pong, if one has arrived.
    fn poll_pong(&mut self) -> Poll<PongInfo> {
        if self.is_lending {
            return Poll::Pending;
        }
        let Some(Event::Pong { from, identity: guid, latency, .. }) =
            self.hooked.poll_unconnected(UnconnectedEvents::Pongs)
        else {
            return Poll::Pending;
        };
        self.is_lending = true;
        Poll::Ready(PongInfo { from, guid, latency })
    }
}

/// Counts a task that waits for a pong, so that the peer keeps pongs for it.
struct PendingPing<'d, H: Hook<RakNet>> {
    shared: &'d Shared<'d, RakNet, H>,
}

impl<'d, H: Hook<RakNet>> PendingPing<'d, H> {
    fn new(shared: &'d Shared<'d, RakNet, H>) -> Self {
        shared.update(|inner, _| inner.pending_pings = inner.pending_pings.saturating_add(1));
        Self { shared }
    }
}

impl<H: Hook<RakNet>> Drop for PendingPing<'_, H> {
    fn drop(&mut self) {
        self.shared.update(|inner, _| inner.pending_pings = inner.pending_pings.saturating_sub(1));
    }
}

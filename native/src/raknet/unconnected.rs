//! Peers without a connection: pings to one server, discovery by broadcast, and messages.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rakwire::raknet::{self, Guid, PingScope, RakNet};
use rakwire_udp::canonical;
use tokio::sync::{mpsc, oneshot};

use crate::endpoint::{Endpoint, Pong, Shared, State, Unconnected, Watch, retry};

/// Interval between broadcast pings.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of servers that one discovery finds.
const MAX_FOUND: usize = 1_024;

/// The reason why a ping got no pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PingError {
    /// No pong arrived within the timeout.
    #[error("the server does not answer")]
    NoAnswer,
    /// The system or a router reports the address unreachable
    /// ([`Options::fail_on_unreachable`](crate::endpoint::Options::fail_on_unreachable)).
    #[error("nothing is listening on this address, or no route leads there")]
    Unreachable,
    /// Pings to eight other addresses are outstanding.
    #[error("too many pings wait for their pongs; wait for some of them")]
    TooMany,
    /// The socket belongs to another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address; bind the endpoint to [::]:0")]
    AddressFamily,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl Endpoint<RakNet> {
    /// Pings the server at `address` once, and waits for its pong for at most `timeout`.
    ///
    /// Up to eight addresses can be pinged at the same time.
    ///
    /// # Errors
    /// Returns [`PingError::NoAnswer`] after `timeout`, and [`PingError::Unreachable`] as soon as that is reported.
    /// Other errors are immediate.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{Endpoint, Options, PingError};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.set_advertisement(b"hello")?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let pong = client.ping(server.local_addr(), Duration::from_secs(60)).await?;
    /// assert_eq!((pong.from, pong.identity), (server.local_addr(), server.guid()));
    /// assert_eq!(pong.data, b"hello");
    ///
    /// let silent = std::net::UdpSocket::bind("127.0.0.1:0")?;
    /// let pong = client.ping(silent.local_addr()?, Duration::from_millis(10)).await;
    /// assert_eq!(pong, Err(PingError::NoAnswer));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ping(&self, address: SocketAddr, timeout: Duration) -> Result<Pong<Guid>, PingError> {
        let address = canonical(address);
        if !self.reaches(address) {
            return Err(PingError::AddressFamily);
        }
        let (sender, receiver) = oneshot::channel();
        let mut pending = PendingPing { shared: &self.shared, address, receiver: Some(receiver) };
        let watch = Watch::new(&self.shared);
        self.shared.act(|state, now| state.ping(now, address, sender))?;
        let Some(receiver) = &mut pending.receiver else { return Err(PingError::NoAnswer) };
        match tokio::time::timeout(timeout, watch.during(receiver)).await {
            Ok(Ok(pong)) => pong.ok_or(PingError::Unreachable),
            Ok(Err(_)) => Err(PingError::EndpointClosed),
            Err(_) => {
                // After a pause of the process, the pong may be waiting in the socket.
                self.shared.receive_waiting();
                let waiting = pending.receiver.as_mut().and_then(|receiver| receiver.try_recv().ok());
                waiting.flatten().ok_or(PingError::NoAnswer)
            }
        }
    }

    /// Pings a broadcast or multicast address every second for a duration of `time`, and returns the first pong of each
    /// server.
    ///
    /// # Errors
    /// Returns [`PingError::TooMany`], [`PingError::AddressFamily`] or [`PingError::EndpointClosed`]. Without a pong
    /// the result is empty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{Endpoint, Options, PingScope};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # if cfg!(not(target_os = "linux")) { return Ok(()) }
    /// let server = Endpoint::bind("0.0.0.0:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    /// // 255.255.255.255 in a real program: this is the broadcast address of the loopback interface on Linux.
    /// let broadcast = ([127, 255, 255, 255], server.local_addr().port()).into();
    /// let pongs = client.discover(broadcast, PingScope::OpenConnections, Duration::from_secs(1)).await?;
    /// assert!(pongs.iter().all(|pong| pong.identity == server.guid()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn discover(
        &self,
        address: SocketAddr,
        scope: PingScope,
        time: Duration,
    ) -> Result<Vec<Pong<Guid>>, PingError> {
        let address = canonical(address);
        if !self.reaches(address) {
            return Err(PingError::AddressFamily);
        }
        let (sender, receiver) = mpsc::channel(MAX_FOUND);
        let mut pending = PendingPing { shared: &self.shared, address, receiver: Some(receiver) };
        let mut found: Vec<Pong<Guid>> = Vec::new();
        let start = Instant::now();
        let mut sent = 0;
        self.shared.act(|state, _| state.dispatcher.pings.broadcasts.push((address, sender)));
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if start.elapsed() >= DISCOVERY_INTERVAL * sent {
                self.shared.act(|state, now| state.send_discovery(now, address, scope))?;
                sent += 1;
            }
            let until_next = (DISCOVERY_INTERVAL * sent).saturating_sub(start.elapsed());
            let Some(receiver) = &mut pending.receiver else { break };
            match tokio::time::timeout(left.min(until_next), receiver.recv()).await {
                Ok(Some(pong)) if found.iter().any(|other| other.from == pong.from) => {}
                Ok(Some(pong)) => found.push(pong),
                Ok(None) => return Err(PingError::EndpointClosed),
                Err(_) => {}
            }
        }
        self.shared.receive_waiting();
        while let Some(pong) = pending.receiver.as_mut().and_then(|receiver| receiver.try_recv().ok()) {
            if found.iter().all(|other| other.from != pong.from) {
                found.push(pong);
            }
        }
        Ok(found)
    }
}

impl State<RakNet> {
    /// Pings the server at `to`. Tasks that ping it at the same time share one datagram.
    fn ping(
        &mut self,
        now: rakwire::Instant,
        to: SocketAddr,
        pong: oneshot::Sender<Option<Pong<Guid>>>,
    ) -> Result<(), PingError> {
        self.may_ping()?;
        if !self.dispatcher.pings.is_pinging(to) {
            self.hooked.peer.ping(now, to).map_err(|_| PingError::TooMany)?;
        }
        self.dispatcher.pings.one.push((to, pong));
        Ok(())
    }

    /// Sends a broadcast ping to `to`.
    fn send_discovery(
        &mut self,
        now: rakwire::Instant,
        to: SocketAddr,
        scope: PingScope,
    ) -> Result<(), PingError> {
        self.may_ping()?;
        self.hooked.peer.discover(now, to, scope).map_err(|_| PingError::TooMany)
    }

    fn may_ping(&mut self) -> Result<(), PingError> {
        self.dispatcher.pings.remove_abandoned();
        if self.is_open() { Ok(()) } else { Err(PingError::EndpointClosed) }
    }

    /// Removes the pings to `to` if no task waits for their pongs.
    fn forget_pings(&mut self, to: SocketAddr) {
        self.dispatcher.pings.remove_abandoned();
        if !self.dispatcher.pings.is_pinging(to) && !self.dispatcher.pings.is_discovering(to) {
            self.hooked.peer.forget_ping(to);
        }
    }
}

/// Removes the ping when the task that waits for the pong ends or is cancelled.
struct PendingPing<'e, R> {
    shared: &'e Shared<RakNet>,
    address: SocketAddr,
    receiver: Option<R>,
}

impl<R> Drop for PendingPing<'_, R> {
    fn drop(&mut self) {
        // This closes the channel, so that the ping counts as abandoned.
        self.receiver = None;
        let address = self.address;
        self.shared.act_on_drop(move |state, _| state.forget_pings(address));
    }
}

/// The reason why a message could not be sent to a peer without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfBandError {
    /// The message is empty or too long.
    #[error("an out-of-band message must have 1 to 399 bytes, an advertisement 0 to 398")]
    BadLength,
    /// The socket belongs to another address family.
    #[error("an IPv4 socket cannot reach an IPv6 address; bind the endpoint to [::]:0")]
    AddressFamily,
    /// The endpoint is closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

impl Endpoint<RakNet> {
    /// Sends `data`, 1 to 399 bytes, once to a peer without a connection.
    ///
    /// The peer ignores it unless it is configured to [accept](rakwire::raknet::OutOfBand::Accept) such messages. Waits
    /// while the send queue is full.
    ///
    /// # Errors
    /// Returns an [`OutOfBandError`] if nothing was sent.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, OutOfBand, OutOfBandError, UnconnectedKind};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::server(8)?;
    /// options.config.out_of_band = OutOfBand::Accept;
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.send_out_of_band(server.local_addr(), b"free?").await?;
    /// let message = server.recv_unconnected().await.ok_or("the server is closed")?;
    /// assert_eq!((message.from, message.identity), (client.local_addr(), client.guid()));
    /// assert_eq!((message.kind, &message.data[..]), (UnconnectedKind::OutOfBand, &b"free?"[..]));
    ///
    /// let too_long = client.send_out_of_band(server.local_addr(), &[0; 400]).await;
    /// assert_eq!(too_long, Err(OutOfBandError::BadLength));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_out_of_band(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(to, |state, now, to| state.hooked.peer.send_out_of_band(now, to, data)).await
    }

    /// Advertises this endpoint once to a peer without a connection, with `data`, 0 to 398 bytes.
    ///
    /// Waits while the send queue is full.
    ///
    /// # Errors
    /// Returns an [`OutOfBandError`] if nothing was sent.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, OutOfBand, UnconnectedKind};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::client()?;
    /// options.config.out_of_band = OutOfBand::Accept;
    /// let client = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.advertise(client.local_addr(), b"join us").await?;
    /// let message = client.recv_unconnected().await.ok_or("the client is closed")?;
    /// assert_eq!((message.kind, message.from), (UnconnectedKind::Advertisement, server.local_addr()));
    /// assert_eq!(message.data, b"join us");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn advertise(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(to, |state, now, to| state.hooked.peer.advertise(now, to, data)).await
    }

    async fn send_unconnected(
        &self,
        to: SocketAddr,
        send: impl Fn(&mut State<RakNet>, rakwire::Instant, SocketAddr) -> Result<(), raknet::OutOfBandError>,
    ) -> Result<(), OutOfBandError> {
        let to = canonical(to);
        if !self.reaches(to) {
            return Err(OutOfBandError::AddressFamily);
        }
        let attempt = |state: &mut State<RakNet>, now| {
            if !state.is_open() {
                return Some(Err(OutOfBandError::EndpointClosed));
            }
            match send(state, now, to) {
                Ok(()) => Some(Ok(())),
                Err(raknet::OutOfBandError::TooMany) => None,
                // The error is non-exhaustive; any other variant would also be about the message.
                Err(raknet::OutOfBandError::BadLength | _) => Some(Err(OutOfBandError::BadLength)),
            }
        };
        retry(&self.shared.unconnected_room, || self.shared.act(attempt)).await
    }

    /// Waits for the next message from a peer without a connection.
    ///
    /// Messages arrive only if the configuration [accepts](rakwire::raknet::OutOfBand::Accept) them. Returns `None` once
    /// the endpoint is closed. If the future is dropped earlier, no message is lost.
    pub async fn recv_unconnected(&self) -> Option<Unconnected<Guid>> {
        let take = || {
            let mut state = self.shared.lock();
            let message = state.dispatcher.unconnected.pop();
            (message.is_some() || !state.is_open()).then_some(message)
        };
        retry(&self.shared.unconnected, take).await
    }
}

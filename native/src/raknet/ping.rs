//! Pings: what servers say of themselves, asked one by one or all that hear a broadcast.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rakwire::raknet::{Guid, PingScope, RakNet};
use tokio::sync::{mpsc, oneshot};

use super::error::PingError;
use crate::endpoint::{Endpoint, Pong, Shared, State};
use crate::socket::canonical;

/// After which time a broadcast ping is repeated while its answers are waited for.
const REPEAT: Duration = Duration::from_secs(1);
/// Servers that one broadcast finds at most.
const MOST_FOUND: usize = 1_024;

impl State<RakNet> {
    /// Pings the server at `to`. One datagram serves all tasks that ask at the same time.
    fn ping(
        &mut self,
        now: rakwire::Instant,
        to: SocketAddr,
        pong: oneshot::Sender<Pong<Guid>>,
    ) -> Result<(), PingError> {
        self.may_ping()?;
        if !self.receivers.pings.asks_one(to) {
            self.hooked.peer.ping(now, to).map_err(|_| PingError::TooMany)?;
        }
        self.receivers.pings.one.push((to, pong));
        Ok(())
    }

    /// Asks everybody who hears a datagram to `to`.
    fn ping_everybody(
        &mut self,
        now: rakwire::Instant,
        to: SocketAddr,
        scope: PingScope,
    ) -> Result<(), PingError> {
        self.may_ping()?;
        self.hooked.peer.discover(now, to, scope).map_err(|_| PingError::TooMany)
    }

    fn may_ping(&mut self) -> Result<(), PingError> {
        self.receivers.pings.remove_given_up();
        if self.is_open() { Ok(()) } else { Err(PingError::EndpointClosed) }
    }

    /// Forgets the pings to `to` if nobody waits for them any more.
    fn forget_pings(&mut self, to: SocketAddr) {
        self.receivers.pings.remove_given_up();
        if !self.receivers.pings.asks_one(to) && !self.receivers.pings.asks_everybody(to) {
            self.hooked.peer.forget_ping(to);
        }
    }
}

impl Endpoint<RakNet> {
    /// Pings the server at `address` for its advertisement, and waits for at most `timeout`. A ping that is lost is not
    /// repeated. At most eight addresses can be pinged at the same time.
    ///
    /// # Errors
    /// [`PingError::NoAnswer`] after `timeout`; others at once.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// assert_eq!(server.set_advertisement(b"hello"), Ok(()));
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let pong = client.ping(server.local_addr(), Duration::from_secs(5)).await?;
    /// assert_eq!(pong.data, b"hello");
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
        self.shared.act(|state, now| state.ping(now, address, sender))?;
        let Some(receiver) = &mut pending.receiver else { return Err(PingError::NoAnswer) };
        match tokio::time::timeout(timeout, receiver).await {
            Ok(pong) => pong.map_err(|_| PingError::EndpointClosed),
            Err(_) => Err(PingError::NoAnswer),
        }
    }

    /// Pings every server that a datagram to `address` reaches, a broadcast or multicast address and a port, and returns
    /// the pongs that come within `time`, the first of each address. The ping is repeated every second.
    ///
    /// # Errors
    /// [`PingError::TooMany`], [`PingError::AddressFamily`], [`PingError::EndpointClosed`]; that nobody answers is no
    /// error.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use rakwire_native::{Endpoint, Options, PingScope};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    /// let everybody = "255.255.255.255:19132".parse()?;
    /// for pong in endpoint.discover(everybody, PingScope::OpenConnections, Duration::from_secs(1)).await? {
    ///     println!("{} says {:?}", pong.from, pong.data);
    /// }
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
        let (sender, receiver) = mpsc::channel(MOST_FOUND);
        let mut pending = PendingPing { shared: &self.shared, address, receiver: Some(receiver) };
        let mut found: Vec<Pong<Guid>> = Vec::new();
        let start = Instant::now();
        let mut asked = 0;
        self.shared.act(|state, _| state.receivers.pings.broadcasts.push((address, sender)));
        while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if start.elapsed() >= REPEAT * asked {
                self.shared.act(|state, now| state.ping_everybody(now, address, scope))?;
                asked += 1;
            }
            let until_next = (REPEAT * asked).saturating_sub(start.elapsed());
            let Some(receiver) = &mut pending.receiver else { break };
            match tokio::time::timeout(left.min(until_next), receiver.recv()).await {
                Ok(Some(pong)) if found.iter().any(|other| other.from == pong.from) => {}
                Ok(Some(pong)) => found.push(pong),
                Ok(None) => return Err(PingError::EndpointClosed),
                Err(_) => {}
            }
        }
        Ok(found)
    }
}

/// A ping that is forgotten when its task waits no more.
struct PendingPing<'e, R> {
    shared: &'e Shared<RakNet>,
    address: SocketAddr,
    receiver: Option<R>,
}

impl<R> Drop for PendingPing<'_, R> {
    fn drop(&mut self) {
        // The sender sees that nobody waits.
        self.receiver = None;
        self.shared.act(|state, _| state.forget_pings(self.address));
    }
}

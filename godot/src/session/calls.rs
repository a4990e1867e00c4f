//! Session methods that a game calls between polls: sending, disconnecting, bans, pings and statistics.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rakwire_native::polled::{QueueError, Queued};
use rakwire_native::rakwire::endpoint::SendError;
use rakwire_native::{AddressPattern, PingScope, SecurePeer};

use super::opening::resolve;
use super::{Link, LinkState, Session, Status};
use crate::error::Error;
use crate::packet::Transfer;
use crate::statistics::{self, Figures};

/// The authenticated identity of a peer with a secure connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The public key of the peer. `None` for a client that has not authenticated itself.
    pub key: Option<[u8; 32]>,
    /// The user id in the connect token of the peer, if it has one.
    pub user_id: Option<u64>,
    /// The user data in the connect token of the peer. Empty without a token.
    pub user_data: Vec<u8>,
}

impl Session {
    /// Sends a packet to one peer, to all peers (target 0), or to all except one (its negative id).
    ///
    /// # Errors
    /// Returns an error if the session is not connected, the packet is empty or too long, or there is no such
    /// peer. If the reliable packets queued for a peer would exceed the backlog, the peer is disconnected:
    /// [`Error::Backlog`].
    pub fn put(&mut self, target: i32, transfer: Transfer, payload: &[u8]) -> Result<(), Error> {
        if self.status != Status::Connected {
            return Err(Error::NotConnected);
        } else if payload.is_empty() {
            return Err(Error::Empty);
        }
        let (length, most) = (payload.len(), self.max_packet_size_for(target)?);
        if length > most {
            return Err(Error::TooLong { length, most });
        } else if target > 0 {
            return self.send(target, transfer, Cow::Owned(transfer.message(payload)));
        }
        let excluded = target.checked_neg();
        let all: Vec<i32> = self.links.keys().copied().filter(|id| Some(*id) != excluded).collect();
        let message = transfer.message(payload);
        // A failure for one peer must not affect the others.
        let mut result = Ok(());
        for id in all {
            let sent = self.send(id, transfer, Cow::Borrowed(&message));
            result = result.and(sent);
        }
        result
    }

    fn send(&mut self, id: i32, transfer: Transfer, message: Cow<'_, [u8]>) -> Result<(), Error> {
        let link = self.links.get_mut(&id).ok_or(Error::NoPeer(id))?;
        if link.state != LinkState::Open {
            self.dropped.not_connected += 1;
            return Ok(());
        }
        match link.outgoing.send(&mut self.endpoint, message, transfer.delivery()) {
            Ok(Queued::Sent(_) | Queued::Waiting) => Ok(()),
            Ok(Queued::Dropped) => {
                self.dropped.unreliable += 1;
                Ok(())
            }
            Err(QueueError::Refused(error)) if error != SendError::NotConnected => Err(error.into()),
            // The connection has closed, but its event has not been handled yet.
            Err(QueueError::Refused(_)) => {
                self.dropped.not_connected += 1;
                Ok(())
            }
            Err(_) => {
                link.outgoing.abort(&mut self.endpoint);
                link.state = LinkState::Leaving;
                let error = Error::Backlog(id);
                link.fault = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Returns the maximum packet length in bytes that all peers accept.
    #[must_use]
    pub fn max_packet_size(&self) -> usize {
        let links = self.links.values().filter(|link| link.state == LinkState::Open);
        let most = links.map(|link| link.max_len).min();
        most.unwrap_or_else(|| self.endpoint.peer().config().max_message_len as usize).saturating_sub(1)
    }

    /// Returns the maximum packet length for a target: that of the peer, or the minimum for several peers.
    fn max_packet_size_for(&self, target: i32) -> Result<usize, Error> {
        if target > 0 { Ok(self.link(target)?.max_len.saturating_sub(1)) } else { Ok(self.max_packet_size()) }
    }

    /// Disconnects a peer after reliable packets put before are delivered. Packets received from the peer in the
    /// meantime are dropped. With `force` the peer is removed immediately: queued packets in both directions are
    /// dropped, and no notice follows.
    ///
    /// # Errors
    /// Returns an error if there is no such peer.
    pub fn disconnect(&mut self, id: i32, force: bool) -> Result<(), Error> {
        let link = self.links.get_mut(&id).ok_or(Error::NoPeer(id))?;
        if !force {
            if link.state == LinkState::Open {
                link.state = LinkState::Leaving;
                let timeout = self.endpoint.peer().config().close_timeout;
                if let Err(error) = link.outgoing.close(&mut self.endpoint, timeout) {
                    link.refuse(id, error, &mut self.notices);
                }
                self.forget_attempt();
            }
            return Ok(());
        }
        link.outgoing.abort(&mut self.endpoint);
        self.ids.remove(&link.connection);
        self.links.remove(&id);
        let queued_bytes = &mut self.queued_bytes;
        self.queue.retain(|packet| {
            let stays = packet.from() != id;
            *queued_bytes -= if stays { 0 } else { packet.cost() };
            stays
        });
        if !self.is_server() {
            self.status = Status::Disconnected;
            self.forget_attempt();
        }
        self.endpoint.flush();
        Ok(())
    }

    /// Starts or stops refusing new clients, with the reply "server full".
    pub fn set_refusing(&self, refuses: bool) {
        self.gate.set_closed(refuses);
    }

    /// Bans an address, a wildcard such as `192.0.2.*`, or a prefix such as `2001:db8::/32`. With 0 seconds the ban is
    /// permanent. Existing connections stay open.
    ///
    /// # Errors
    /// Returns an error if the session is not a server, the pattern or the duration is invalid, or there are already 64
    /// bans.
    pub fn ban(&mut self, addresses: &str, seconds: f64) -> Result<(), Error> {
        let pattern = self.pattern(addresses)?;
        let time = Duration::try_from_secs_f64(seconds).map_err(|_| Error::BanTime(seconds))?;
        let until = (seconds > 0.0).then(|| self.endpoint.now() + time);
        let now = self.endpoint.now();
        let bans = self.endpoint.peer_mut().bans_mut().ok_or(Error::BansFull)?;
        bans.expire(now);
        bans.add(pattern, until).map_err(|_| Error::BansFull)
    }

    /// Removes a ban. Returns true if it existed.
    ///
    /// # Errors
    /// Returns an error if the session is not a server, or the pattern is invalid.
    pub fn unban(&mut self, addresses: &str) -> Result<bool, Error> {
        let pattern = self.pattern(addresses)?;
        Ok(self.endpoint.peer_mut().bans_mut().is_some_and(|bans| bans.remove(pattern)))
    }

    /// Returns true if an address is currently banned.
    ///
    /// # Errors
    /// Returns an error if the session is not a server, or the address is invalid.
    pub fn is_banned(&mut self, address: &str) -> Result<bool, Error> {
        self.pattern(address)?;
        let ip: IpAddr = address.parse().map_err(|_| Error::Addresses(address.to_owned()))?;
        let now = self.endpoint.now();
        Ok(self.endpoint.peer_mut().bans_mut().is_some_and(|bans| bans.is_banned(ip, now)))
    }

    fn pattern(&self, addresses: &str) -> Result<AddressPattern, Error> {
        if !self.is_server() {
            return Err(Error::NotServer);
        }
        addresses.parse().map_err(|_| Error::Addresses(addresses.to_owned()))
    }

    /// Pings a server without a connection. The pong becomes a notice. A lost ping is not sent again.
    ///
    /// # Errors
    /// Returns an error if the port is invalid, the host name has no address, or eight pings are waiting for
    /// pongs.
    pub fn ping(&mut self, host: &str, port: i64) -> Result<(), Error> {
        let (host, addresses) = resolve(host, port)?;
        let has_ipv6 = self.endpoint.local_addr().is_ipv6();
        let address = addresses.into_iter().find(|address| has_ipv6 || address.is_ipv4());
        let now = self.endpoint.now();
        let to = address.ok_or(Error::NoAddress(host))?;
        self.endpoint.peer_mut().ping(now, to).map_err(|_| Error::PingsFull)?;
        self.endpoint.flush();
        Ok(())
    }

    /// Pings all servers of the local network on a port. Each pong received within five seconds becomes a notice.
    ///
    /// # Errors
    /// Returns an error if the port is invalid, or eight pings are waiting for pongs.
    pub fn discover(&mut self, port: i64) -> Result<(), Error> {
        let port = u16::try_from(port).map_err(|_| Error::Port(port))?;
        self.discover_at((Ipv4Addr::BROADCAST, port).into())
    }

    /// Like [`discover`](Self::discover), with a broadcast or multicast address instead of 255.255.255.255.
    ///
    /// # Errors
    /// Returns an error if eight pings are waiting for pongs.
    pub fn discover_at(&mut self, to: SocketAddr) -> Result<(), Error> {
        let now = self.endpoint.now();
        self.endpoint.peer_mut().discover(now, to, PingScope::Any).map_err(|_| Error::PingsFull)?;
        self.endpoint.flush();
        Ok(())
    }

    /// Sets the data that this server sends in its pongs.
    ///
    /// # Errors
    /// Returns an error if the session is not a server, or there are more than 399 bytes.
    pub fn set_advertisement(&mut self, data: &[u8]) -> Result<(), Error> {
        if !self.is_server() {
            return Err(Error::NotServer);
        }
        Ok(self.endpoint.peer_mut().set_advertisement(data)?)
    }

    fn link(&self, id: i32) -> Result<&Link, Error> {
        self.links.get(&id).ok_or(Error::NoPeer(id))
    }

    /// Returns the address of a peer.
    ///
    /// # Errors
    /// Returns an error if there is no such peer.
    pub fn remote(&self, id: i32) -> Result<SocketAddr, Error> {
        self.link(id).map(|link| link.remote)
    }

    /// Returns the local address of the socket.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Returns the statistics of the connection to a peer, or with id 0 the statistics of the socket.
    ///
    /// # Errors
    /// Returns an error if there is no such peer.
    pub fn figures(&self, id: i32) -> Result<Figures, Error> {
        if id == 0 {
            return Ok(statistics::of_endpoint(&self.endpoint, self.dropped));
        }
        let stats = self.endpoint.peer().connection_stats(self.link(id)?.connection);
        stats.map(|stats| statistics::of_connection(&stats)).ok_or(Error::NoPeer(id))
    }

    /// Returns the authenticated identity of a peer, or `None` if the connection is not secure.
    ///
    /// # Errors
    /// Returns an error if there is no such peer.
    pub fn identity(&self, id: i32) -> Result<Option<Identity>, Error> {
        let connection = self.link(id)?.connection;
        let peer = self.endpoint.peer();
        let key = match peer.secure_peer(connection) {
            Some(SecurePeer::Server(server)) => Some(server.key.0),
            Some(SecurePeer::Client(client)) => client.map(|client| client.key.0),
            None => return Ok(None),
        };
        let token = peer.accepted_token(connection);
        Ok(Some(Identity {
            key,
            user_id: token.map(|token| token.user_id),
            user_data: token.map(|token| token.user_data().to_vec()).unwrap_or_default(),
        }))
    }
}

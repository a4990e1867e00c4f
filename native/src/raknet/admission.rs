//! The identity and advertisement of an endpoint, and who may connect: the password and the bans. The
//! shards of a server have these in common.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::{AddressPattern, BanListFull, Guid, RakNet, SetError};

use crate::endpoint::Endpoint;

impl Endpoint<RakNet> {
    /// The GUID of this endpoint.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.shared.lock().hooked.peer.config().guid
    }

    /// The address of the connected peer with this GUID, if there is one. Of several shards each knows its own connections.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Guid, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(client.remote_of(connection.guid()), Some(server.local_addr()));
    /// assert_eq!(client.remote_of(client.guid()), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn remote_of(&self, guid: Guid) -> Option<SocketAddr> {
        let state = self.shared.lock();
        let peer = &state.hooked.peer;
        peer.connection(peer.connection_of(guid)?).map(|connection| connection.remote)
    }

    /// Sets the data of pongs, 0 to 399 bytes, or 397 if the configuration's
    /// [`pong_framing`](rakwire::raknet::Config::pong_framing) adds their length: by default where clients of Minecraft Bedrock
    /// expect it, which is where the data begin with `MCPE;` or `MCEE;`, or no other version is accepted.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`]; the data does not change then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, SetError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// assert_eq!(server.set_advertisement(&[b'x'; 399]), Ok(()));
    /// assert_eq!(server.set_advertisement(&[b'x'; 400]), Err(SetError::AdvertisementTooLong));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shards.act(|state, _| state.hooked.peer.set_advertisement(data)).unwrap_or(Ok(()))
    }

    /// Sets the addresses that this endpoint says are its own to every peer that it connects with from now on; none to
    /// say nothing. An endpoint begins with that of its socket or, if that is bound to all addresses, with those from
    /// which the system would send to others.
    ///
    /// # Errors
    /// [`SetError::TooManyAddresses`] if there are more than [`address_count`](crate::Config::address_count) says, and
    /// nothing changed then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.set_internal_addresses(&[])?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// assert_eq!(connection.internal_addresses(), [server.local_addr()]);
    /// let accepted = server.accept().await.ok_or("the endpoint is open")?;
    /// assert_eq!(accepted.internal_addresses(), []);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_internal_addresses(&self, addresses: &[SocketAddr]) -> Result<(), SetError> {
        self.shared.act(|state, _| state.hooked.peer.set_internal_addresses(addresses))
    }

    /// Sets the password that new clients need, 0 to 255 bytes; empty means none. It is not encrypted on the network.
    ///
    /// # Errors
    /// [`SetError::PasswordTooLong`]; the password does not change then.
    ///
    /// ```
    /// use rakwire_native::{ConnectError, ConnectFailure, ConnectOptions, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.set_password(b"friends")?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let failed = client.connect(server.local_addr()).await.err();
    /// assert_eq!(failed, Some(ConnectError::Failed(ConnectFailure::InvalidPassword)));
    /// let options = ConnectOptions { password: b"friends", ..Default::default() };
    /// assert!(client.connect_with(server.local_addr(), &options).await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_password(&self, password: &[u8]) -> Result<(), SetError> {
        self.shards.act(|state, _| state.hooked.peer.set_password(password)).unwrap_or(Ok(()))
    }

    /// Bans the addresses that match `pattern`, for some time or forever. Replaces an earlier ban of the same pattern, and
    /// keeps existing connections.
    ///
    /// # Errors
    /// [`BanListFull`] if 64 other patterns are banned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::raknet::{AddressPattern, ConnectError, ConnectFailure, Endpoint, Options, Refusal};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// let loopback: AddressPattern = "127.*".parse()?;
    /// server.ban(loopback, Some(Duration::from_secs(3_600)))?;
    /// let (pattern, left) = server.bans()[0];
    /// assert!(pattern == loopback && left.is_some_and(|left| left <= Duration::from_secs(3_600)));
    ///
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let failed = client.connect(server.local_addr()).await.err();
    /// assert_eq!(failed, Some(ConnectError::Failed(ConnectFailure::Refused(Refusal::Banned))));
    ///
    /// assert!(server.unban(loopback) && server.bans().is_empty());
    /// assert!(client.connect(server.local_addr()).await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ban(&self, pattern: AddressPattern, time: Option<Duration>) -> Result<(), BanListFull> {
        let banned = self.shards.act(|state, now| {
            let bans = state.hooked.peer.bans_mut().ok_or(BanListFull)?;
            bans.expire(now);
            bans.add(pattern, time.map(|time| now + time))
        });
        banned.unwrap_or(Ok(()))
    }

    /// Removes the ban of exactly this pattern; false if there is none.
    pub fn unban(&self, pattern: AddressPattern) -> bool {
        let lifted = self.shards.act(|state, now| {
            state.hooked.peer.bans_mut().is_some_and(|bans| {
                bans.expire(now);
                bans.remove(pattern)
            })
        });
        lifted.unwrap_or(false)
    }

    /// The bans, each with its remaining time; `None` is forever.
    #[must_use]
    pub fn bans(&self) -> Vec<(AddressPattern, Option<Duration>)> {
        self.shared.act(|state, now| {
            let Some(bans) = state.hooked.peer.bans_mut() else { return Vec::new() };
            bans.expire(now);
            let left = |until: rakwire::Instant| until.saturating_since(now);
            bans.iter().map(|(pattern, until)| (pattern, until.map(left))).collect()
        })
    }
}

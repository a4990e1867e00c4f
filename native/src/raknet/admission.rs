//! What an endpoint tells those that are not connected, and who may connect: its GUID, what it says to pings, the
//! password and the bans. The shards of a server have these in common.

use std::time::Duration;

use rakwire::raknet::{AddressPattern, BanListFull, Guid, RakNet, SetError};

use crate::endpoint::Endpoint;

impl Endpoint<RakNet> {
    /// The identity of this endpoint.
    #[must_use]
    pub fn guid(&self) -> Guid {
        self.shared.lock().hooked.peer.config().guid
    }

    /// Sets what the answers to pings say, 0 to 399 bytes.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`]; nothing changed then.
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

    /// Sets the password that clients must give from now on, 0 to 255 bytes; empty means none. It crosses the network in
    /// the clear.
    ///
    /// # Errors
    /// [`SetError::PasswordTooLong`]; nothing changed then.
    ///
    /// ```
    /// use rakwire_native::{ConnectOptions, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// assert_eq!(server.set_password(b"friends"), Ok(()));
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// assert!(client.connect(server.local_addr()).await.is_err());
    /// let options = ConnectOptions { password: b"friends", ..Default::default() };
    /// let connection = client.connect_with(server.local_addr(), &options).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_password(&self, password: &[u8]) -> Result<(), SetError> {
        self.shards.act(|state, _| state.hooked.peer.set_password(password)).unwrap_or(Ok(()))
    }

    /// Lets no address that matches `pattern` connect, for a while or for ever; an earlier ban of the same pattern is
    /// replaced. Connections that exist are not touched.
    ///
    /// # Errors
    /// [`BanListFull`] when 64 other patterns are banned.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rakwire_native::{Endpoint, Options};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
    /// server.ban("192.0.2.*".parse()?, Some(Duration::from_secs(3_600)))?;
    /// assert_eq!(server.bans().len(), 1);
    /// assert!(server.unban("192.0.2.0/24".parse()?));
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

    /// Lifts the ban of exactly this pattern; false if there is none.
    ///
    /// ```
    /// use rakwire_native::{AddressPattern, Endpoint};
    ///
    /// fn pardon_all(server: &Endpoint) {
    ///     for (pattern, _) in server.bans() {
    ///         server.unban(pattern);
    ///     }
    /// }
    /// ```
    pub fn unban(&self, pattern: AddressPattern) -> bool {
        let lifted = self.shards.act(|state, now| {
            state.hooked.peer.bans_mut().is_some_and(|bans| {
                bans.expire(now);
                bans.remove(pattern)
            })
        });
        lifted.unwrap_or(false)
    }

    /// The bans, each with the time that is left of it; nothing is for ever.
    ///
    /// ```
    /// use rakwire_native::Endpoint;
    ///
    /// fn print_bans(server: &Endpoint) {
    ///     for (pattern, left) in server.bans() {
    ///         println!("{pattern} {left:?}");
    ///     }
    /// }
    /// ```
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

//! RakNet servers (feature `server`): the advertisement, and the admission of clients.

use core::future::poll_fn;
use core::task::Poll;
use core::time::Duration;

use rakwire::raknet::{AddressPattern, BanList, Hook, RakNet, SetError};

use crate::handle::Handle;
use crate::raknet::RefusedClient;

/// The reason why an address could not be banned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum BanError {
    /// No list of bans was set.
    NoList,
    /// The list already contains 64 other patterns.
    Full,
}

impl core::fmt::Display for BanError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoList => "there is no ban list; provide one with `set_ban_list`",
            Self::Full => "the ban list is full; remove a pattern with `unban`, or ban a wider pattern",
        })
    }
}

impl core::error::Error for BanError {}

impl<'d, H: Hook<RakNet>> Handle<'d, RakNet, H> {
    /// Sets the data of pongs, 0 to 399 bytes.
    ///
    /// The limit is 397 if the configuration's [`pong_framing`](rakwire::raknet::Config::pong_framing) adds a length
    /// prefix. By default it does so where Minecraft Bedrock clients expect it: if the data begin with `MCPE;` or
    /// `MCEE;`, or only their protocol versions are accepted.
    ///
    /// # Errors
    /// [`SetError::AdvertisementTooLong`] if the data exceed this limit; the previous data stay in use.
    pub fn set_advertisement(&self, data: &[u8]) -> Result<(), SetError> {
        self.shared.update(|inner, _| inner.hooked.peer.set_advertisement(data))
    }

    /// Sets the password that new clients need, 0 to 255 bytes; empty means none. Clients send it unencrypted.
    ///
    /// # Errors
    /// [`SetError::PasswordTooLong`] if the password is longer; the previous password stays in use.
    ///
    /// ```
    /// use rakwire::raknet::{ConnectFailure, ConnectOptions, RakNet};
    /// use rakwire_embassy::raknet::ConnectError;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, server) = loopback::peers::<RakNet>(stack);
    /// server.set_password(b"friends")?;
    /// let failed = client.connect(loopback::SERVER).await.err();
    /// assert_eq!(failed, Some(ConnectError::Failed(ConnectFailure::InvalidPassword)));
    /// let options = ConnectOptions { password: b"friends", ..Default::default() };
    /// assert!(client.connect_with(loopback::SERVER, &options).await.is_ok());
    /// # Ok(()) }) }
    /// ```
    pub fn set_password(&self, password: &[u8]) -> Result<(), SetError> {
        self.shared.update(|inner, _| inner.hooked.peer.set_password(password))
    }

    /// Waits for the next client that this server refuses for its password, identity or connect token, and returns it
    /// with the reason. The last four refused clients are kept until a task takes them.
    ///
    /// ```
    /// use rakwire::endpoint::RefuseReason;
    /// use rakwire::raknet::RakNet;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, server) = loopback::peers::<RakNet>(stack);
    /// server.set_password(b"friends")?;
    /// assert!(client.connect(loopback::SERVER).await.is_err());
    /// let refused = server.refused_client().await;
    /// assert_eq!((refused.reason, refused.identity), (RefuseReason::WrongPassword, client.guid()));
    /// // Only a validated address may be banned.
    /// assert!(!refused.is_validated && server.try_refused_client().is_none());
    /// # Ok(()) }) }
    /// ```
    pub async fn refused_client(&self) -> RefusedClient {
        poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.refused.pop().map_or(Poll::Pending, Poll::Ready)))
            .await
    }

    /// Returns the oldest refused client that no task has taken, if there is one.
    #[must_use]
    pub fn try_refused_client(&self) -> Option<RefusedClient> {
        self.shared.update(|inner, _| inner.refused.pop())
    }

    /// Lends the peer a list for banned addresses, which takes about 3 KB. Without a list, no address can be banned.
    /// With the feature `alloc` of the crate `rakwire`, the first ban creates a list.
    ///
    /// ```
    /// use rakwire::raknet::{AddressPattern, BanList, ConnectFailure, RakNet, Refusal};
    /// use rakwire_embassy::raknet::ConnectError;
    /// use static_cell::ConstStaticCell;
    ///
    /// static BANS: ConstStaticCell<BanList> = ConstStaticCell::new(BanList::new());
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (client, server) = loopback::peers::<RakNet>(stack);
    /// let network: AddressPattern = "10.*".parse()?;
    /// server.set_ban_list(BANS.take());
    /// server.ban(network, None)?;
    /// let failed = client.connect(loopback::SERVER).await.err();
    /// assert_eq!(failed, Some(ConnectError::Failed(ConnectFailure::Refused(Refusal::Banned))));
    ///
    /// assert!(server.unban(network) && !server.unban(network));
    /// assert!(client.connect(loopback::SERVER).await.is_ok());
    /// # Ok(()) }) }
    /// ```
    pub fn set_ban_list(&self, bans: &'d mut BanList) {
        self.shared.update(|inner, _| inner.hooked.peer.set_ban_list(bans));
    }

    /// Bans the addresses that match `pattern`, for `time`, or forever if it is `None`. This replaces an earlier ban of
    /// the same pattern, and does not close existing connections.
    ///
    /// # Errors
    /// [`BanError::NoList`] before [`set_ban_list`](Self::set_ban_list), and [`BanError::Full`] if 64 other patterns
    /// are banned.
    pub fn ban(&self, pattern: AddressPattern, time: Option<Duration>) -> Result<(), BanError> {
        self.shared.update(|inner, now| {
            let bans = inner.hooked.peer.bans_mut().ok_or(BanError::NoList)?;
            bans.expire(now);
            bans.add(pattern, time.map(|time| now + time)).map_err(|_| BanError::Full)
        })
    }

    /// Removes the ban of exactly this pattern. Returns false if there is none.
    pub fn unban(&self, pattern: AddressPattern) -> bool {
        self.shared.update(|inner, now| {
            inner.hooked.peer.bans_mut().is_some_and(|bans| {
                bans.expire(now);
                bans.remove(pattern)
            })
        })
    }

    /// Calls `visit` with each ban and its remaining time; `None` means forever.
    ///
    /// # Panics
    /// If `visit` calls a method of the same peer.
    pub fn bans(&self, mut visit: impl FnMut(AddressPattern, Option<Duration>)) {
        self.shared.update(|inner, now| {
            let Some(bans) = inner.hooked.peer.bans_mut() else { return };
            bans.expire(now);
            bans.iter()
                .for_each(|(pattern, until)| visit(pattern, until.map(|until| until.saturating_since(now))));
        });
    }
}

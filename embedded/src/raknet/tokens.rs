//! Servers that require connect tokens (features `secure` and `server`).

use core::cell::RefCell;

use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use rakwire::raknet::{Hook, RakNet};
use rakwire::secure::{AcceptedToken, TokenError, UsedTokenStore, UsedTokens};

use crate::connection::Connection;
use crate::handle::Handle;

/// The connect tokens that were used at a server, at most `N`, with 32 bytes each. A critical section protects the
/// table, so that peers in several executors can share it.
///
/// A server that accepts `n` connections per second with tokens valid for `t` seconds needs `N` to be at least `n * t`.
#[derive(Debug)]
pub struct UsedTokenTable<const N: usize>(Mutex<CriticalSectionRawMutex, RefCell<UsedTokens<N>>>);

impl<const N: usize> UsedTokenTable<N> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(RefCell::new(UsedTokens::new())))
    }
}

impl<const N: usize> Default for UsedTokenTable<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> UsedTokenStore for UsedTokenTable<N> {
    fn mark_used(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
        self.0.lock(|used| used.borrow_mut().mark_used(token, now))
    }
}

impl<H: Hook<RakNet>> Handle<'_, RakNet, H> {
    /// Sets the current time in seconds since 1970, by which connect tokens expire.
    ///
    /// Obtain it from a real-time clock, or from a time server by SNTP. The peer advances the time itself; set it
    /// again from time to time if the board's oscillator is inaccurate. Until the time is set, every token counts as
    /// expired.
    ///
    /// ```
    /// use embassy_futures::join::join;
    /// use rakwire::raknet::{Config, ConnectOptions, RakNet, Security};
    /// use rakwire::secure::{
    ///     ServerIdentity, ServerTrust, StaticKey, TokenKey, TokenVerifier,
    /// };
    /// use rakwire_embassy::raknet::UsedTokenTable;
    ///
    /// static USED: UsedTokenTable<64> = UsedTokenTable::new();
    ///
    /// /// Configures a server that admits only players with a token from the backend.
    /// fn with_tokens(rng: &mut impl rand_core::RngCore, key: StaticKey, token_key: TokenKey) -> Config {
    ///     let mut identity = ServerIdentity::new(key);
    ///     identity.tokens = Some(TokenVerifier::new([token_key].into_iter().collect(), &USED));
    ///     let mut config = Config::new(rakwire_embassy::entropy(rng));
    ///     let mut security = Security::new(rakwire_embassy::entropy(rng));
    ///     security.server = Some(identity);
    ///     config.security = Some(security);
    ///     config.max_incoming = 4;
    ///     config
    /// }
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # use rakwire::secure::{SeededRandom, TokenClaims};
    /// # let key = || StaticKey::from_bytes([9; 32]);
    /// # let token_key = || TokenKey::from_bytes([8; 32]);
    /// # let player = || StaticKey::from_bytes([7; 32]);
    /// # let seconds_since_1970 = 1_800_000_000;
    /// # let servers = [key().public().hash()];
    /// # let claims = TokenClaims { user_id: 42, expires: seconds_since_1970 + 60, client: player().public(), servers: &servers, user_data: b"" };
    /// # let token = claims.seal(&token_key(), &mut SeededRandom::new([6; 32]))?;
    /// # let server = loopback::peer_with::<RakNet>(stack, 19_132, with_tokens(&mut loopback::Rng, key(), token_key()));
    /// # let mut config = Config::new(rakwire_embassy::entropy(&mut loopback::Rng));
    /// # let mut security = Security::new(rakwire_embassy::entropy(&mut loopback::Rng));
    /// # security.identity = Some(player());
    /// # config.security = Some(security);
    /// # let client = loopback::peer_with::<RakNet>(stack, 0, config);
    /// # let trust = Some(ServerTrust::Key(key().public()));
    /// server.set_unix_time(seconds_since_1970);
    /// let options = ConnectOptions { trust, password: &token, ..Default::default() };
    /// let (opened, accepted) = join(client.connect_with(loopback::SERVER, &options), server.accept()).await;
    /// assert_eq!(accepted.accepted_token().map(|token| token.user_id), Some(42));
    /// # opened?;
    /// # Ok(()) }) }
    /// ```
    pub fn set_unix_time(&self, seconds: u64) {
        self.shared.update(|inner, now| inner.hooked.peer.set_unix_time(now, seconds));
    }
}

impl<H: Hook<RakNet>> Connection<'_, RakNet, H> {
    /// Returns the contents of the client's connect token. Returns `None` if this peer does not require tokens; it may
    /// also return `None` after the connection is closed.
    #[must_use]
    pub fn accepted_token(&self) -> Option<AcceptedToken> {
        self.reference.update(|hooked, _, id| hooked.peer.accepted_token(id?).cloned())
    }
}

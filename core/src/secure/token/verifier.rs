//! What a server checks connect tokens with.

use core::fmt;

use heapless::Vec;

use super::sealed::{AcceptedToken, TokenError, TokenKey};
use crate::secure::keys::{KeyHash, PublicKey};

/// The most token keys of a server: while it gets a new one, tokens of the one before are still under way.
pub const MAX_TOKEN_KEYS: usize = 4;

/// The token keys of a server.
pub type TokenKeys = Vec<TokenKey, MAX_TOKEN_KEYS>;

/// Remembers which tokens were used. All peers of one server share one, so that no token is used at two of them.
pub trait UsedTokenStore: fmt::Debug + Send + Sync {
    /// Uses a token, at `now` seconds since 1970, while nobody else uses one: as
    /// [`UsedTokens::take`](super::UsedTokens::take) does. It must not block.
    ///
    /// # Errors
    /// [`TokenError::Used`], [`TokenError::NoRoom`] and [`TokenError::Expired`], with which the client does not come in.
    fn take(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError>;
}

/// What a server checks connect tokens with: its token keys, and the tokens that were used.
///
/// ```
/// use std::sync::{Mutex, PoisonError};
/// use rakwire::secure::{
///     AcceptedToken, ServerIdentity, StaticKey, TokenError, TokenKey, TokenVerifier, UsedTokenStore, UsedTokens,
/// };
///
/// #[derive(Debug)]
/// struct Store(Mutex<UsedTokens<1024>>);
///
/// impl UsedTokenStore for Store {
///     fn take(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
///         self.0.lock().unwrap_or_else(PoisonError::into_inner).take(token, now)
///     }
/// }
///
/// static USED: Store = Store(Mutex::new(UsedTokens::new()));
///
/// let key = TokenKey::from_bytes([7; 32]); // from a key file in a real program
/// let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
/// identity.tokens = Some(TokenVerifier::new([key].into_iter().collect(), &USED));
/// ```
pub struct TokenVerifier {
    keys: TokenKeys,
    used: Used,
}

/// Where used tokens are remembered.
#[derive(Clone)]
enum Used {
    Lent(&'static dyn UsedTokenStore),
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    Shared(alloc::sync::Arc<dyn UsedTokenStore>),
}

impl Used {
    fn store(&self) -> &dyn UsedTokenStore {
        match self {
            Self::Lent(store) => *store,
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Self::Shared(store) => &**store,
        }
    }
}

impl TokenVerifier {
    /// Accepts tokens of these keys that the store does not know. Without a key none is accepted.
    #[must_use]
    pub fn new(keys: TokenKeys, used: &'static dyn UsedTokenStore) -> Self {
        Self { keys, used: Used::Lent(used) }
    }

    /// As [`new`](Self::new), with a store that is dropped with the last configuration that has it.
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    #[must_use]
    pub fn shared(keys: TokenKeys, used: alloc::sync::Arc<dyn UsedTokenStore>) -> Self {
        Self { keys, used: Used::Shared(used) }
    }

    /// A second copy with the same store, for a copy of a configuration.
    pub(crate) fn duplicate(&self) -> Self {
        Self { keys: self.keys.iter().map(TokenKey::duplicate).collect(), used: self.used.clone() }
    }

    /// Uses a token at the server with this key, for a client that has identified itself with that one, at `now` seconds
    /// since 1970.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn accept(
        &self,
        token: &[u8],
        server: &KeyHash,
        client: &PublicKey,
        now: u64,
    ) -> Result<AcceptedToken, TokenError> {
        let open = |key: &TokenKey| key.open(token, server, client, now);
        let opened = self.keys.iter().map(open).find(|opened| *opened != Err(TokenError::DoesNotOpen));
        let token = opened.unwrap_or(Err(TokenError::DoesNotOpen))?;
        self.used.store().take(&token, now)?;
        Ok(token)
    }
}

//! Which connect tokens were used, at all endpoints of a server.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rakwire::secure::{AcceptedToken, TokenError, UsedTokenStore};

/// The tokens that were used and have not expired, at most as many as it was made for. Endpoints from the same options, as
/// the shards of a server, have the same one.
///
/// ```
/// use std::sync::Arc;
/// use rakwire_native::secure::{ServerIdentity, StaticKey, TokenKey, TokenVerifier};
/// use rakwire_native::{Options, UsedTokenTable};
///
/// let key = TokenKey::from_bytes([7; 32]); // `read_token_key_file` in a real program
/// let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
/// let keys = [key].into_iter().collect();
/// identity.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default())));
/// let mut options = Options::server(64)?;
/// options.secure()?.server = Some(identity);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UsedTokenTable {
    limit: usize,
    /// When each expires, by its salt.
    used: Mutex<HashMap<[u8; 24], u64>>,
}

impl UsedTokenTable {
    /// With room for this many tokens. A server that accepts `n` connections a second with tokens of `t` seconds needs room
    /// for `n * t`.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::default() }
    }

    /// How many tokens are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// With room for 65,536 tokens, which take memory as they are used.
impl Default for UsedTokenTable {
    fn default() -> Self {
        Self::new(65_536)
    }
}

impl UsedTokenStore for UsedTokenTable {
    fn take(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.contains_key(token.salt()) {
            return Err(TokenError::Used);
        }
        if used.len() >= self.limit {
            used.retain(|_, expires| now < *expires);
        }
        if used.len() >= self.limit {
            return Err(TokenError::NoRoom);
        }
        used.insert(*token.salt(), token.expires);
        Ok(())
    }
}

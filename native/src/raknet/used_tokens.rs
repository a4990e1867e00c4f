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
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// When each expires, by its salt.
    expiries: HashMap<[u8; 24], u64>,
    /// The latest expiry of a token that was forgotten. A clock that goes back must not make it valid again.
    forgotten: u64,
}

impl Used {
    fn forget_expired(&mut self, now: u64) {
        let over = self.expiries.values().copied().filter(|expires| *expires <= now);
        self.forgotten = over.fold(self.forgotten, u64::max);
        self.expiries.retain(|_, expires| now < *expires);
    }
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
        self.used.lock().unwrap_or_else(PoisonError::into_inner).expiries.len()
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
        if token.expires <= used.forgotten {
            return Err(TokenError::Expired);
        }
        if used.expiries.contains_key(token.salt()) {
            return Err(TokenError::Used);
        }
        if used.expiries.len() >= self.limit {
            used.forget_expired(now);
        }
        if used.expiries.len() >= self.limit {
            return Err(TokenError::NoRoom);
        }
        used.expiries.insert(*token.salt(), token.expires);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rakwire::secure::{PublicKey, SeededRandom, TokenClaims, TokenKey};

    use super::*;

    fn token(expires: u64, random: &mut SeededRandom) -> AcceptedToken {
        let (key, client) = (TokenKey::from_bytes([1; 32]), PublicKey([2; 32]));
        let server = client.hash();
        let claims = TokenClaims { user_id: 1, expires, client, servers: &[server], user_data: b"" };
        let sealed = claims.seal(&key, random).expect("it fits");
        key.open(&sealed, &server, &client, 0).expect("a good token")
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_used_token_valid_again() {
        let mut random = SeededRandom::new([3; 32]);
        let [first, second, third, fourth, late] =
            [1_000, 1_005, 1_009, 1_001, 1_000].map(|expires| token(expires, &mut random));
        let table = UsedTokenTable::new(2);
        assert_eq!((table.take(&first, 999), table.take(&second, 999)), (Ok(()), Ok(())));
        assert_eq!(table.take(&third, 1_003), Ok(()), "the clock is ahead, and the first one forgotten");
        assert_eq!(table.take(&first, 999), Err(TokenError::Expired));
        assert_eq!(table.take(&second, 999), Err(TokenError::Used));
        assert_eq!(table.take(&late, 999), Err(TokenError::Expired));
        assert_eq!(table.take(&fourth, 1_007), Ok(()), "it is younger than what was forgotten");
    }
}

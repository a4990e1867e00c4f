//! Which tokens were used.

use heapless::Vec;

use super::SALT;
use super::sealed::{AcceptedToken, TokenError};

/// The tokens that were used and have not expired, at most `N` (docs/secure.md#connect-tokens).
///
/// Only tokens that opened and whose client has shown its key get here, so nobody else can fill it. A server that accepts `n`
/// connections a second with tokens of `t` seconds needs room for `n * t`.
///
/// ```
/// use rakwire::secure::UsedTokens;
///
/// let used = UsedTokens::<1024>::new();
/// assert!(used.is_empty());
/// ```
#[derive(Debug)]
pub struct UsedTokens<const N: usize> {
    used: Vec<([u8; SALT], u64), N>,
    /// The latest expiry of a token that was forgotten. A clock that goes back must not make it valid again.
    forgotten: u64,
}

impl<const N: usize> Default for UsedTokens<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> UsedTokens<N> {
    /// No token was used.
    #[must_use]
    pub const fn new() -> Self {
        Self { used: Vec::new(), forgotten: 0 }
    }

    /// Whether none is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// How many are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Uses a token, at `now` seconds since 1970.
    ///
    /// # Errors
    /// [`TokenError::Used`] and [`TokenError::NoRoom`], with which the client must not come in; and [`TokenError::Expired`] for a
    /// token that would have been forgotten by now if it was used, because the clock was ahead for a while.
    pub fn take(&mut self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
        if token.expires <= self.forgotten {
            return Err(TokenError::Expired);
        }
        if self.used.iter().any(|(salt, _)| *salt == token.salt) {
            return Err(TokenError::Used);
        }
        if self.used.is_full() {
            let over = self.used.iter().map(|(_, expires)| *expires).filter(|expires| *expires <= now);
            self.forgotten = over.fold(self.forgotten, u64::max);
            self.used.retain(|(_, expires)| now < *expires);
        }
        self.used.push((token.salt, token.expires)).map_err(|_| TokenError::NoRoom)
    }
}

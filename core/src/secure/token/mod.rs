//! Connect tokens: what a web backend gives to its players, and game servers accept (docs/secure.md#connect-tokens).
//!
//! - [`sealed`]: the part that only backend and game servers can read, which a client sends in the password's place.
//! - [`public`]: what the client gets: the servers, and the sealed part.
//! - [`used`]: which tokens were used already.
//! - [`verifier`]: what a server checks tokens with.

mod public;
mod sealed;
mod used;
mod verifier;

pub use public::{ConnectToken, ConnectTokenError, MAX_CONNECT_TOKEN, TokenServer, TokenServers};
pub use sealed::{
    AcceptedToken, MAX_SEALED_TOKEN, MAX_TOKEN_SERVERS, MAX_USER_DATA, TokenClaims, TokenError, TokenKey,
};
pub use used::UsedTokens;
pub use verifier::{MAX_TOKEN_KEYS, TokenKeys, TokenVerifier, UsedTokenStore};

/// Bytes of the salt of a token, which is its name too.
const SALT: usize = 24;

#[cfg(test)]
mod tests;

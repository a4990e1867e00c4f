//! Whom a client trusts (docs/secure.md#whom-a-client-trusts).

use super::keys::{KeyHash, PublicKey};
use super::primitives::is_equal;

/// What a client stores of a server after a connection, to trust it the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// The key that the server has.
    pub key: PublicKey,
    /// The hash of the key that it will have next, if it has announced one.
    pub next: Option<KeyHash>,
}

/// Which key a client takes for the server's.
///
/// ```
/// use rakwire::secure::{KnownServer, ServerTrust, StaticKey};
///
/// let [old, new] = [1, 2].map(|byte| StaticKey::from_bytes([byte; 32]).public());
/// assert!(ServerTrust::Any.accepts(&new));
/// assert!(!ServerTrust::Key(old).accepts(&new));
/// assert!(!ServerTrust::KeyHash(old.hash()).accepts(&new));
/// let known = KnownServer { key: old, next: Some(new.hash()) };
/// assert!(ServerTrust::Known(known).accepts(&old) && ServerTrust::Known(known).accepts(&new));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTrust {
    /// This one.
    Key(PublicKey),
    /// The one with this hash.
    KeyHash(KeyHash),
    /// The one that was stored, or the one that the server had announced with it.
    Known(KnownServer),
    /// Any: protects against who only listens. Store the [`KnownServer`] of the connection, and trust that the next time.
    Any,
}

impl ServerTrust {
    /// Whether the key is trusted.
    #[must_use]
    pub fn accepts(&self, key: &PublicKey) -> bool {
        let has_hash = |hash: &KeyHash| is_equal(&key.hash().0, &hash.0);
        match self {
            Self::Key(pinned) => is_equal(&pinned.0, &key.0),
            Self::KeyHash(hash) => has_hash(hash),
            Self::Known(known) => is_equal(&known.key.0, &key.0) || known.next.as_ref().is_some_and(has_hash),
            Self::Any => true,
        }
    }
}

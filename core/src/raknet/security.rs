//! The secure-connection settings of a peer: keys, and requirements for clients (docs/secure.md).

use core::fmt;

use crate::rate_limit::Rates;
use crate::secure::{
    ClientIdentity, DatagramCipher, KnownServer, RustCrypto, SeededRandom, ServerIdentity, StaticKey,
};

/// The keys and settings of a peer for secure connections.
///
/// ```
/// use rakwire::raknet::{Config, Security};
/// use rakwire::secure::{ServerIdentity, StaticKey};
///
/// // In a real program: new random bytes at each start, and a key loaded from a file.
/// let (entropy, seed, key) = ([7; 32], [8; 32], StaticKey::from_bytes([9; 32]));
/// let mut identity = ServerIdentity::new(key);
/// identity.requires_security = true;
/// let mut security = Security::new(seed);
/// security.server = Some(identity);
/// let mut config = Config::new(entropy);
/// config.security = Some(security);
/// ```
pub struct Security {
    random: SeededRandom,
    /// The server key of this peer, and its requirements for clients.
    ///
    /// Default: none; incoming connections are then plain.
    pub server: Option<ServerIdentity>,
    /// The key by which this peer identifies itself as a client in all connections that it opens.
    ///
    /// With it, plain connections are not opened: `connect` without `trust` returns
    /// [`ConnectError::IdentityWithoutTrust`](super::ConnectError::IdentityWithoutTrust), even if the remote peer is
    /// opening a plain connection at the same time. Incoming connections depend on [`server`](Self::server). Default:
    /// none; a single connection may have [`ConnectOptions::identity`](super::ConnectOptions::identity).
    pub identity: Option<StaticKey>,
    /// A sink for the keys of every connection, which suffice to read and forge all its messages.
    ///
    /// Default: `None`.
    #[cfg(feature = "key-log")]
    pub key_log: Option<alloc::sync::Arc<dyn crate::secure::KeyLog>>,
    /// The maximum number of secure handshakes per second in total.
    ///
    /// Default: 1,000, which takes about a quarter of a core, or a third if clients present an identity.
    pub handshakes_per_second: u16,
    /// The maximum number of secure handshakes per second for one network (a /24 of IPv4, a /64 of IPv6).
    ///
    /// A /48 of IPv6 may use four times as many. Default: 50. Players behind one relay may be one network. Each shard
    /// of a server counts separately.
    pub handshakes_per_network: u16,
    /// The implementation of the datagram cipher. Default: [`RustCrypto`], which is portable.
    pub cipher: &'static dyn DatagramCipher,
}

impl Security {
    /// Creates the settings from 32 unpredictable bytes, which must not be used for anything else.
    ///
    /// Ephemeral keys are derived from `seed`, so use a new one after a restart.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            random: SeededRandom::new(seed),
            server: None,
            identity: None,
            #[cfg(feature = "key-log")]
            key_log: None,
            handshakes_per_second: 1_000,
            handshakes_per_network: 50,
            cipher: &RustCrypto,
        }
    }

    /// Mixes `entropy` into the derivation of the ephemeral keys.
    pub(crate) fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.random.mix(entropy);
    }

    /// Takes the generator of the peer's ephemeral keys out of the settings.
    ///
    /// The remaining settings reveal none of these keys, and another peer created from them derives different keys.
    pub(super) fn take_random(&mut self) -> SeededRandom {
        self.random.split()
    }

    pub(super) const fn rates(&self) -> Rates {
        Rates { all: self.handshakes_per_second, network: self.handshakes_per_network, address: 0 }
    }
}

/// A copy has the same seed, so create a peer only from the copy or only from the original.
///
/// The drivers of this project mix in fresh entropy for each endpoint created from the same options.
impl Clone for Security {
    fn clone(&self) -> Self {
        Self {
            random: self.random.duplicate(),
            server: self.server.as_ref().map(ServerIdentity::duplicate),
            identity: self.identity.as_ref().map(StaticKey::duplicate),
            #[cfg(feature = "key-log")]
            key_log: self.key_log.clone(),
            ..*self
        }
    }
}

/// Omits secrets.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("server", &self.server.as_ref().map(ServerIdentity::public))
            .field("identity", &self.identity.as_ref().map(StaticKey::public))
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}

/// The authenticated identity of the remote peer in a secure connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurePeer {
    /// A server, with its authenticated key.
    Server(KnownServer),
    /// A client, with its authenticated identity if it presented one.
    Client(Option<ClientIdentity>),
}

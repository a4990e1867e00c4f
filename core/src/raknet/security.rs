//! The security of a peer: its keys, and what it asks of clients (docs/secure.md).

use core::fmt;

use crate::rate_limit::Rates;
use crate::secure::{
    ClientIdentity, DatagramCipher, KnownServer, RustCrypto, SeededRandom, ServerIdentity, StaticKey,
};

/// What a peer needs for secure connections.
///
/// ```
/// use rakwire::raknet::{Config, Security};
/// use rakwire::secure::{ServerIdentity, StaticKey};
///
/// // Random bytes in a real program, others each time it starts, and a key from a file.
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
    /// The key of the server that this peer is, and what it asks of clients. Default: none, a server without security.
    pub server: Option<ServerIdentity>,
    /// The key by which servers know this peer as a client in all connections that it opens, which are then secure or not
    /// opened ([`ConnectError::IdentityWithoutTrust`](super::ConnectError::IdentityWithoutTrust)), also where the other peer
    /// has begun to open one in plain. What others open is for [`server`](Self::server) to say. Default: none, and servers
    /// know nothing of it, but for connections with a [`ConnectOptions::identity`](super::ConnectOptions::identity).
    pub identity: Option<StaticKey>,
    /// Receives the keys of every connection, which suffice to read and forge all its messages. Default: `None`.
    #[cfg(feature = "key-log")]
    pub key_log: Option<alloc::sync::Arc<dyn crate::secure::KeyLog>>,
    /// How many handshakes a second the server computes for all together. Default: 1,000, about a fifth of a core, or a quarter
    /// where clients show an identity.
    pub handshakes_per_second: u16,
    /// How many handshakes a second the server computes for one network (24 bits of IPv4, 64 of IPv6); for 48 bits of IPv6
    /// four times as many. Default: 50, so that one network cannot have all of them. Players behind one relay may be one
    /// network. Each shard of a server counts by itself.
    pub handshakes_per_network: u16,
    /// What seals and opens datagrams. Default: [`RustCrypto`], which runs everywhere.
    pub cipher: &'static dyn DatagramCipher,
}

impl Security {
    /// From 32 bytes that nobody can guess and that are used for nothing else: ephemeral keys come from them. A peer that
    /// starts again needs new ones.
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

    /// Makes the ephemeral keys depend on these bytes too.
    pub(crate) fn diversify(&mut self, entropy: &[u8; 32]) {
        self.random.mix(entropy);
    }

    /// What the ephemeral keys of a peer come from. Whoever reads what stays here computes none of them, nor does another
    /// peer that is made of it.
    pub(super) fn take_random(&mut self) -> SeededRandom {
        self.random.split()
    }

    pub(super) const fn rates(&self) -> Rates {
        Rates { all: self.handshakes_per_second, network: self.handshakes_per_network, address: 0 }
    }
}

/// A copy has the same seed, so only one of them may be used. The drivers of this project see to it that two endpoints from
/// the same options have different seeds.
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

/// Shows no secret.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("server", &self.server.as_ref().map(ServerIdentity::public))
            .field("identity", &self.identity.as_ref().map(StaticKey::public))
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}

/// Whom the other peer of a secure connection has shown to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurePeer {
    /// The server with this key.
    Server(KnownServer),
    /// The client with this identity, or one without any.
    Client(Option<ClientIdentity>),
}

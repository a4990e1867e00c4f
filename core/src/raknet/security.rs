//! The security of a peer: its keys and its requirements for clients (docs/secure.md).

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
    /// The identity of this peer as a server, and its requirements for clients.
    ///
    /// Default: none, a server without security.
    pub server: Option<ServerIdentity>,
    /// The key that identifies this peer as a client in all connections that it opens.
    ///
    /// These are then secure or not opened
    /// ([`ConnectError::IdentityWithoutTrust`](super::ConnectError::IdentityWithoutTrust)), even if the remote peer has
    /// begun to open one in plain. Incoming connections are governed by [`server`](Self::server). Default: none; then
    /// only connections with a [`ConnectOptions::identity`](super::ConnectOptions::identity) have an identity.
    pub identity: Option<StaticKey>,
    /// Receives the keys of every connection, which suffice to read and forge all its messages.
    ///
    /// Default: `None`.
    #[cfg(feature = "key-log")]
    pub key_log: Option<alloc::sync::Arc<dyn crate::secure::KeyLog>>,
    /// The maximum number of handshakes per second that the server computes in total.
    ///
    /// Default: 1,000, about a fifth of a core, or a quarter if clients show an identity.
    pub handshakes_per_second: u16,
    /// The maximum number of handshakes per second that the server computes for one network (24 bits of IPv4, 64 of
    /// IPv6).
    ///
    /// For 48 bits of IPv6 it is four times as many. Default: 50, so that one network cannot take all of them. Players
    /// behind one relay may be one network. Each shard of a server has its own count.
    pub handshakes_per_network: u16,
    /// The cipher that seals and opens datagrams. Default: [`RustCrypto`], which runs everywhere.
    pub cipher: &'static dyn DatagramCipher,
}

impl Security {
    /// Creates the settings from 32 unpredictable bytes that are used for nothing else.
    ///
    /// Ephemeral keys are derived from them, so a peer that restarts needs new ones.
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

    /// Mixes these bytes into the derivation of the ephemeral keys.
    pub(crate) fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.random.mix(entropy);
    }

    /// Takes the generator from which the ephemeral keys of a peer are derived.
    ///
    /// The remaining state reveals none of them, and another peer created from it derives different ones.
    pub(super) fn take_random(&mut self) -> SeededRandom {
        self.random.split()
    }

    pub(super) const fn rates(&self) -> Rates {
        Rates { all: self.handshakes_per_second, network: self.handshakes_per_network, address: 0 }
    }
}

/// A copy has the same seed, so only one of the two may be used.
///
/// The drivers of this project ensure that two endpoints from the same options have different seeds.
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

/// The identity that the remote peer of a secure connection has proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurePeer {
    /// The server with this key.
    Server(KnownServer),
    /// A client, with its identity if it has one.
    Client(Option<ClientIdentity>),
}

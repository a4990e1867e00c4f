//! What a connection keeps of its keys, and of the handshake that makes them.

use core::fmt;

use crate::raknet::security::SecurePeer;
use crate::raknet::wire::control::Proof;
use crate::secure::{
    AcceptedToken, CHALLENGE, ClientHandshake, DatagramProtection, IDENTITY, MAX_IDENTITY_DATA, PROOF,
    ServerHandshake, ServerTrust, StaticKey,
};

/// Where there is an allocator, a plain connection takes no memory for what a secure one needs.
#[cfg(feature = "alloc")]
pub(super) type Stored<T> = alloc::boxed::Box<T>;
#[cfg(not(feature = "alloc"))]
pub(super) type Stored<T> = T;

/// The application's own bytes that go with an identity.
pub(super) type IdentityData = heapless::Vec<u8, MAX_IDENTITY_DATA>;

/// What a client keeps until a server has answered its challenge.
pub(crate) struct Dialling {
    pub(super) trust: ServerTrust,
    /// The key by which the server is to know this client, unless it is that of the configuration.
    pub(super) identity: Option<StaticKey>,
    /// What the server gets with the identity.
    pub(super) data: IdentityData,
    pub(super) challenge: [u8; CHALLENGE],
    pub(super) handshake: ClientHandshake,
}

/// What a secure connection keeps.
pub(crate) struct Sealed {
    pub(super) datagrams: DatagramProtection,
    pub(super) stage: Stage,
    pub(super) peer: SecurePeer,
}

pub(super) enum Stage {
    /// Client: the connection request is to be written.
    Requesting(Stored<ClientProof>),
    /// Server: the connection request has not come.
    HalfOpen {
        handshake: Stored<ServerHandshake>,
        /// Whether reply 2 is to be sent.
        owes_reply: bool,
    },
    Open {
        /// Server: the token of the client, if it was asked for one.
        token: Option<Stored<AcceptedToken>>,
    },
}

/// What a client writes into its connection request.
pub(super) struct ClientProof {
    pub(super) proof: [u8; PROOF],
    pub(super) identity: Option<[u8; IDENTITY]>,
}

impl ClientProof {
    pub(super) fn as_field(&self) -> Proof<'_> {
        Proof { proof: &self.proof, identity: self.identity.as_ref().map(|identity| &identity[..]) }
    }
}

impl fmt::Debug for Dialling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialling").field("trust", &self.trust).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Sealed {
    /// The handshake of a half-open connection, whether reply 2 is to be sent, and whether a datagram was opened.
    pub(super) fn half_open(&mut self) -> Option<(&ServerHandshake, &mut bool, bool)> {
        let has_opened = self.datagrams.has_opened();
        match &mut self.stage {
            Stage::HalfOpen { handshake, owes_reply } => Some((handshake, owes_reply, has_opened)),
            Stage::Requesting(_) | Stage::Open { .. } => None,
        }
    }
}

/// Where it is stored.
pub(super) fn place<T>(stored: &mut Stored<T>) -> &mut T {
    stored
}

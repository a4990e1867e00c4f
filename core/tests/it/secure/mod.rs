//! The building blocks of secure connections: handshakes, attacks on them, and committed test vectors.

mod attacks;
mod handshake;
mod hostile;
mod vectors;

use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::raknet::Guid;
use rakwire::secure::{
    ANSWER, CHALLENGE, ClientHandshake, ClientIdentity, DatagramProtection, Established, HandshakeError,
    Identity, IdentityError, Negotiated, ReplyFields, SecureRequest, SeededRandom, ServerHandshake,
    ServerIdentity, ServerTrust, StaticKey, Versions,
};

const START: Instant = Instant::ZERO;
const SIX: Versions = Versions { announced: 6, first: 6 };

/// A client, a server, and the cleartext values that they negotiate.
struct Stage {
    server: ServerIdentity,
    client: ClientHandshake,
    trust: ServerTrust,
    identity: Option<StaticKey>,
    negotiated: Negotiated,
    versions: Versions,
    reply: ReplyFields,
    random: SeededRandom,
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

impl Stage {
    fn new(identity: Option<StaticKey>) -> Self {
        let server = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
        Self {
            trust: ServerTrust::Key(server.public()),
            server,
            client: ClientHandshake::new(),
            identity,
            negotiated: Negotiated {
                server: Guid(0xA1),
                client: Guid(0xC1),
                cookie: 0xC00C_1E00,
                server_address: address("192.0.2.1:19132"),
                mtu: 1492,
            },
            versions: SIX,
            reply: ReplyFields { client: address("192.0.2.2:50000"), mtu: 1492 },
            random: SeededRandom::new([5; 32]),
        }
    }

    /// Creates a stage with a client that has an identity.
    fn with_identity() -> Self {
        Self::new(Some(StaticKey::from_bytes([2; 32])))
    }

    fn challenge(&mut self) -> Result<[u8; CHALLENGE], HandshakeError> {
        let field = self.server.field(self.negotiated.mtu);
        let has_identity = self.identity.is_some();
        self.client.challenge(
            &self.trust,
            has_identity,
            &field,
            &self.negotiated,
            self.versions,
            &mut self.random,
        )
    }

    fn respond(&mut self, challenge: &[u8]) -> Result<(ServerHandshake, DatagramProtection), HandshakeError> {
        let request = SecureRequest { negotiated: &self.negotiated, challenge };
        ServerHandshake::respond(&self.server, request, self.reply, &[6, 10, 11], START, &mut self.random)
    }

    fn accept(&mut self, answer: &[u8]) -> Result<Established, HandshakeError> {
        let identity = self.identity.as_ref().map(|key| Identity { key, data: b"Ada" });
        let server = self.negotiated.server;
        self.client.accept(answer, server, &self.reply.client, self.reply.mtu, identity, START)
    }

    /// Runs the handshake until the client has accepted the answer; returns the state of both peers.
    fn answered(&mut self) -> (Established, ServerHandshake, DatagramProtection) {
        let challenge = self.challenge().expect("a trusted key");
        let (handshake, at_server) = self.respond(&challenge).expect("a valid challenge");
        let established = self.accept(handshake.answer()).expect("a valid answer");
        (established, handshake, at_server)
    }
}

fn finish(
    mut handshake: ServerHandshake,
    at_server: &mut DatagramProtection,
    established: &Established,
) -> Result<Option<ClientIdentity>, IdentityError> {
    let identity = established.identity.as_ref().map(|identity| &identity[..]);
    handshake.finish(at_server, &established.proof, identity, START)
}

/// Returns true if a datagram sealed by one peer opens at the other.
fn passes(from: &mut DatagramProtection, to: &mut DatagramProtection) -> bool {
    let mut datagram = [0x84; 64];
    let length = from.seal(START, &mut datagram, 40).expect("space for the tag");
    to.open(START, &mut datagram[..length]).is_ok_and(|plain| *plain == [0x84; 40])
}

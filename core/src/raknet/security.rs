//! The security of a peer: its keys, and what it asks of clients (docs/secure.md).

use core::fmt;
use core::net::IpAddr;

use super::config::Config;
use super::connection::ConnectionProtection;
use super::features::{SERVER, room};
use super::requests::{Challenge, Request2};
use super::responder::Answer;
use super::state::State;
use super::stats::DropReason;
use super::types::RakNet;
use super::wire::offline::{Refusal, ServerSecurity};
use crate::endpoint::{ConnectionId, Peer, PeerStats};
use crate::rate_limit::{RateLimit, Rates};
use crate::secure::{
    ClientIdentity, HandshakeError, KnownServer, Negotiated, PUBLIC_KEY_FIELD, ReplyFields, SecureRandom,
    SecureRequest, SeededRandom, ServerHandshake, ServerIdentity, StaticKey,
};
use crate::time::Instant;

/// Groups of networks that have a share of the handshakes each.
const NETWORKS: usize = room(SERVER, 32);

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
    seed: [u8; 32],
    /// The key of the server that this peer is, and what it asks of clients. Default: none, a server without security.
    pub server: Option<ServerIdentity>,
    /// The key by which servers know this peer as a client. Default: none, and servers know nothing of it.
    pub identity: Option<StaticKey>,
    /// How many handshakes a second the server computes for all together. Default: 1,000, about a fifth of a core.
    pub handshakes_per_second: u16,
    /// How many handshakes a second the server computes for one network (24 bits of IPv4, 64 of IPv6). Default: 50, so that
    /// one network cannot have all of them.
    pub handshakes_per_network: u16,
}

impl Security {
    /// From 32 bytes that nobody can guess and that are used for nothing else: ephemeral keys come from them. A peer that
    /// starts again needs new ones.
    #[must_use]
    pub const fn new(seed: [u8; 32]) -> Self {
        Self { seed, server: None, identity: None, handshakes_per_second: 1_000, handshakes_per_network: 50 }
    }

    /// Replaces the seed by one that only this number gets from it.
    pub(crate) fn diversify(&mut self, number: u64) {
        let mut seed = SeededRandom::new(self.seed);
        seed.fill(&mut self.seed);
        self.seed.iter_mut().zip(number.to_be_bytes()).for_each(|(byte, with)| *byte ^= with);
    }

    const fn rates(&self) -> Rates {
        Rates { all: self.handshakes_per_second, network: self.handshakes_per_network }
    }
}

/// A copy has the same seed, so only one of them may be used. The drivers of this project see to it that two endpoints from
/// the same options have different seeds.
impl Clone for Security {
    fn clone(&self) -> Self {
        Self {
            seed: self.seed,
            server: self.server.as_ref().map(ServerIdentity::duplicate),
            identity: self.identity.as_ref().map(StaticKey::duplicate),
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
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The key of the server that this peer is, if it has one.
    pub(crate) fn server_identity(&self) -> Option<&ServerIdentity> {
        self.security.as_ref()?.server.as_ref()
    }

    /// Whether reply 1 has a key.
    pub(crate) fn has_server_key(&self) -> bool {
        self.server_identity().is_some()
    }

    /// Whether clients without security are refused.
    pub(crate) fn requires_security(&self) -> bool {
        self.server_identity().is_some_and(|identity| identity.requires_security)
    }

    /// What reply 1 asks the client to give back, with the key in `field`.
    pub(crate) fn server_security<'f>(
        &self,
        cookie: u32,
        mtu: u16,
        field: &'f mut [u8; PUBLIC_KEY_FIELD],
    ) -> ServerSecurity<'f> {
        let Some(identity) = self.server_identity() else { return ServerSecurity::Cookie(cookie) };
        *field = identity.field(mtu);
        ServerSecurity::PublicKey { cookie, key: field }
    }
}

/// What a peer keeps for the handshakes of all its connections.
pub(crate) struct SecureState {
    random: SeededRandom,
    limit: RateLimit<NETWORKS>,
}

impl fmt::Debug for SecureState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecureState").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl SecureState {
    pub(super) fn new(config: &Config) -> Self {
        // Without security nothing is drawn from it.
        let seed = config.security.as_ref().map_or([0; 32], |security| security.seed);
        Self { random: SeededRandom::new(seed), limit: RateLimit::default() }
    }

    pub(super) const fn random(&mut self) -> &mut SeededRandom {
        &mut self.random
    }

    fn admits(&mut self, config: &Config, now: Instant, from: IpAddr) -> bool {
        let rates = config.security.as_ref().map(Security::rates);
        rates.is_some_and(|rates| self.limit.admits(&config.secret, rates, now, from))
    }
}

/// A second request with a challenge, from a client whose cookie is verified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengeRequest<'r> {
    negotiated: Negotiated,
    challenge: &'r [u8],
    reply: ReplyFields,
}

impl<'r> ChallengeRequest<'r> {
    fn new(config: &Config, request: &Request2<'_>, challenge: &Challenge<'r>) -> Self {
        let negotiated = Negotiated {
            server: config.guid,
            client: request.guid,
            cookie: challenge.cookie,
            server_address: challenge.server_address,
            mtu: challenge.mtu,
        };
        let reply = ReplyFields { client: request.from, mtu: request.mtu };
        Self { negotiated, challenge: challenge.bytes, reply }
    }

    const fn fields(&self) -> SecureRequest<'_> {
        SecureRequest { negotiated: &self.negotiated, challenge: self.challenge }
    }

    /// Whether it is the request that this handshake has answered.
    pub(crate) fn repeats(&self, config: &Config, handshake: &ServerHandshake) -> bool {
        config.server_identity().is_some_and(|identity| handshake.is_repeated(identity, self.fields()))
    }

    /// The MTU that reply 2 has.
    pub(crate) const fn mtu(&self) -> u16 {
        self.reply.mtu
    }

    /// Computes the answer, if the client's network has not had enough of them. What gets none was counted, unless the
    /// client has another kind of security.
    pub(crate) fn respond(
        &self,
        config: &Config,
        state: &mut State<'_>,
        stats: &mut PeerStats<DropReason>,
        now: Instant,
    ) -> Result<ConnectionProtection, HandshakeError> {
        let identity = config.server_identity().ok_or(HandshakeError::Malformed)?;
        if !state.secure.admits(config, now, self.reply.client.ip()) {
            stats.drop(DropReason::HandshakeLimit);
            return Err(HandshakeError::Malformed);
        }
        let (versions, random) = (&config.accepted_versions, state.secure.random());
        match ServerHandshake::respond(identity, self.fields(), self.reply, versions, now, random) {
            Ok((handshake, datagrams)) => Ok(ConnectionProtection::half_open(handshake, datagrams)),
            Err(error) => {
                if error != HandshakeError::OtherSuite {
                    stats.drop(DropReason::Unauthentic);
                }
                Err(error)
            }
        }
    }
}

impl Peer<'_, RakNet> {
    /// What the connection of a client with a challenge begins with; or how the client is told that there is none, if it is.
    pub(super) fn answer_challenge(
        &mut self,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) -> Result<ConnectionProtection, Option<Answer>> {
        let Self { config, state, stats, last_now, .. } = self;
        let request = ChallengeRequest::new(config, request, challenge);
        request.respond(config, state, stats, *last_now).map_err(|error| {
            let is_told = error == HandshakeError::OtherSuite;
            is_told.then_some(Answer::Refused(Refusal::AttemptFailed))
        })
    }

    /// Handles another challenge of a client whose connection is half open.
    pub(super) fn answer_challenge_again(
        &mut self,
        slot: u16,
        request: &Request2<'_>,
        challenge: &Challenge<'_>,
    ) {
        let request = ChallengeRequest::new(&self.config, request, challenge);
        self.with(slot, |connection, cx| connection.on_challenge(cx, &request));
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

impl Peer<'_, RakNet> {
    /// Whom the other peer of a secure connection has shown to be, while the connection exists. None for a plain one, and
    /// before its keys are agreed on.
    ///
    /// A client that trusts any key stores the [`KnownServer`](crate::secure::KnownServer) that this returns, and trusts that
    /// the next time. A server ends the connections of clients whose identity it does not want.
    #[must_use]
    pub fn secure_peer(&self, id: ConnectionId) -> Option<SecurePeer> {
        self.get(id)?.connection.secure_peer()
    }
}

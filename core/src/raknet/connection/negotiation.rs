//! The key agreement of a connection (docs/secure.md#the-handshake).
//!
//! It also handles the security fields of the offline handshake if this peer has no keys.

#[cfg(feature = "secure")]
use core::mem;
use core::net::SocketAddr;

use super::block_header::Context;
use super::protection::ConnectionProtection;
#[cfg(feature = "secure")]
use super::protection::{ClientProof, Dialling, IdentityData, Sealed, Stage, Stored, place};
#[cfg(feature = "secure")]
use crate::cursor::Writer;
#[cfg(feature = "secure")]
use crate::endpoint::PeerStats;
use crate::endpoint::{ConnectError, RefuseReason};
#[cfg(feature = "secure")]
use crate::raknet::config::Config;
use crate::raknet::config::ConnectOptions;
use crate::raknet::reason::ConnectFailure;
#[cfg(feature = "secure")]
use crate::raknet::security::SecurePeer;
#[cfg(feature = "secure")]
use crate::raknet::shared_state::SecureState;
#[cfg(feature = "secure")]
use crate::raknet::stats::DropReason;
use crate::raknet::wire::Guid;
#[cfg(feature = "secure")]
use crate::raknet::wire::Wire;
use crate::raknet::wire::control::Proof;
#[cfg(feature = "secure")]
use crate::raknet::wire::offline::Offline;
use crate::raknet::wire::offline::{ClientSecurity, ServerSecurity};
#[cfg(feature = "secure")]
use crate::secure::{
    ANSWER, AcceptedToken, CHALLENGE, ClientHandshake, DatagramProtection, Established, HandshakeError,
    Identity, IdentityError, Negotiated, ReplyFields, SecureRequest, ServerHandshake, ServerIdentity,
    StaticKey, TokenError, TokenVerifier, Versions,
};
#[cfg(feature = "secure")]
use crate::time::Instant;

/// The contents of reply 1, with the context needed to answer it.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "secure"), expect(dead_code, reason = "only secure connections read all fields"))]
pub(super) struct Offer<'o> {
    pub(super) guid: Guid,
    pub(super) security: ServerSecurity<'o>,
    /// The server's address for request 2.
    pub(super) server_address: SocketAddr,
    /// The MTU for request 2.
    pub(super) mtu: u16,
    /// The protocol version offered in the current request, and the version offered first.
    pub(super) versions: [u8; 2],
}

/// The decision about how to answer reply 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acceptance {
    Plain,
    Cookie(u32),
    #[cfg(feature = "secure")]
    Challenge(u32),
}

/// The contents of reply 2.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "secure"), expect(dead_code, reason = "only secure connections read all fields"))]
pub(super) struct Reply2Fields<'r> {
    pub(super) guid: Guid,
    pub(super) client: SocketAddr,
    pub(super) mtu: u16,
    pub(super) answer: Option<&'r [u8]>,
}

/// Answers reply 1 as a client without security. A server with a key may also accept plain connections.
fn accept_in_plain(security: ServerSecurity<'_>) -> Result<Acceptance, ConnectFailure> {
    match security {
        ServerSecurity::None => Ok(Acceptance::Plain),
        ServerSecurity::Cookie(cookie) => Ok(Acceptance::Cookie(cookie)),
        ServerSecurity::PublicKey { cookie, key } if is_optional(key) => Ok(Acceptance::Cookie(cookie)),
        ServerSecurity::PublicKey { .. } => Err(ConnectFailure::SecurityRequired),
    }
}

/// Returns true if the server's key field states that security is optional (docs/secure.md#reply-1-the-key-64-bytes).
///
/// A key of another cipher suite, such as a C++ RakNet key, has no such flag.
fn is_optional(key: &[u8]) -> bool {
    const REQUIRED: u8 = 1;
    matches!(key, [_, _, flags, b'r', b'w', b's', b'0', b'1', ..] if flags & REQUIRED == 0)
}

#[cfg(feature = "secure")]
impl ConnectionProtection {
    /// Client: returns the initial protection of a new connection.
    pub(super) fn dial(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        let has_identity = identity_key(options.identity, cx.config).is_some();
        let data = IdentityData::from_slice(options.identity_data);
        let data = data.ok().filter(|data| data.is_empty() || has_identity);
        let data = data.ok_or(ConnectError::InvalidIdentityData)?;
        let Some(trust) = options.trust else {
            // A plain connection would neither prove the identity nor encrypt anything.
            return (!has_identity)
                .then(|| Self::new(cx.config.protection))
                .ok_or(ConnectError::IdentityWithoutTrust);
        };
        if cx.config.security.is_none() {
            return Err(ConnectError::NoSecurity);
        }
        Ok(Self::Dialling(Stored::<Dialling>::from(Dialling {
            trust,
            identity: options.identity.map(StaticKey::duplicate),
            data,
            challenge: [0; CHALLENGE],
            handshake: ClientHandshake::new(),
        })))
    }

    /// Server: returns the protection of a connection after the challenge has been answered.
    pub(crate) fn half_open(handshake: ServerHandshake, datagrams: DatagramProtection) -> Self {
        let stage =
            Stage::HalfOpen { handshake: Stored::<ServerHandshake>::from(handshake), reply_due: true };
        Self::Sealed(Stored::<Sealed>::from(Sealed { datagrams, stage, peer: SecurePeer::Client(None) }))
    }

    /// Client: decides how to answer reply 1; returns `None` to drop it.
    pub(super) fn on_offer(
        &mut self,
        cx: &mut Context<'_, '_>,
        offer: &Offer<'_>,
    ) -> Result<Option<Acceptance>, ConnectFailure> {
        let Self::Dialling(dialling) = self else { return accept_in_plain(offer.security).map(Some) };
        let ServerSecurity::PublicKey { cookie, key } = offer.security else {
            return Err(ConnectFailure::ServerWithoutSecurity);
        };
        let negotiated = Negotiated {
            server: offer.guid,
            client: cx.config.guid,
            cookie,
            server_address: offer.server_address,
            mtu: offer.mtu,
        };
        let [announced, first] = offer.versions;
        let has_identity = identity_key(dialling.identity.as_ref(), cx.config).is_some();
        let random = cx.state.secure.random();
        let Dialling { trust, handshake, .. } = place(dialling);
        let versions = Versions { announced, first };
        match handshake.challenge(trust, has_identity, key, &negotiated, versions, random) {
            Ok(challenge) => {
                dialling.challenge = challenge;
                Ok(Some(Acceptance::Challenge(cookie)))
            }
            Err(HandshakeError::OtherSuite | HandshakeError::KeyMismatch) => {
                Err(ConnectFailure::PublicKeyMismatch)
            }
            Err(_) => {
                cx.stats.drop(DropReason::Unauthentic);
                Ok(None)
            }
        }
    }

    /// Client: returns the security fields of request 2.
    pub(super) fn client_security(&self, acceptance: Acceptance) -> ClientSecurity<'_> {
        match (acceptance, self) {
            (Acceptance::Plain, _) => ClientSecurity::None,
            (Acceptance::Challenge(cookie), Self::Dialling(dialling)) => {
                ClientSecurity::Challenge { cookie, challenge: &dialling.challenge }
            }
            (Acceptance::Cookie(cookie) | Acceptance::Challenge(cookie), _) => ClientSecurity::Cookie(cookie),
        }
    }

    /// Client: verifies reply 2; returns false to drop it.
    pub(super) fn on_reply_2(
        &mut self,
        cx: &mut Context<'_, '_>,
        reply: &Reply2Fields<'_>,
    ) -> Result<bool, ConnectFailure> {
        let Self::Dialling(dialling) = self else {
            // This client sent no challenge, so there is nothing to verify. A server that still sends an answer would
            // encrypt its datagrams.
            return if reply.answer.is_some() { Err(ConnectFailure::SecurityRequired) } else { Ok(true) };
        };
        let Some(established) = dialling.establish(cx, reply) else {
            cx.stats.drop(DropReason::Unauthentic);
            return Ok(false);
        };
        let Established { protection, proof, identity, server } = established;
        *self = Self::Sealed(Stored::<Sealed>::from(Sealed {
            datagrams: protection.with_cipher(cx.config.cipher()),
            stage: Stage::Requesting(Stored::<ClientProof>::from(ClientProof { proof, identity })),
            peer: SecurePeer::Server(server),
        }));
        Ok(true)
    }

    /// Client: takes the proof for the connection request; `None` in a plain connection.
    pub(super) fn take_proof(&mut self) -> Option<Stored<ClientProof>> {
        let Self::Sealed(sealed) = self else { return None };
        match mem::replace(&mut sealed.stage, Stage::Open { token: None }) {
            Stage::Requesting(proof) => Some(proof),
            other @ (Stage::HalfOpen { .. } | Stage::Open { .. }) => {
                sealed.stage = other;
                None
            }
        }
    }

    /// Server: verifies the proof of a connection request, and its password or connect token.
    pub(super) fn admit(
        &mut self,
        cx: &Context<'_, '_>,
        proof: Option<Proof<'_>>,
        password: &[u8],
    ) -> Result<(), RefuseReason> {
        self.verify(cx, proof)?;
        let server = cx.config.server_identity();
        let Some((server, tokens)) = server.and_then(|server| Some((server, server.tokens.as_ref()?))) else {
            let is_accepted = cx.state.accepts_password(password);
            return if is_accepted { Ok(()) } else { Err(RefuseReason::WrongPassword) };
        };
        self.use_token(cx, server, tokens, password).map_err(|error| match error {
            TokenError::Expired => RefuseReason::TokenExpired,
            TokenError::OtherServer => RefuseReason::TokenForOtherServer,
            TokenError::OtherClient => RefuseReason::TokenOfOtherClient,
            TokenError::Used => RefuseReason::TokenUsed,
            TokenError::NoRoom => RefuseReason::TokenStoreFull,
            TokenError::DecryptionFailed | TokenError::TooLong => RefuseReason::NoToken,
        })
    }

    /// Server: verifies the proof of a connection request.
    fn verify(&mut self, cx: &Context<'_, '_>, proof: Option<Proof<'_>>) -> Result<(), RefuseReason> {
        let Self::Sealed(sealed) = self else { return Ok(()) };
        let (Stage::HalfOpen { mut handshake, .. }, Some(shown)) =
            (mem::replace(&mut sealed.stage, Stage::Open { token: None }), proof)
        else {
            return Err(RefuseReason::InvalidIdentity);
        };
        let handshake = place(&mut handshake);
        log_keys(cx.config, false, handshake.answer(), &sealed.datagrams);
        match handshake.finish(&mut sealed.datagrams, shown.proof, shown.identity, cx.now) {
            Ok(identity) => {
                if identity.is_some() {
                    log_keys(cx.config, false, handshake.answer(), &sealed.datagrams);
                }
                sealed.peer = SecurePeer::Client(identity);
                Ok(())
            }
            Err(IdentityError::Missing) => Err(RefuseReason::NoIdentity),
            Err(_) => Err(RefuseReason::InvalidIdentity),
        }
    }

    /// Server: redeems the connect token of a client. Only a client with an identity can present a token.
    fn use_token(
        &mut self,
        cx: &Context<'_, '_>,
        server: &ServerIdentity,
        tokens: &TokenVerifier,
        token: &[u8],
    ) -> Result<(), TokenError> {
        let Self::Sealed(sealed) = self else { return Err(TokenError::DecryptionFailed) };
        let SecurePeer::Client(Some(client)) = &sealed.peer else { return Err(TokenError::DecryptionFailed) };
        let now = cx.state.secure.unix_time(cx.now);
        let accepted = tokens.accept(token, &server.public().hash(), &client.key, now)?;
        sealed.stage = Stage::Open { token: Some(Stored::<AcceptedToken>::from(accepted)) };
        Ok(())
    }

    /// Server: handles a retransmitted or new second request for a half-open connection.
    ///
    /// Returns true if the request replaces the previous one.
    pub(super) fn on_challenge(&mut self, cx: &mut Context<'_, '_>, request: &ChallengeRequest<'_>) -> bool {
        let half_open = if let Self::Sealed(sealed) = self { sealed.half_open() } else { None };
        let Some((handshake, reply_due, has_opened)) = half_open else {
            cx.stats.drop(DropReason::Unexpected);
            return false;
        };
        if request.repeats(cx.config, handshake) {
            *reply_due = true;
            return false;
        }
        let number = handshake.number();
        if has_opened {
            cx.stats.drop(DropReason::Unexpected);
            return false;
        }
        let answered = request.respond(cx.config, &mut cx.state.secure, cx.stats, cx.now);
        let Ok((handshake, datagrams)) = answered else { return false };
        let is_newer = handshake.number() > number;
        if is_newer {
            *self = Self::half_open(handshake, datagrams);
        } else {
            cx.stats.drop(DropReason::Unexpected);
        }
        is_newer
    }

    /// Server: writes reply 2, if it is due.
    pub(super) fn compose_reply_2(
        &mut self,
        cx: &Context<'_, '_>,
        client: SocketAddr,
        mtu: u16,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let Self::Sealed(sealed) = self else { return None };
        let Stage::HalfOpen { handshake, reply_due } = &mut sealed.stage else { return None };
        if !mem::take(reply_due) {
            return None;
        }
        let answer: &[u8; ANSWER] = handshake.answer();
        let reply = Offline::Reply2 { guid: cx.config.guid, client, mtu, answer: Some(answer) };
        let mut writer = Writer::new(buffer);
        reply.write(&mut writer).ok()?;
        Some(writer.written())
    }

    /// Returns the authenticated identity of the remote peer.
    pub(super) fn secure_peer(&self) -> Option<SecurePeer> {
        let Self::Sealed(sealed) = self else { return None };
        match sealed.stage {
            Stage::HalfOpen { .. } => None,
            Stage::Requesting(_) | Stage::Open { .. } => Some(sealed.peer),
        }
    }

    /// Returns the connect token that the client presented.
    pub(super) fn accepted_token(&self) -> Option<&AcceptedToken> {
        let Self::Sealed(sealed) = self else { return None };
        let Stage::Open { token: Some(token) } = &sealed.stage else { return None };
        Some(token)
    }
}

#[cfg(feature = "secure")]
impl Dialling {
    fn establish(&mut self, cx: &Context<'_, '_>, reply: &Reply2Fields<'_>) -> Option<Established> {
        let answer = reply.answer?;
        let key = identity_key(self.identity.as_ref(), cx.config);
        let identity = key.map(|key| Identity { key, data: &self.data });
        let accepted = self.handshake.accept(answer, reply.guid, &reply.client, reply.mtu, identity, cx.now);
        accepted.ok().inspect(|established| log_keys(cx.config, true, answer, &established.protection))
    }
}

/// Returns the identity key of this client: the key for this attempt, or else the key in the configuration.
#[cfg(feature = "secure")]
fn identity_key<'k>(own: Option<&'k StaticKey>, config: &'k Config) -> Option<&'k StaticKey> {
    own.or_else(|| config.security.as_ref()?.identity.as_ref())
}

/// A second request with a challenge, from a client with a valid cookie.
#[cfg(feature = "secure")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengeRequest<'r> {
    pub(crate) negotiated: Negotiated,
    pub(crate) challenge: &'r [u8],
    /// The fields of reply 2 that are sent unencrypted.
    pub(crate) reply: ReplyFields,
}

#[cfg(feature = "secure")]
impl ChallengeRequest<'_> {
    const fn fields(&self) -> SecureRequest<'_> {
        SecureRequest { negotiated: &self.negotiated, challenge: self.challenge }
    }

    /// Returns true if this request is identical to the one that `handshake` has answered.
    fn repeats(&self, config: &Config, handshake: &ServerHandshake) -> bool {
        config.server_identity().is_some_and(|identity| handshake.is_repeated(identity, self.fields()))
    }

    /// Returns the MTU for reply 2.
    pub(crate) const fn mtu(&self) -> u16 {
        self.reply.mtu
    }

    /// Computes the answer, if the rate limit of the client's network allows it.
    ///
    /// A rejected challenge is counted in the drop counters, unless it belongs to another cipher suite.
    pub(crate) fn respond(
        &self,
        config: &Config,
        state: &mut SecureState,
        stats: &mut PeerStats<DropReason>,
        now: Instant,
    ) -> Result<(ServerHandshake, DatagramProtection), HandshakeError> {
        let identity = config.server_identity().ok_or(HandshakeError::Malformed)?;
        let count = |stats: &mut PeerStats<DropReason>, error: &HandshakeError| {
            if *error != HandshakeError::OtherSuite {
                stats.drop(DropReason::Unauthentic);
            }
        };
        // A request that fails these checks costs no elliptic-curve operation, so it does not count against the rate
        // limit.
        self.fields().check().inspect_err(|error| count(stats, error))?;
        if !state.admits(config, now, self.reply.client.ip()) {
            stats.drop(DropReason::HandshakeLimit);
            return Err(HandshakeError::Malformed);
        }
        let (versions, random) = (&config.accepted_versions, state.random());
        let answered = ServerHandshake::respond(identity, self.fields(), self.reply, versions, now, random);
        let answered = answered.inspect_err(|error| count(stats, error));
        answered.map(|(handshake, protection)| (handshake, protection.with_cipher(config.cipher())))
    }
}

/// Passes the keys of the handshake with this answer to the key log.
#[cfg(all(feature = "secure", feature = "key-log"))]
fn log_keys(config: &Config, is_client: bool, answer: &[u8], datagrams: &DatagramProtection) {
    if let Some(log) = config.security.as_ref().and_then(|security| security.key_log.as_ref()) {
        datagrams.log_keys(is_client, answer, &**log);
    }
}

/// Does nothing, because the feature `key-log` is left out.
#[cfg(all(feature = "secure", not(feature = "key-log")))]
const fn log_keys(_: &Config, _is_client: bool, _answer: &[u8], _: &DatagramProtection) {}

/// The proof in a client's connection request; uninhabited, because this build has no security.
#[cfg(not(feature = "secure"))]
#[derive(Clone, Copy)]
pub(super) enum ClientProof {}

#[cfg(not(feature = "secure"))]
impl ClientProof {
    pub(super) const fn as_field(&self) -> Proof<'_> {
        match *self {}
    }
}

// Without the feature `secure` a connection has no keys to agree on.
#[cfg(not(feature = "secure"))]
impl ConnectionProtection {
    /// Client: returns the initial protection of a new connection.
    pub(super) fn dial(cx: &Context<'_, '_>, _: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        Ok(Self::new(cx.config.protection))
    }

    /// Client: decides how to answer reply 1.
    pub(super) fn on_offer(
        &self,
        _: &Context<'_, '_>,
        offer: &Offer<'_>,
    ) -> Result<Option<Acceptance>, ConnectFailure> {
        accept_in_plain(offer.security).map(Some)
    }

    /// Client: returns the security fields of request 2.
    pub(super) const fn client_security(&self, acceptance: Acceptance) -> ClientSecurity<'_> {
        match acceptance {
            Acceptance::Plain => ClientSecurity::None,
            Acceptance::Cookie(cookie) => ClientSecurity::Cookie(cookie),
        }
    }

    /// Client: returns true if reply 2 opens the connection.
    pub(super) const fn on_reply_2(
        &self,
        _: &Context<'_, '_>,
        reply: &Reply2Fields<'_>,
    ) -> Result<bool, ConnectFailure> {
        // This client sent no challenge, so there is nothing to verify. A server that still sends an answer would
        // encrypt its datagrams.
        if reply.answer.is_some() { Err(ConnectFailure::SecurityRequired) } else { Ok(true) }
    }

    /// Client: takes the proof for the connection request.
    pub(super) const fn take_proof(&self) -> Option<ClientProof> {
        None
    }

    /// Server: verifies the password of a connection request.
    pub(super) fn admit(
        &self,
        cx: &Context<'_, '_>,
        _: Option<Proof<'_>>,
        password: &[u8],
    ) -> Result<(), RefuseReason> {
        if cx.state.accepts_password(password) { Ok(()) } else { Err(RefuseReason::WrongPassword) }
    }

    /// Server: writes reply 2, if it is due.
    pub(super) const fn compose_reply_2(
        &self,
        _: &Context<'_, '_>,
        _: SocketAddr,
        _: u16,
        _: &mut [u8],
    ) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_of_this_cipher_suite_can_declare_security_optional() {
        let mut key = [7; 64];
        key[2..8].copy_from_slice(b"\0rws01");
        assert!(is_optional(&key));
        key[2] = 2;
        assert!(is_optional(&key), "an identity is only required from clients with security");
        key[2] = 3;
        assert!(!is_optional(&key));
        key[2..8].copy_from_slice(b"\0rws02");
        assert!(!is_optional(&key));
        assert!(!is_optional(&[0; 7]));
    }
}

//! How two peers come to the keys of a connection (docs/secure.md#the-handshake).

use core::mem;
use core::net::SocketAddr;

use super::challenge::ChallengeRequest;
use super::context::Context;
use super::key_logging::log_keys;
use super::key_state::{ClientProof, Dialling, IdentityData, Sealed, Stage, Stored, place};
use super::offer::{Acceptance, Offer, Reply2Fields, accept_in_plain};
use super::protection::ConnectionProtection;
use crate::cursor::Writer;
use crate::endpoint::{ConnectError, RefuseReason};
use crate::raknet::config::Config;
use crate::raknet::reason::ConnectFailure;
use crate::raknet::security::SecurePeer;
use crate::raknet::stats::DropReason;
use crate::raknet::types::ConnectOptions;
use crate::raknet::wire::Wire;
use crate::raknet::wire::control::Proof;
use crate::raknet::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use crate::secure::{
    ANSWER, AcceptedToken, CHALLENGE, ClientHandshake, DatagramProtection, Established, HandshakeError,
    Identity, IdentityError, Negotiated, ServerHandshake, ServerIdentity, StaticKey, TokenError,
    TokenVerifier, Versions,
};

impl ConnectionProtection {
    /// What a connection begins with that this end opens.
    pub(super) fn dial(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        let has_identity = identity_key(options.identity, cx.config).is_some();
        let data = IdentityData::from_slice(options.identity_data);
        let data = data.ok().filter(|data| data.is_empty() || has_identity);
        let data = data.ok_or(ConnectError::InvalidIdentityData)?;
        let Some(trust) = options.trust else {
            // In plain nobody would see the identity, and nothing would be encrypted.
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

    /// What a connection begins with whose client the server has answered.
    pub(crate) fn half_open(handshake: ServerHandshake, datagrams: DatagramProtection) -> Self {
        let stage =
            Stage::HalfOpen { handshake: Stored::<ServerHandshake>::from(handshake), owes_reply: true };
        Self::Sealed(Stored::<Sealed>::from(Sealed { datagrams, stage, peer: SecurePeer::Client(None) }))
    }

    /// Client: how a reply 1 is answered; none if it is dropped.
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

    /// Client: the fields of request 2.
    pub(super) fn client_security(&self, acceptance: Acceptance) -> ClientSecurity<'_> {
        match (acceptance, self) {
            (Acceptance::Plain, _) => ClientSecurity::None,
            (Acceptance::Challenge(cookie), Self::Dialling(dialling)) => {
                ClientSecurity::Challenge { cookie, challenge: &dialling.challenge }
            }
            (Acceptance::Cookie(cookie) | Acceptance::Challenge(cookie), _) => ClientSecurity::Cookie(cookie),
        }
    }

    /// Client: whether a reply 2 opens the connection. It is dropped otherwise.
    pub(super) fn on_reply_2(
        &mut self,
        cx: &mut Context<'_, '_>,
        reply: &Reply2Fields<'_>,
    ) -> Result<bool, ConnectFailure> {
        let Self::Dialling(dialling) = self else {
            // Without a challenge of this client there is nothing to answer, but for a server that would encrypt.
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

    /// Client: what the connection request shows; none in a plain connection.
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

    /// Server: takes the proof of a connection request, and the password or what stands in its place.
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
            TokenError::DoesNotOpen | TokenError::TooLong => RefuseReason::NoToken,
        })
    }

    /// Server: takes the proof of a connection request.
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

    /// Server: uses the token of a client, which a client without an identity has none of.
    fn use_token(
        &mut self,
        cx: &Context<'_, '_>,
        server: &ServerIdentity,
        tokens: &TokenVerifier,
        token: &[u8],
    ) -> Result<(), TokenError> {
        let Self::Sealed(sealed) = self else { return Err(TokenError::DoesNotOpen) };
        let SecurePeer::Client(Some(client)) = &sealed.peer else { return Err(TokenError::DoesNotOpen) };
        let now = cx.state.secure.unix_time(cx.now);
        let accepted = tokens.accept(token, &server.public().hash(), &client.key, now)?;
        sealed.stage = Stage::Open { token: Some(Stored::<AcceptedToken>::from(accepted)) };
        Ok(())
    }

    /// Server: another second request of the client whose connection is half open. True if it takes the place of the one
    /// before.
    pub(super) fn on_challenge(&mut self, cx: &mut Context<'_, '_>, request: &ChallengeRequest<'_>) -> bool {
        let half_open = if let Self::Sealed(sealed) = self { sealed.half_open() } else { None };
        let Some((handshake, owes_reply, has_opened)) = half_open else {
            cx.stats.drop(DropReason::Unexpected);
            return false;
        };
        if request.repeats(cx.config, handshake) {
            *owes_reply = true;
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

    /// Server: writes reply 2, if it is to be sent.
    pub(super) fn compose_reply_2(
        &mut self,
        cx: &Context<'_, '_>,
        client: SocketAddr,
        mtu: u16,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let Self::Sealed(sealed) = self else { return None };
        let Stage::HalfOpen { handshake, owes_reply } = &mut sealed.stage else { return None };
        if !mem::take(owes_reply) {
            return None;
        }
        let answer: &[u8; ANSWER] = handshake.answer();
        let reply = Offline::Reply2 { guid: cx.config.guid, client, mtu, answer: Some(answer) };
        let mut writer = Writer::new(buffer);
        reply.write(&mut writer).ok()?;
        Some(writer.written())
    }

    /// Whom the other peer has shown to be.
    pub(super) fn secure_peer(&self) -> Option<SecurePeer> {
        let Self::Sealed(sealed) = self else { return None };
        match sealed.stage {
            Stage::HalfOpen { .. } => None,
            Stage::Requesting(_) | Stage::Open { .. } => Some(sealed.peer),
        }
    }

    /// The token that the client has shown.
    pub(super) fn accepted_token(&self) -> Option<&AcceptedToken> {
        let Self::Sealed(sealed) = self else { return None };
        let Stage::Open { token: Some(token) } = &sealed.stage else { return None };
        Some(token)
    }
}

impl Dialling {
    fn establish(&mut self, cx: &Context<'_, '_>, reply: &Reply2Fields<'_>) -> Option<Established> {
        let answer = reply.answer?;
        let key = identity_key(self.identity.as_ref(), cx.config);
        let identity = key.map(|key| Identity { key, data: &self.data });
        let accepted = self.handshake.accept(answer, reply.guid, &reply.client, reply.mtu, identity, cx.now);
        accepted.ok().inspect(|established| log_keys(cx.config, true, answer, &established.protection))
    }
}

/// The key by which the server is to know this client: that of this attempt, or else that of the configuration.
fn identity_key<'k>(own: Option<&'k StaticKey>, config: &'k Config) -> Option<&'k StaticKey> {
    own.or_else(|| config.security.as_ref()?.identity.as_ref())
}

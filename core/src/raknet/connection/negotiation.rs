//! How two peers come to the keys of a connection (docs/secure.md#the-handshake).

use core::mem;
use core::net::SocketAddr;

use super::challenge::ChallengeRequest;
use super::context::Context;
use super::key_state::{ClientProof, Dialling, Sealed, Stage, Stored, place};
use super::offer::{Acceptance, Offer, Reply2Fields, accept_in_plain};
use super::protection::ConnectionProtection;
use crate::cursor::Writer;
use crate::endpoint::ConnectError;
use crate::raknet::reason::ConnectFailure;
use crate::raknet::security::SecurePeer;
use crate::raknet::stats::DropReason;
use crate::raknet::types::ConnectOptions;
use crate::raknet::wire::Wire;
use crate::raknet::wire::control::{KeyProblem, Proof};
use crate::raknet::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use crate::secure::{
    ANSWER, CHALLENGE, ClientHandshake, DatagramProtection, Established, HandshakeError, Identity,
    IdentityError, Negotiated, ServerHandshake, Versions,
};

impl ConnectionProtection {
    /// What a connection begins with that this end opens.
    pub(super) fn dial(cx: &Context<'_, '_>, options: &ConnectOptions<'_>) -> Result<Self, ConnectError> {
        let Some(trust) = options.trust else { return Ok(Self::new(cx.config.protection)) };
        if cx.config.security.is_none() {
            return Err(ConnectError::NoSecurity);
        }
        Ok(Self::Dialling(Stored::<Dialling>::from(Dialling {
            trust,
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
        let has_identity = cx.config.security.as_ref().is_some_and(|security| security.identity.is_some());
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
            datagrams: protection,
            stage: Stage::Requesting(Stored::<ClientProof>::from(ClientProof { proof, identity })),
            peer: SecurePeer::Server(server),
        }));
        Ok(true)
    }

    /// Client: what the connection request shows; none in a plain connection.
    pub(super) fn take_proof(&mut self) -> Option<Stored<ClientProof>> {
        let Self::Sealed(sealed) = self else { return None };
        match mem::replace(&mut sealed.stage, Stage::Open) {
            Stage::Requesting(proof) => Some(proof),
            other @ (Stage::HalfOpen { .. } | Stage::Open) => {
                sealed.stage = other;
                None
            }
        }
    }

    /// Server: takes the proof of a connection request.
    pub(super) fn admit(&mut self, cx: &Context<'_, '_>, proof: Option<Proof<'_>>) -> Result<(), KeyProblem> {
        let Self::Sealed(sealed) = self else { return Ok(()) };
        let (Stage::HalfOpen { mut handshake, .. }, Some(shown)) =
            (mem::replace(&mut sealed.stage, Stage::Open), proof)
        else {
            return Err(KeyProblem::IdentityInvalid);
        };
        match place(&mut handshake).finish(&mut sealed.datagrams, shown.proof, shown.identity, cx.now) {
            Ok(identity) => {
                sealed.peer = SecurePeer::Client(identity);
                Ok(())
            }
            Err(IdentityError::Missing) => Err(KeyProblem::IdentityMissing),
            Err(_) => Err(KeyProblem::IdentityInvalid),
        }
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
            Stage::Requesting(_) | Stage::Open => Some(sealed.peer),
        }
    }
}

impl Dialling {
    fn establish(&mut self, cx: &Context<'_, '_>, reply: &Reply2Fields<'_>) -> Option<Established> {
        let answer = reply.answer?;
        let key = cx.config.security.as_ref().and_then(|security| security.identity.as_ref());
        let identity = key.map(|key| Identity { key, data: &[] });
        self.handshake.accept(answer, reply.guid, &reply.client, reply.mtu, identity, cx.now).ok()
    }
}

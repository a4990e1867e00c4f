//! The client's side of the handshake (docs/secure.md#the-handshake).

use core::net::SocketAddr;

use super::datagrams::{DatagramProtection, Keys};
use super::fields::{
    ANSWER, ANSWER_PAYLOAD, CHALLENGE, EARLY_LABEL, HandshakeError, IDENTITY, IDENTITY_PAYLOAD,
    MAX_IDENTITY_DATA, Negotiated, PROOF, PUBLIC_KEY_FIELD, Prologue, ServerKeyField, Versions,
    answer_payload, challenge_header, challenge_payload, proof,
};
use super::keys::{KnownServer, ServerTrust, StaticKey};
use super::noise::{Pattern, SymmetricState};
use super::primitives::{KEY, KeyPair, SecureRandom, TAG, is_equal, secret};
use crate::cursor::Writer;
use crate::raknet::wire::Guid;
use crate::time::Instant;

/// The maximum number of challenges in a connection attempt, to limit the computation that forged replies cause.
const MAX_CHALLENGES: u8 = 16;

/// The maximum number of answers that a connection attempt tries to decrypt, to limit the computation that forged
/// replies cause.
const MAX_ANSWERS: u8 = 250;

/// The identity that a client proves to the server.
#[derive(Clone, Copy)]
pub struct Identity<'k> {
    /// The client's static key.
    pub key: &'k StaticKey,
    /// Up to [`MAX_IDENTITY_DATA`] bytes of application data for the server, authenticated with the key.
    pub data: &'k [u8],
}

/// A challenge that was sent, and the handshake state to decrypt its answer.
struct SentChallenge {
    /// A hash of the prologue and the versions. If another reply 1 leads to the same hash, the same challenge is sent
    /// again.
    request: [u8; 32],
    bytes: [u8; CHALLENGE],
    pattern: Pattern,
    state: SymmetricState,
    ephemeral: KeyPair,
    server: KnownServer,
    /// The GUID in the reply 1 that the challenge responds to.
    guid: Guid,
}

/// The handshake state of one connection attempt.
///
/// It keeps the first challenge and the newest one. A later reply 1 with other contents requires another challenge, and
/// a forged reply must not displace the first challenge.
#[derive(Default)]
pub struct ClientHandshake {
    first: Option<SentChallenge>,
    newest: Option<SentChallenge>,
    /// The number of the next challenge.
    number: u8,
    /// The number of answers tried so far.
    answers: u8,
}

/// The result of a client's handshake, after reply 2.
pub struct Established {
    /// The packet protection of all further datagrams.
    pub protection: DatagramProtection,
    /// The proof for the connection request.
    pub proof: [u8; PROOF],
    /// The identity for the connection request, if the client has one.
    pub identity: Option<[u8; IDENTITY]>,
    /// The authenticated server.
    pub server: KnownServer,
}

impl ClientHandshake {
    /// Creates a handshake without any challenge.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: None, newest: None, number: 0, answers: 0 }
    }

    /// Returns the challenge for request 2, in response to a reply 1 with this key. Calls with identical values return
    /// identical bytes.
    ///
    /// `has_identity` announces whether an identity will be passed to [`accept`](Self::accept).
    ///
    /// # Errors
    /// - [`HandshakeError::OtherSuite`] or [`HandshakeError::KeyMismatch`] if the client does not trust this server:
    ///   fail the attempt.
    /// - [`HandshakeError::Malformed`] if a field has a wrong length, or the public key is invalid.
    /// - [`HandshakeError::TooMany`] after sixteen different replies.
    pub fn challenge(
        &mut self,
        trust: &ServerTrust,
        has_identity: bool,
        key_field: &[u8],
        negotiated: &Negotiated,
        versions: Versions,
        random: &mut impl SecureRandom,
    ) -> Result<[u8; CHALLENGE], HandshakeError> {
        let key_field: &[u8; PUBLIC_KEY_FIELD] =
            key_field.try_into().map_err(|_| HandshakeError::Malformed)?;
        let key = ServerKeyField::read(key_field).ok_or(HandshakeError::OtherSuite)?;
        if !trust.accepts(&key.server.key) {
            return Err(HandshakeError::KeyMismatch);
        }
        let pattern = if has_identity { Pattern::Xk } else { Pattern::Nk };
        let prologue = Prologue::new(key_field, negotiated, pattern);
        let request = prologue.request_hash(&[versions.announced, versions.first]);
        let sent = [&self.first, &self.newest].into_iter().flatten().find(|sent| sent.request == request);
        if let Some(sent) = sent {
            return Ok(sent.bytes);
        }
        if self.number >= MAX_CHALLENGES {
            return Err(HandshakeError::TooMany);
        }
        let ephemeral = KeyPair::new(&secret(random));
        let mut state = SymmetricState::start(pattern, prologue.bytes(), &key.server.key.0);
        let bytes = write_challenge(&mut state, &ephemeral, pattern, &key, versions, self.number)
            .ok_or(HandshakeError::Malformed)?;
        self.number += 1;
        let place = if self.first.is_none() { &mut self.first } else { &mut self.newest };
        *place = Some(SentChallenge {
            request,
            bytes,
            pattern,
            state,
            ephemeral,
            server: key.server,
            guid: negotiated.server,
        });
        Ok(bytes)
    }

    /// Verifies the answer in a reply 2 with this cleartext GUID, address and MTU.
    ///
    /// # Errors
    /// - Most errors mean that the answer is not from the server: drop it, count it, and continue the attempt.
    /// - [`HandshakeError::Malformed`]: as above, or the identity has too much data, or its presence differs from
    ///   `has_identity` of [`challenge`](Self::challenge).
    /// - [`HandshakeError::TooMany`] after 250 answers that could not be decrypted.
    pub fn accept(
        &mut self,
        answer: &[u8],
        server: Guid,
        client: &SocketAddr,
        mtu: u16,
        identity: Option<Identity<'_>>,
        now: Instant,
    ) -> Result<Established, HandshakeError> {
        let answer: &[u8; ANSWER] = answer.try_into().map_err(|_| HandshakeError::Malformed)?;
        if self.answers >= MAX_ANSWERS {
            return Err(HandshakeError::TooMany);
        }
        let mut found = HandshakeError::DecryptionFailed;
        for sent in [&self.first, &self.newest].into_iter().flatten().filter(|sent| sent.guid == server) {
            self.answers = self.answers.saturating_add(1);
            match sent.accept(*answer, client, mtu, identity, now) {
                Err(HandshakeError::DecryptionFailed) => {}
                Err(other) => found = other,
                established => return established,
            }
        }
        Err(found)
    }
}

fn write_challenge(
    state: &mut SymmetricState,
    ephemeral: &KeyPair,
    pattern: Pattern,
    key: &ServerKeyField,
    versions: Versions,
    number: u8,
) -> Option<[u8; CHALLENGE]> {
    let mut bytes = [0; CHALLENGE];
    let mut writer = Writer::new(&mut bytes);
    writer.bytes(&challenge_header(pattern)).ok()?;
    writer.zeros(KEY).ok()?;
    writer.bytes(&challenge_payload(versions, number)).ok()?;
    let (_, message) = bytes.split_first_chunk_mut::<{ super::fields::CHALLENGE_HEADER }>()?;
    state.write_first(ephemeral, &key.server.key.0, message)?;
    Some(bytes)
}

impl SentChallenge {
    fn accept(
        &self,
        mut answer: [u8; ANSWER],
        client: &SocketAddr,
        mtu: u16,
        identity: Option<Identity<'_>>,
        now: Instant,
    ) -> Result<Established, HandshakeError> {
        // Works on a copy of the state: if this answer is forged, the genuine one may still follow.
        let mut state = self.state.duplicate();
        let server_ephemeral =
            state.read_second(&self.ephemeral, &mut answer).ok_or(HandshakeError::DecryptionFailed)?;
        check_payload(&answer, client, mtu)?;
        let server = self.server;
        match (self.pattern, identity) {
            (Pattern::Nk, None) => {
                let protection = DatagramProtection::new(Keys::of_client(state.split()), now);
                Ok(Established { protection, proof: proof(&state), identity: None, server })
            }
            (Pattern::Xk, Some(identity)) => {
                let early = Keys::of_client(state.derive(EARLY_LABEL));
                let message = write_identity(&mut state, identity, &server_ephemeral)
                    .ok_or(HandshakeError::Malformed)?;
                let keys = Keys::of_client(state.split());
                let protection = DatagramProtection::early_of_client(early, keys, now);
                Ok(Established { protection, proof: proof(&state), identity: Some(message), server })
            }
            (Pattern::Nk, Some(_)) | (Pattern::Xk, None) => Err(HandshakeError::Malformed),
        }
    }
}

/// Checks that the authenticated payload matches the cleartext fields of reply 2.
fn check_payload(answer: &[u8; ANSWER], client: &SocketAddr, mtu: u16) -> Result<(), HandshakeError> {
    const MEANINGFUL: usize = crate::raknet::wire::address::MAX_ADDRESS + 2;
    let expected: [u8; ANSWER_PAYLOAD] = answer_payload(client, mtu);
    let said = answer.get(KEY..KEY + MEANINGFUL).unwrap_or(&[]);
    let is_same = is_equal(said, expected.get(..MEANINGFUL).unwrap_or(&[]));
    if is_same { Ok(()) } else { Err(HandshakeError::Contradiction) }
}

fn write_identity(
    state: &mut SymmetricState,
    identity: Identity<'_>,
    server_ephemeral: &[u8; KEY],
) -> Option<[u8; IDENTITY]> {
    let length =
        u8::try_from(identity.data.len()).ok().filter(|length| usize::from(*length) <= MAX_IDENTITY_DATA)?;
    let mut message = [0; IDENTITY];
    let mut writer = Writer::new(&mut message);
    writer.zeros(KEY + TAG).ok()?;
    writer.u8(length).ok()?;
    writer.bytes(identity.data).ok()?;
    state.write_third(identity.key.pair(), server_ephemeral, &mut message)?;
    Some(message)
}

const _: () = assert!(KEY + TAG + IDENTITY_PAYLOAD + TAG == IDENTITY);
const _: () = assert!(KEY + ANSWER_PAYLOAD + TAG == ANSWER);

//! The server's side of the handshake (docs/secure.md#the-handshake).

use core::net::SocketAddr;

use super::datagrams::{DatagramProtection, Keys};
use super::fields::{
    ANSWER, CHALLENGE, CHALLENGE_HEADER, EARLY_LABEL, HandshakeError, IDENTITY, IDENTITY_PAYLOAD,
    IdentityError, MAX_IDENTITY_DATA, Negotiated, PUBLIC_KEY_FIELD, Prologue, ServerKeyField, Versions,
    answer_payload, challenge_header, is_of_suite, proof,
};
use super::keys::{KeyHash, KnownServer, PublicKey, StaticKey};
use super::noise::{Pattern, SymmetricState};
use super::primitives::{KEY, KeyPair, SecureRandom, TAG, is_equal, secret};
use super::token::TokenVerifier;
use crate::cursor::{Reader, Source, Writer};
use crate::time::Instant;

/// The key of a server, and its requirements for clients.
///
/// ```
/// use rakwire::secure::{ServerIdentity, StaticKey};
///
/// let next = StaticKey::from_bytes([2; 32]).public();
/// let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32])); // from a key file in a real program
/// identity.requires_security = true;
/// identity.next = Some(next.hash());
/// assert_eq!(identity.field(1492)[..3], [0x05, 0xD4, 1]);
/// ```
pub struct ServerIdentity {
    key: StaticKey,
    /// True to refuse clients without security. Default: false.
    pub requires_security: bool,
    /// True to refuse clients without an identity. Default: false.
    pub requires_identity: bool,
    /// The hash of the server's next key, which clients store so that they trust it later. Default: none.
    pub next: Option<KeyHash>,
    /// Verifies the connect tokens that clients must present instead of a password.
    ///
    /// Default: none, so no token is required.
    ///
    /// If set, clients without security or without an identity are refused, regardless of the other fields.
    pub tokens: Option<TokenVerifier>,
}

impl ServerIdentity {
    /// Creates a server identity with this key and no requirements.
    #[must_use]
    pub const fn new(key: StaticKey) -> Self {
        Self { key, requires_security: false, requires_identity: false, next: None, tokens: None }
    }

    /// Returns a copy, for copies of a configuration.
    pub(crate) fn duplicate(&self) -> Self {
        let tokens = self.tokens.as_ref().map(TokenVerifier::duplicate);
        Self { key: self.key.duplicate(), tokens, ..*self }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.key.public()
    }

    /// Returns the key field of a reply 1 with this MTU.
    #[must_use]
    pub fn field(&self, mtu: u16) -> [u8; PUBLIC_KEY_FIELD] {
        self.parts(mtu).write()
    }

    /// Returns true if clients without security are refused.
    pub(crate) const fn refuses_plain(&self) -> bool {
        self.requires_security || self.tokens.is_some()
    }

    /// Returns true if clients without an identity are refused.
    const fn refuses_unidentified(&self) -> bool {
        self.requires_identity || self.tokens.is_some()
    }

    const fn parts(&self, mtu: u16) -> ServerKeyField {
        ServerKeyField {
            mtu,
            requires_security: self.refuses_plain(),
            requires_identity: self.refuses_unidentified(),
            server: KnownServer { key: self.key.public(), next: self.next },
        }
    }
}

/// A received request 2, and the cleartext exchanged before it.
#[derive(Clone, Copy, Debug)]
pub struct SecureRequest<'r> {
    /// The cleartext exchanged before the handshake.
    pub negotiated: &'r Negotiated,
    /// The challenge, as received.
    pub challenge: &'r [u8],
}

impl SecureRequest<'_> {
    /// Checks the length and the clear bytes of the challenge, without any cryptography.
    pub(crate) fn check(&self) -> Result<(), HandshakeError> {
        self.read().map(|_| ())
    }

    fn read(&self) -> Result<(Pattern, &[u8; CHALLENGE]), HandshakeError> {
        let challenge: &[u8; CHALLENGE] = self.challenge.try_into().map_err(|_| HandshakeError::Malformed)?;
        let header = challenge.first_chunk::<CHALLENGE_HEADER>().ok_or(HandshakeError::Malformed)?;
        if !is_of_suite(header) {
            return Err(HandshakeError::OtherSuite);
        }
        let pattern =
            [Pattern::Nk, Pattern::Xk].into_iter().find(|pattern| challenge_header(*pattern) == *header);
        Ok((pattern.ok_or(HandshakeError::Malformed)?, challenge))
    }
}

/// The cleartext fields of a reply 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFields {
    /// The client's address, as in the cleartext of reply 2.
    pub client: SocketAddr,
    /// The MTU, as in the cleartext of reply 2.
    pub mtu: u16,
}

/// The authenticated identity of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The client's static key.
    pub key: PublicKey,
    data: [u8; MAX_IDENTITY_DATA],
    length: u8,
}

impl ClientIdentity {
    /// Returns the application data of the identity.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.data.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

/// A handshake that the server has answered, before it has received the connection request.
pub struct ServerHandshake {
    answer: [u8; ANSWER],
    request: [u8; 32],
    number: u8,
    pattern: Pattern,
    state: SymmetricState,
    ephemeral: KeyPair,
    requires_identity: bool,
}

impl ServerHandshake {
    /// Computes the answer to a challenge.
    ///
    /// It generates a key pair and computes two DH operations, so call it only for a client with a verified cookie and
    /// within the rate limit. `accepted_versions` are the RakNet protocol versions that the server accepts in request
    /// 1.
    ///
    /// # Errors
    /// A [`HandshakeError`]: drop and count the request. [`HandshakeError::OtherSuite`] is returned before any curve
    /// operation, and may be reported to the client.
    pub fn respond(
        identity: &ServerIdentity,
        request: SecureRequest<'_>,
        reply: ReplyFields,
        accepted_versions: &[u8],
        now: Instant,
        random: &mut impl SecureRandom,
    ) -> Result<(Self, DatagramProtection), HandshakeError> {
        let (pattern, challenge) = request.read()?;
        let prologue = Prologue::new(&identity.field(0), request.negotiated, pattern);
        let mut state = SymmetricState::start(pattern, prologue.bytes(), &identity.public().0);
        let opened = open_challenge(&mut state, identity.key.pair(), *challenge);
        let (client, versions, number) = opened.ok_or(HandshakeError::DecryptionFailed)?;
        if versions.are_downgraded(accepted_versions) {
            return Err(HandshakeError::Downgrade);
        }
        let ephemeral = KeyPair::new(&secret(random));
        let answer =
            write_answer(&mut state, &ephemeral, &client, reply).ok_or(HandshakeError::DecryptionFailed)?;
        let protection = match pattern {
            Pattern::Nk => DatagramProtection::new(Keys::of_server(state.split()), now),
            Pattern::Xk => {
                DatagramProtection::early_of_server(Keys::of_server(state.derive(EARLY_LABEL)), now)
            }
        };
        let handshake = Self {
            answer,
            request: prologue.request_hash(challenge),
            number,
            pattern,
            state,
            ephemeral,
            requires_identity: identity.refuses_unidentified(),
        };
        Ok((handshake, protection))
    }

    /// Returns the answer for reply 2.
    #[must_use]
    pub const fn answer(&self) -> &[u8; ANSWER] {
        &self.answer
    }

    /// Returns the number of the challenge.
    ///
    /// A further request from this client replaces the handshake if its number is higher and no datagram has been opened
    /// yet.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// Returns true if this is the request that was answered; send the same [`answer`](Self::answer) again.
    ///
    /// The check takes a few hashes and no DH operation.
    #[must_use]
    pub fn is_repeated(&self, identity: &ServerIdentity, request: SecureRequest<'_>) -> bool {
        request.read().is_ok_and(|(pattern, challenge)| {
            let prologue = Prologue::new(&identity.field(0), request.negotiated, pattern);
            is_equal(&prologue.request_hash(challenge), &self.request)
        })
    }

    /// Verifies the proof and the identity in the connection request, and installs the keys of the finished
    /// handshake.
    ///
    /// # Errors
    /// An [`IdentityError`]: report it to the client in message 0x0A, and close the connection.
    pub fn finish(
        &mut self,
        protection: &mut DatagramProtection,
        proof_field: &[u8],
        identity: Option<&[u8]>,
        now: Instant,
    ) -> Result<Option<ClientIdentity>, IdentityError> {
        let shown = match (self.pattern, identity) {
            (Pattern::Nk, None) if self.requires_identity => return Err(IdentityError::Missing),
            (Pattern::Nk, None) => None,
            (Pattern::Xk, Some(identity)) => {
                Some(self.read_identity(identity).ok_or(IdentityError::Invalid)?)
            }
            (Pattern::Nk, Some(_)) | (Pattern::Xk, None) => return Err(IdentityError::Invalid),
        };
        if !is_equal(&proof(&self.state), proof_field) {
            return Err(IdentityError::Invalid);
        }
        if shown.is_some() {
            protection.install(Keys::of_server(self.state.split()), now);
        }
        Ok(shown)
    }

    fn read_identity(&mut self, identity: &[u8]) -> Option<ClientIdentity> {
        let mut message: [u8; IDENTITY] = identity.try_into().ok()?;
        let key = self.state.read_third(&self.ephemeral, &mut message)?;
        let mut reader = Reader::new(message.get(KEY + TAG..KEY + TAG + IDENTITY_PAYLOAD)?);
        let length = reader.u8("length").ok()?;
        let data = reader.array().ok()?;
        (usize::from(length) <= MAX_IDENTITY_DATA).then_some(ClientIdentity {
            key: PublicKey(key),
            data,
            length,
        })
    }
}

/// Decrypts a challenge; returns the client's ephemeral key, its versions, and the number of the challenge.
fn open_challenge(
    state: &mut SymmetricState,
    server: &KeyPair,
    mut challenge: [u8; CHALLENGE],
) -> Option<([u8; KEY], Versions, u8)> {
    let (_, message) = challenge.split_first_chunk_mut::<CHALLENGE_HEADER>()?;
    let client = state.read_first(server, message)?;
    let mut payload = Reader::new(message.get(KEY..)?);
    let [announced, first, number] = payload.array().ok()?;
    Some((client, Versions { announced, first }, number))
}

fn write_answer(
    state: &mut SymmetricState,
    ephemeral: &KeyPair,
    client: &[u8; KEY],
    reply: ReplyFields,
) -> Option<[u8; ANSWER]> {
    let mut answer = [0; ANSWER];
    let mut writer = Writer::new(&mut answer);
    writer.zeros(KEY).ok()?;
    writer.bytes(&answer_payload(&reply.client, reply.mtu)).ok()?;
    state.write_second(ephemeral, client, &mut answer)?;
    Some(answer)
}

//! Runs the handshake of a secure connection as the client, step by step.

use crate::case::Context;
use crate::check::{Check, ensure, fail, skip};
use crate::link::Link;
use crate::secure::{Handshake, KeyPair, SUITE, SecureReply, hash, prologue, read_reply_1};
use crate::session::{Session, new_guid, now};
use crate::wire::{self, Reply1, Reply2, id};

/// The length of a reply 1 with a key.
pub const REPLY_1: usize = 96;

/// The fields of a challenge that a case may change.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// The identifier of the handshake pattern.
    pub pattern: u8,
    /// The number of the challenge within its connection attempt.
    pub number: u8,
    /// The protocol version of the client's first request 1.
    pub first_version: u8,
    /// The client's GUID.
    pub guid: u64,
}

/// A challenge, and the state for checking its answer.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// The request 2 that contains the challenge.
    pub request: Vec<u8>,
    /// The handshake state after its first message.
    pub handshake: Handshake,
    /// The client's ephemeral key.
    pub ephemeral: KeyPair,
    /// The client's GUID.
    pub guid: u64,
    /// The MTU in request 2.
    pub mtu: u16,
}

/// Creates a key pair that no other case uses. It protects no real data, so it may be derived from the clock.
fn ephemeral() -> KeyPair {
    KeyPair::new(hash(&[&new_guid().to_be_bytes(), &new_guid().to_be_bytes()]))
}

impl Context {
    /// Requests a reply 1 with a key.
    pub fn secure_reply(&mut self) -> Check<(Link, SecureReply)> {
        let mut link = self.link()?;
        let request = wire::request_1(self.options.version, 1464);
        match link.ask(&request, &[id::REPLY_1])?.as_deref().map(read_reply_1) {
            Some(Some(reply)) => Ok((link, reply)),
            Some(None) => skip("reply 1 (06) has no key, so the server does not use its secure mode"),
            None => fail("the server did not send reply 1 (06)"),
        }
    }

    /// Returns the fields of a correct challenge.
    #[must_use]
    pub fn choices(&self) -> Choices {
        Choices { pattern: 1, number: 0, first_version: self.options.version, guid: new_guid() }
    }

    /// Builds a request 2 with a challenge.
    #[must_use]
    pub fn challenge(&self, link: &Link, reply: &SecureReply, choices: Choices) -> Challenge {
        let mtu = reply.mtu;
        let mut address = Vec::new();
        wire::put_address(&mut address, link.target);
        let head = [&[choices.pattern, 0, 0][..], SUITE].concat();
        let covered = prologue(reply, &head, &address, mtu, choices.guid);
        let mut handshake = Handshake::new(&covered, &reply.public());
        let ephemeral = ephemeral();
        let payload = [self.options.version, choices.first_version, choices.number, 0, 0, 0, 0, 0];
        let first = handshake.write_first(&ephemeral, reply.public(), &payload);
        let mut request = [&[id::REQUEST_2][..], &wire::MAGIC, &reply.cookie.to_be_bytes(), &[1]].concat();
        request.extend([&head[..], &first, &address].concat());
        request.extend(mtu.to_be_bytes());
        request.extend(choices.guid.to_be_bytes());
        Challenge { request, handshake, ephemeral, guid: choices.guid, mtu }
    }

    /// Runs the handshake up to a reply 2 with a valid answer.
    pub fn secure_dial(&mut self) -> Check<(Session, Handshake)> {
        let (mut link, reply) = self.secure_reply()?;
        let challenge = self.challenge(&link, &reply, self.choices());
        let Some(answer) = link.ask(&challenge.request, &[id::REPLY_2])? else {
            return fail("the server did not answer a correct challenge with reply 2 (08)");
        };
        let (second, handshake) = finish(&challenge, &answer)?;
        link.seal = Some(handshake.keys(true));
        let first =
            Reply1 { guid: reply.guid, security: 1, cookie: Some(reply.cookie), key: true, mtu: reply.mtu };
        Ok((Session::new(link, challenge.guid, first, second), handshake))
    }

    /// Opens a secure connection.
    pub fn secure_open(&mut self) -> Check<Session> {
        let (mut session, handshake) = self.secure_dial()?;
        let request = request(&session, &handshake.proof(), &self.password());
        session.send_reliable(request)?;
        let answer = session.link.timing.answer;
        let came = session.wait(answer, |session| session.first(id::ACCEPTED).is_some())?;
        let accepted = session.first(id::ACCEPTED).filter(|_| came);
        let Some(accepted) = accepted.and_then(|ten| wire::read_accepted(&ten.capsule.payload)) else {
            return fail("the server did not send connection request accepted (10) in a sealed datagram");
        };
        let server = session.link.target;
        session.send_13(server, accepted.addresses.max(10), accepted.time)?;
        Ok(session)
    }
}

/// Builds a connection request with a proof and without an identity.
#[must_use]
pub fn request(session: &Session, proof: &[u8; 32], password: &[u8]) -> Vec<u8> {
    let head = [&[id::CONNECTION_REQUEST][..], &session.guid.to_be_bytes(), &now().to_be_bytes()].concat();
    [&head[..], &[1], proof, &[0], password].concat()
}

/// Reads a reply 2 and decrypts its answer. Fails unless the answer equals the unencrypted fields.
pub fn finish(challenge: &Challenge, bytes: &[u8]) -> Check<(Reply2, Handshake)> {
    let Some(second) = wire::read_reply_2(bytes) else {
        return fail("the suite cannot parse reply 2 (08)");
    };
    ensure(second.encryption != 0 && second.rest >= 128, || {
        format!(
            "the encryption byte in reply 2 (08) is {:02x}, and {} bytes follow",
            second.encryption, second.rest
        )
    })?;
    let answer = &bytes[bytes.len() - second.rest..][..128];
    let mut handshake = challenge.handshake.clone();
    let Some(payload) = handshake.read_second(answer, &challenge.ephemeral) else {
        return fail("the suite cannot decrypt the answer in reply 2 (08)");
    };
    let mut due = Vec::new();
    wire::put_address(&mut due, second.client);
    due.resize(29, 0);
    due.extend(second.mtu.to_be_bytes());
    ensure(payload.get(..31) == Some(&due[..]), || {
        "the answer contains a different address or MTU than reply 2 (08)".into()
    })?;
    Ok((second, handshake))
}

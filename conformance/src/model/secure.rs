//! The model's secure connections: keys, challenges, and encrypted datagrams.

use super::connection::{Connection, Stage};
use super::fault::{Fault, SecureFault};
use super::sealed::{Opened, Secure};
use super::server::{Server, Setup, VERSION};
use crate::secure::{Handshake, KeyPair, SUITE, SecureReply, hash, prologue};
use crate::wire::{self, id};
use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, UdpSocket};

impl Server {
    /// Creates a server that requires secure connections.
    pub(super) fn secure(socket: UdpSocket, fault: Fault) -> Self {
        let mut model = Self::new(socket, Setup::default(), fault);
        model.secure = Some(Secure { key: KeyPair::new([5; 32]), opened: HashMap::new(), answers: 0 });
        model
    }

    fn secure_fault(&self) -> SecureFault {
        if let Fault::Secure(fault) = self.fault { fault } else { SecureFault::None }
    }

    /// Builds a reply 1 with a key; `None` if the request is too short.
    pub(super) fn secure_reply_1(&self, from: SocketAddr, request: usize, mtu: u16) -> Option<Vec<u8>> {
        let secure = self.secure.as_ref()?;
        let fault = self.secure_fault();
        if request < 96 && fault != SecureFault::AnswersShortRequest {
            return None;
        }
        let mut out = wire::refusal(id::REPLY_1, self.guid);
        out.push(1);
        out.extend(self.cookie(from).to_be_bytes());
        out.extend(self.key_of_reply(secure, mtu));
        out.extend(mtu.to_be_bytes());
        if fault == SecureFault::KeyTail {
            out.push(0xaa);
        }
        Some(out)
    }

    fn key_of_reply(&self, secure: &Secure, mtu: u16) -> [u8; 64] {
        let fault = self.secure_fault();
        let mut key = [0; 64];
        if fault != SecureFault::MtuOnce {
            key[..2].copy_from_slice(&mtu.to_be_bytes());
        }
        key[2] = if fault == SecureFault::FlagsOdd { 0x41 } else { 1 };
        key[3..8].copy_from_slice(if fault == SecureFault::SuiteOdd { b"rws99" } else { SUITE });
        key[8..40].copy_from_slice(&secure.key.public);
        key
    }

    /// Handles a request 2 of a secure handshake. Returns true if the request is to be handled as an unencrypted one.
    pub(super) fn secure_request_2(&mut self, from: SocketAddr, bytes: &[u8]) -> bool {
        if self.secure.is_none() {
            return true;
        }
        if bytes.len() != 103 || bytes[21] != 1 {
            return self.secure_fault() == SecureFault::AcceptsPlain;
        }
        if let Some(reply) = self.answer(from, bytes) {
            let repeats = self.secure_fault() == SecureFault::RepeatsAnswer;
            (0..if repeats { 8 } else { 1 }).for_each(|_| self.send(from, &reply));
        }
        false
    }

    fn answer(&mut self, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let fault = self.secure_fault();
        let before = self.secure.as_ref()?.opened.get(&from);
        if let Some(same) = before.filter(|before| before.request == bytes && fault != SecureFault::NewAnswer)
        {
            return Some(same.reply.clone());
        }
        let mut reader = wire::Reader(&bytes[17..]);
        let (cookie, _) = (reader.u32()?, reader.u8()?);
        let challenge = reader.bytes(64)?;
        let address = reader.bytes(7)?;
        let (mut mtu, mut guid) = (reader.u16()?, reader.u64()?);
        if cookie != self.cookie(from) && fault != SecureFault::CookieUnchecked {
            return None;
        }
        if challenge[0] != 1 && fault != SecureFault::AnyPattern || challenge[3..8] != *SUITE {
            return None;
        }
        let secure = self.secure.as_ref()?;
        match fault {
            SecureFault::MtuUncovered => mtu = 1492,
            SecureFault::GuidUncovered => guid = before.map_or(guid, |_| guid) ^ u64::from(bytes[102] & 1),
            _ => {}
        }
        let key = self.key_of_reply(secure, mtu);
        let reply = SecureReply { guid: self.guid, cookie, key, mtu };
        let mut handshake =
            Handshake::new(&prologue(&reply, &challenge[..8], address, mtu, guid), &secure.key.public);
        let read = handshake.read_first(&challenge[8..], &secure.key);
        let unchecked = (fault == SecureFault::TagUnchecked).then(|| ([9; 32], vec![VERSION, VERSION, 0]));
        let (client, payload) = read.or(unchecked)?;
        let number = *payload.get(2)?;
        if before.is_some_and(|before| before.used) {
            return None;
        }
        let later = before.is_none_or(|before| number > before.number);
        if before.is_some() && fault == SecureFault::KeepsFirst || !later && fault != SecureFault::AnyNumber {
            return (fault == SecureFault::NewAnswer).then(|| self.reply_with(from, mtu, &[1; 128]));
        }
        self.remember(from, bytes, handshake, client, (mtu, guid, number))
    }

    fn reply_with(&self, from: SocketAddr, mtu: u16, answer: &[u8]) -> Vec<u8> {
        let mut out = wire::reply_2(self.guid, from, mtu);
        out.pop();
        out.push(0x80);
        out.extend(answer);
        out
    }

    fn remember(
        &mut self,
        from: SocketAddr,
        request: &[u8],
        mut handshake: Handshake,
        client: [u8; 32],
        (mtu, guid, number): (u16, u64, u8),
    ) -> Option<Vec<u8>> {
        let fault = self.secure_fault();
        let mut payload = Vec::new();
        wire::put_address(&mut payload, from);
        payload.resize(29, 0);
        let named = if fault == SecureFault::AnswerOfAnother { mtu - 1 } else { mtu };
        payload.extend(named.to_be_bytes());
        payload.resize(80, 0);
        let secure = self.secure.as_mut()?;
        secure.answers += 1;
        let ephemeral = KeyPair::new(hash(&[&secure.answers.to_be_bytes(), request]));
        let mut answer = handshake.write_second(&ephemeral, client, &payload);
        if fault == SecureFault::AnswerBroken {
            answer[100] ^= 1;
        }
        let (seal, proof) = (handshake.keys(false), handshake.proof());
        let reply = self.reply_with(from, mtu, &answer);
        let opened = Opened {
            request: request.to_vec(),
            reply: reply.clone(),
            number,
            seal,
            proof,
            used: false,
            seen: HashSet::new(),
            newest: 0,
            last: Vec::new(),
        };
        self.secure.as_mut()?.opened.insert(from, opened);
        self.connections.insert(from, Connection::new(guid, mtu, self.fault, false));
        Some(reply)
    }

    /// Returns the decrypted datagram of a secure connection, or the unchanged datagram of any other.
    pub(super) fn unsealed(&mut self, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let fault = self.secure_fault();
        let Some(secure) = self.secure.as_mut() else {
            return Some(bytes.to_vec());
        };
        let inside = secure.opened.get_mut(&from).map(|opened| opened.open(bytes, fault));
        match inside {
            Some(Some(plain)) => Some(plain),
            // The client has connected without encryption.
            None => Some(bytes.to_vec()),
            Some(None) => {
                match fault {
                    SecureFault::BadSealEnds => {
                        self.connections.remove(&from);
                    }
                    SecureFault::DiesOfShortSeal if bytes.len() < 19 => self.dead = true,
                    _ => {}
                }
                None
            }
        }
    }

    /// Returns a connection request (09) without its proof, or `None` if the proof is invalid. Without a secure
    /// connection, returns it unchanged.
    pub(super) fn proven(&mut self, from: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
        let fault = self.secure_fault();
        let Some(opened) = self.secure.as_ref().and_then(|secure| secure.opened.get(&from)) else {
            return Some(payload.to_vec());
        };
        let flag = *payload.get(17)?;
        if flag == 0 && fault == SecureFault::ProofOptional {
            return Some(payload.to_vec());
        }
        let right = payload.get(18..50) == Some(&opened.proof[..]) || fault == SecureFault::ProofUnchecked;
        if flag != 1 || !right || fault == SecureFault::NeverAccepts {
            if let Some(connection) = self.connections.get_mut(&from) {
                connection.send(2, vec![0x0a, 2]);
                connection.stage = Stage::Refused;
            }
            return None;
        }
        Some([&payload[..17], &[0], payload.get(51..)?].concat())
    }
}

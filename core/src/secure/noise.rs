//! The parts of the Noise protocol framework (revision 34) that secure connections use.
//!
//! These are the patterns NK and XK with 25519, ChaChaPoly and BLAKE2s. Both have the pre-message `<- s` and the same
//! first two messages; XK has a third:
//!
//! ```text
//! -> e, es
//! <- e, ee
//! -> s, se        (XK)
//! ```
//!
//! Every message is read and written in place. All payloads are encrypted, because each follows a DH token. A state
//! that has rejected a message must not be used again. A reader that may receive another message therefore works on a
//! [`duplicate`](SymmetricState::duplicate).

use super::primitives::{KEY, KeyPair, Secret, TAG, hash, hkdf, open_message, seal_message};

/// The pattern of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// NK: the client has no identity.
    Nk,
    /// XK: the client has an identity.
    Xk,
}

impl Pattern {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Nk => b"Noise_NK_25519_ChaChaPoly_BLAKE2s",
            Self::Xk => b"Noise_XK_25519_ChaChaPoly_BLAKE2s",
        }
    }
}

/// `SymmetricState` and its `CipherState`. The nonces of every Noise key start at zero.
///
/// Its steps are not inlined: handshakes are rare, and the code should be small in WebAssembly and on
/// microcontrollers.
pub(super) struct SymmetricState {
    chaining_key: Secret,
    hash: [u8; KEY],
    key: Secret,
    nonce: u64,
}

impl SymmetricState {
    /// Starts a handshake, before its first message.
    pub(super) fn start(pattern: Pattern, prologue: &[u8], server: &[u8; KEY]) -> Self {
        // The names are longer than a hash, so Noise hashes them.
        let name = hash(&[pattern.name()]);
        let mut state =
            Self { chaining_key: Secret::new(name), hash: name, key: Secret::new([0; KEY]), nonce: 0 };
        state.mix_hash(prologue);
        state.mix_hash(server);
        state
    }

    pub(super) const fn duplicate(&self) -> Self {
        Self {
            chaining_key: self.chaining_key.duplicate(),
            hash: self.hash,
            key: self.key.duplicate(),
            nonce: self.nonce,
        }
    }

    /// Returns the handshake hash, which is equal at both peers if they saw the same messages.
    pub(super) const fn handshake_hash(&self) -> &[u8; KEY] {
        &self.hash
    }

    /// Performs `Split`: returns the key from client to server, then the key from server to client.
    pub(super) fn split(&self) -> [Secret; 2] {
        self.derive(&[])
    }

    /// Derives two keys for purposes outside Noise. Precondition: the label is neither empty nor as long as a point.
    pub(super) fn derive(&self, label: &[u8]) -> [Secret; 2] {
        hkdf(self.chaining_key.as_bytes(), label)
    }

    pub(super) const fn chaining_key(&self) -> &Secret {
        &self.chaining_key
    }

    #[inline(never)]
    fn mix_hash(&mut self, data: &[u8]) {
        self.hash = hash(&[&self.hash, data]);
    }

    #[inline(never)]
    fn mix_key(&mut self, shared: &Secret) {
        let [chaining_key, key] = hkdf(self.chaining_key.as_bytes(), shared.as_bytes());
        (self.chaining_key, self.key, self.nonce) = (chaining_key, key, 0);
    }

    fn mix_dh(&mut self, ours: &KeyPair, theirs: &[u8; KEY]) -> Option<()> {
        let shared = ours.diffie_hellman(theirs)?;
        self.mix_key(&shared);
        Some(())
    }

    #[inline(never)]
    fn encrypt_and_hash(&mut self, message: &mut [u8]) -> Option<()> {
        seal_message(&self.key, self.nonce, &self.hash, message)?;
        self.nonce += 1;
        self.mix_hash(message);
        Some(())
    }

    #[inline(never)]
    fn decrypt_and_hash(&mut self, message: &mut [u8]) -> Option<()> {
        let after = hash(&[&self.hash, message]);
        open_message(&self.key, self.nonce, &self.hash, message)?;
        self.nonce += 1;
        self.hash = after;
        Some(())
    }

    /// Writes `-> e, es`. `message` has space for `e`, then the payload, then space for a tag.
    pub(super) fn write_first(
        &mut self,
        ephemeral: &KeyPair,
        server: &[u8; KEY],
        message: &mut [u8],
    ) -> Option<()> {
        let (e, payload) = message.split_first_chunk_mut::<KEY>()?;
        *e = *ephemeral.public();
        self.mix_hash(e);
        self.mix_dh(ephemeral, server)?;
        self.encrypt_and_hash(payload)
    }

    /// Reads a message of [`write_first`](Self::write_first) at the server; returns the client's ephemeral key.
    ///
    /// The payload is decrypted in place.
    pub(super) fn read_first(&mut self, server: &KeyPair, message: &mut [u8]) -> Option<[u8; KEY]> {
        let (e, payload) = message.split_first_chunk_mut::<KEY>()?;
        self.mix_hash(e);
        self.mix_dh(server, e)?;
        self.decrypt_and_hash(payload)?;
        Some(*e)
    }

    /// Writes `<- e, ee`, with space as in [`write_first`](Self::write_first).
    pub(super) fn write_second(
        &mut self,
        ephemeral: &KeyPair,
        client: &[u8; KEY],
        message: &mut [u8],
    ) -> Option<()> {
        // The second message has the same tokens, with `ee` in place of `es`.
        self.write_first(ephemeral, client, message)
    }

    /// Reads a message of [`write_second`](Self::write_second) at the client; returns the server's ephemeral key.
    pub(super) fn read_second(&mut self, ephemeral: &KeyPair, message: &mut [u8]) -> Option<[u8; KEY]> {
        self.read_first(ephemeral, message)
    }

    /// Writes `-> s, se`. `message` has space for `s` and a tag, then the payload, then space for a tag.
    pub(super) fn write_third(
        &mut self,
        client: &KeyPair,
        server_ephemeral: &[u8; KEY],
        message: &mut [u8],
    ) -> Option<()> {
        let (s, payload) = message.split_first_chunk_mut::<{ KEY + TAG }>()?;
        let (key, _) = s.split_first_chunk_mut::<KEY>()?;
        *key = *client.public();
        self.encrypt_and_hash(s)?;
        self.mix_dh(client, server_ephemeral)?;
        self.encrypt_and_hash(payload)
    }

    /// Reads a message of [`write_third`](Self::write_third) at the server; returns the client's static key.
    pub(super) fn read_third(&mut self, ephemeral: &KeyPair, message: &mut [u8]) -> Option<[u8; KEY]> {
        let (s, payload) = message.split_first_chunk_mut::<{ KEY + TAG }>()?;
        self.decrypt_and_hash(s)?;
        let (key, _) = s.split_first_chunk::<KEY>()?;
        self.mix_dh(ephemeral, key)?;
        self.decrypt_and_hash(payload)?;
        Some(*key)
    }
}

#[cfg(test)]
mod tests {
    //! Tests of Noise against the test vectors of two other implementations.

    use std::format;
    use std::vec::Vec;

    use serde_json::Value;

    use super::*;
    use crate::secure::primitives::{open_message, seal_message};

    const VECTORS: &str = include_str!("../../tests/vectors/noise.json");

    fn bytes(vector: &Value, name: &str) -> Vec<u8> {
        let text = vector[name].as_str().unwrap_or_else(|| panic!("{name} of {vector}"));
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
    }

    fn pair(vector: &Value, name: &str) -> KeyPair {
        KeyPair::new(&Secret::new(bytes(vector, name).try_into().expect("32 bytes")))
    }

    /// Returns a message in the layout that the writers expect: space, the payload, space for the tag.
    fn room(before: usize, payload: &[u8]) -> Vec<u8> {
        [&std::vec![0; before][..], payload, &[0; TAG]].concat()
    }

    #[test]
    fn noise_matches_the_vectors_of_other_implementations() {
        let file: Value = serde_json::from_str(VECTORS).expect("JSON");
        let vectors = ["cacophony", "snow"].map(|source| file[source].as_array().expect("a list"));
        for vector in vectors.into_iter().flatten() {
            let name = vector["protocol_name"].as_str().expect("a name").as_bytes();
            let pattern = [Pattern::Nk, Pattern::Xk].into_iter().find(|pattern| pattern.name() == name);
            check_vector(vector, pattern.expect("NK or XK"));
        }
        // For each pattern, cacophony has one vector and snow has eight, with different lengths of prologue and
        // payload.
        assert_eq!(vectors.map(Vec::len), [2, 16]);
    }

    fn check_vector(vector: &Value, pattern: Pattern) {
        let [client_e, server_e, server_s] =
            ["init_ephemeral", "resp_ephemeral", "resp_static"].map(|name| pair(vector, name));
        assert_eq!(bytes(vector, "init_remote_static"), server_s.public());
        let mut client = SymmetricState::start(pattern, &bytes(vector, "init_prologue"), server_s.public());
        let mut server = SymmetricState::start(pattern, &bytes(vector, "resp_prologue"), server_s.public());
        let mut messages = vector["messages"].as_array().expect("a list").iter();
        let mut next = || {
            let message = messages.next().expect("a message");
            (bytes(message, "payload"), bytes(message, "ciphertext"))
        };

        let (payload, expected) = next();
        let mut message = room(KEY, &payload);
        client.write_first(&client_e, server_s.public(), &mut message).expect("enough space");
        assert_eq!(message, expected);
        assert_eq!(server.read_first(&server_s, &mut message), Some(*client_e.public()));
        assert_eq!(message[KEY..KEY + payload.len()], payload);

        let (payload, expected) = next();
        let mut message = room(KEY, &payload);
        server.write_second(&server_e, client_e.public(), &mut message).expect("enough space");
        assert_eq!(message, expected);
        assert_eq!(client.read_second(&client_e, &mut message), Some(*server_e.public()));
        assert_eq!(message[KEY..KEY + payload.len()], payload);

        if pattern == Pattern::Xk {
            let client_s = pair(vector, "init_static");
            let (payload, expected) = next();
            let mut message = room(KEY + TAG, &payload);
            client.write_third(&client_s, server_e.public(), &mut message).expect("enough space");
            assert_eq!(message, expected);
            assert_eq!(server.read_third(&server_e, &mut message), Some(*client_s.public()));
            assert_eq!(message[KEY + TAG..KEY + TAG + payload.len()], payload);
        }

        assert_eq!(client.handshake_hash()[..], bytes(vector, "handshake_hash"));
        assert_eq!(client.handshake_hash(), server.handshake_hash());
        // Transport messages alternate between the directions; after XK the server begins.
        let keys = client.split();
        let mut from_client = pattern == Pattern::Nk;
        let mut nonces = [0, 0];
        for message in messages {
            let index = usize::from(!from_client);
            let mut sealed = room(0, &bytes(message, "payload"));
            seal_message(&keys[index], nonces[index], &[], &mut sealed).expect("enough space");
            assert_eq!(sealed, bytes(message, "ciphertext"));
            assert!(open_message(&server.split()[index], nonces[index], &[], &mut sealed).is_some());
            nonces[index] += 1;
            from_client = !from_client;
        }
    }

    #[test]
    fn every_changed_bit_of_a_message_is_detected() {
        let [e, s] = [1, 2].map(|seed| KeyPair::new(&Secret::new([seed; 32])));
        let start = || SymmetricState::start(Pattern::Nk, b"prologue", s.public());
        let mut message = room(KEY, b"payload");
        start().write_first(&e, s.public(), &mut message).expect("enough space");
        assert!(start().read_first(&s, &mut message.clone()).is_some());
        for bit in 0..message.len() * 8 {
            let mut changed = message.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(start().read_first(&s, &mut changed).is_none(), "{}", format!("bit {bit}"));
        }
        let mut other = SymmetricState::start(Pattern::Nk, b"another", s.public());
        assert!(other.read_first(&s, &mut message.clone()).is_none());
        let mut other = SymmetricState::start(Pattern::Xk, b"prologue", s.public());
        assert!(other.read_first(&s, &mut message).is_none());
    }
}

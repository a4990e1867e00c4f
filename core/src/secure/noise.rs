//! The Noise protocol (revision 34) as far as connections need it: NK and XK with 25519, ChaChaPoly and BLAKE2s.
//!
//! Both patterns have `<- s` before them, and the same first two messages; XK has a third one:
//!
//! ```text
//! -> e, es
//! <- e, ee
//! -> s, se        (XK)
//! ```
//!
//! Every message is read and written in place. Payloads are encrypted in all of them, since each has a DH before its payload.
//! A state that a message was refused by is worth nothing, so whoever may get another one reads with a
//! [`duplicate`](SymmetricState::duplicate).

use super::primitives::{KEY, KeyPair, Secret, TAG, hash, hkdf, open_message, seal_message};

/// The pattern of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The client has no identity.
    Nk,
    /// The client has one.
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

/// `SymmetricState`, and the `CipherState` within it. Every key of Noise is used from nonce zero on.
///
/// Its steps are never inlined: handshakes are rare, and their code is to be small in pages and on boards.
pub(super) struct SymmetricState {
    chaining_key: Secret,
    hash: [u8; KEY],
    key: Secret,
    nonce: u64,
}

impl SymmetricState {
    /// A handshake before its first message.
    pub(super) fn start(pattern: Pattern, prologue: &[u8], server: &[u8; KEY]) -> Self {
        // The names are longer than a hash, so they are hashed.
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

    /// The hash of all that was said: equal at both peers if their messages were.
    pub(super) const fn handshake_hash(&self) -> &[u8; KEY] {
        &self.hash
    }

    /// `Split`: the key from client to server, and the one back.
    pub(super) fn split(&self) -> [Secret; 2] {
        self.derive(&[])
    }

    /// Two keys for what Noise does not name. The label must be neither empty nor as long as a point.
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

    /// `-> e, es`. `message` has room for `e`, the payload, and room for a tag.
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

    /// The server's side of [`write_first`](Self::write_first): the client's ephemeral key. The payload is in its place.
    pub(super) fn read_first(&mut self, server: &KeyPair, message: &mut [u8]) -> Option<[u8; KEY]> {
        let (e, payload) = message.split_first_chunk_mut::<KEY>()?;
        self.mix_hash(e);
        self.mix_dh(server, e)?;
        self.decrypt_and_hash(payload)?;
        Some(*e)
    }

    /// `<- e, ee`, with room as in [`write_first`](Self::write_first).
    pub(super) fn write_second(
        &mut self,
        ephemeral: &KeyPair,
        client: &[u8; KEY],
        message: &mut [u8],
    ) -> Option<()> {
        // The same tokens, with `ee` in place of `es`.
        self.write_first(ephemeral, client, message)
    }

    /// The client's side of [`write_second`](Self::write_second): the server's ephemeral key.
    pub(super) fn read_second(&mut self, ephemeral: &KeyPair, message: &mut [u8]) -> Option<[u8; KEY]> {
        self.read_first(ephemeral, message)
    }

    /// `-> s, se`. `message` has room for `s` and a tag, the payload, and room for a tag.
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

    /// The server's side of [`write_third`](Self::write_third): the client's static key.
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
#[path = "noise_tests.rs"]
mod tests;

//! The cryptography of secure connections, written only from docs/secure.md: the Noise pattern NK, and
//! encrypted datagrams.

use crate::wire::{self, id};
use blake2::{Blake2s256, Digest as _};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};

/// The identifier of the cipher suite.
pub const SUITE: &[u8; 5] = b"rws01";
/// The number of bytes that encryption adds to a datagram.
pub const OVERHEAD: usize = 19;

const NAME: &[u8] = b"Noise_NK_25519_ChaChaPoly_BLAKE2s";
const BLOCK: usize = 64;
const COUNTER_BITS: u32 = 21;

/// Returns the BLAKE2s-256 hash of concatenated byte strings.
#[must_use]
pub fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Blake2s256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

fn hmac(key: &[u8; 32], data: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| -> [u8; BLOCK] {
        std::array::from_fn(|at| key.get(at).copied().unwrap_or_default() ^ byte)
    };
    let inner = hash(&[&[&pad(0x36)[..]], data].concat());
    hash(&[&pad(0x5c), &inner])
}

fn hkdf(ck: &[u8; 32], input: &[u8]) -> ([u8; 32], [u8; 32]) {
    let temporary = hmac(ck, &[input]);
    let first = hmac(&temporary, &[&[1]]);
    (first, hmac(&temporary, &[&first, &[2]]))
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    bytes.into()
}

/// Encrypts with ChaCha20-Poly1305 and appends the tag.
fn encrypt(key: &[u8; 32], counter: u64, aad: &[u8], msg: &[u8]) -> Vec<u8> {
    let cipher = ChaCha20Poly1305::new(&(*key).into());
    // Encryption fails only for messages of many gigabytes.
    cipher.encrypt(&nonce(counter), Payload { msg, aad }).unwrap_or_default()
}

fn decrypt(key: &[u8; 32], counter: u64, aad: &[u8], msg: &[u8]) -> Option<Vec<u8>> {
    let cipher = ChaCha20Poly1305::new(&(*key).into());
    cipher.decrypt(&nonce(counter), Payload { msg, aad }).ok()
}

/// An X25519 key pair.
#[derive(Clone, Debug)]
pub struct KeyPair {
    private: [u8; 32],
    /// The public key.
    pub public: [u8; 32],
}

impl KeyPair {
    /// Creates the key pair of a private key.
    #[must_use]
    pub fn new(private: [u8; 32]) -> Self {
        let public = x25519_dalek::x25519(private, x25519_dalek::X25519_BASEPOINT_BYTES);
        Self { private, public }
    }

    fn agree(&self, other: [u8; 32]) -> [u8; 32] {
        x25519_dalek::x25519(self.private, other)
    }
}

/// The state of a handshake on either side.
#[derive(Clone, Debug)]
pub struct Handshake {
    ck: [u8; 32],
    h: [u8; 32],
    k: [u8; 32],
    n: u64,
}

impl Handshake {
    /// Creates the state from data that both sides know: the prologue and the server's public key.
    #[must_use]
    pub fn new(prologue: &[u8], server: &[u8; 32]) -> Self {
        let name = hash(&[NAME]);
        let mut begun = Self { ck: name, h: name, k: [0; 32], n: 0 };
        begun.mix_hash(prologue);
        begun.mix_hash(server);
        begun
    }

    fn mix_hash(&mut self, data: &[u8]) {
        self.h = hash(&[&self.h, data]);
    }

    fn mix_key(&mut self, input: [u8; 32]) {
        (self.ck, self.k) = hkdf(&self.ck, &input);
        self.n = 0;
    }

    fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        let sealed = encrypt(&self.k, self.n, &self.h, plain);
        self.n += 1;
        self.mix_hash(&sealed);
        sealed
    }

    fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let plain = decrypt(&self.k, self.n, &self.h, sealed)?;
        self.n += 1;
        self.mix_hash(sealed);
        Some(plain)
    }

    /// Writes the client's message: its ephemeral key and a payload.
    pub fn write_first(&mut self, ephemeral: &KeyPair, server: [u8; 32], payload: &[u8]) -> Vec<u8> {
        self.mix_hash(&ephemeral.public);
        self.mix_key(ephemeral.agree(server));
        [&ephemeral.public[..], &self.seal(payload)].concat()
    }

    /// Reads the client's message with the server's key. Returns the client's ephemeral key and the payload.
    pub fn read_first(&mut self, first: &[u8], server: &KeyPair) -> Option<([u8; 32], Vec<u8>)> {
        let (client, sealed) = first.split_first_chunk::<32>()?;
        self.mix_hash(client);
        self.mix_key(server.agree(*client));
        Some((*client, self.open(sealed)?))
    }

    /// Writes the server's message: its ephemeral key and a payload.
    pub fn write_second(&mut self, ephemeral: &KeyPair, client: [u8; 32], payload: &[u8]) -> Vec<u8> {
        self.mix_hash(&ephemeral.public);
        self.mix_key(ephemeral.agree(client));
        [&ephemeral.public[..], &self.seal(payload)].concat()
    }

    /// Reads the server's message with the client's ephemeral key. Returns the payload.
    pub fn read_second(&mut self, second: &[u8], ephemeral: &KeyPair) -> Option<Vec<u8>> {
        let (server, sealed) = second.split_first_chunk::<32>()?;
        self.mix_hash(server);
        self.mix_key(ephemeral.agree(*server));
        self.open(sealed)
    }

    /// Returns the proof that the client completed this handshake.
    #[must_use]
    pub fn proof(&self) -> [u8; 32] {
        hmac(&hmac(&self.ck, &[b"rakwire proof 1"]), &[&self.h])
    }

    /// Returns the keys of epoch 0 for the client or for the server.
    #[must_use]
    pub fn keys(&self, client: bool) -> Seal {
        let (to_server, to_client) = hkdf(&self.ck, &[]);
        let (sends, receives) = if client { (to_server, to_client) } else { (to_client, to_server) };
        Seal { sends, receives, next: 0, highest: None }
    }
}

/// The keys of a connection in epoch 0, and its counters.
#[derive(Clone, Debug)]
pub struct Seal {
    sends: [u8; 32],
    receives: [u8; 32],
    /// The counter of the next datagram.
    pub next: u64,
    highest: Option<u64>,
}

impl Seal {
    /// Encrypts a datagram with the next counter.
    pub fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        self.next += 1;
        self.seal_as(self.next - 1, plain)
    }

    /// Encrypts a datagram with a given counter.
    #[must_use]
    pub fn seal_as(&self, counter: u64, plain: &[u8]) -> Vec<u8> {
        let low = counter as u32 & ((1 << COUNTER_BITS) - 1);
        let header = &(1 << 23 | low).to_be_bytes()[1..];
        [header, &encrypt(&self.sends, counter, header, plain)].concat()
    }

    /// Decrypts a datagram. Returns its counter and its plaintext.
    pub fn open(&mut self, bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
        let (header, sealed) = bytes.split_first_chunk::<3>()?;
        // Bits 5 and 6 are the key epoch. The suite supports only epoch 0.
        (header[0] & 0x60 == 0).then_some(())?;
        let low = u64::from(u32::from_be_bytes([0, header[0], header[1], header[2]]));
        let range = 1_u64 << COUNTER_BITS;
        let due = self.highest.map_or(0, |highest| highest + 1);
        let near = (due & !(range - 1)) | low & (range - 1);
        // Choose the counter with these low bits that is closest to the expected counter.
        let counter = [near.checked_sub(range), Some(near), Some(near + range)]
            .into_iter()
            .flatten()
            .min_by_key(|counter| counter.abs_diff(due))?;
        let plain = decrypt(&self.receives, counter, header, sealed)?;
        self.highest = self.highest.max(Some(counter));
        Some((counter, plain))
    }
}

/// A reply 1 with the key of a server that supports secure connections.
#[derive(Clone, Debug)]
pub struct SecureReply {
    /// The server's GUID.
    pub guid: u64,
    /// The cookie.
    pub cookie: u32,
    /// The key's 64 bytes.
    pub key: [u8; 64],
    /// The MTU that the server offers, in bytes, including 28 for IP and UDP headers.
    pub mtu: u16,
}

impl SecureReply {
    /// Returns the server's static public key.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        std::array::from_fn(|at| self.key[8 + at])
    }
}

/// Decodes a reply 1 with a key.
#[must_use]
pub fn read_reply_1(bytes: &[u8]) -> Option<SecureReply> {
    let mut from = wire::Reader(bytes);
    (from.u8()? == id::REPLY_1).then_some(())?;
    from.magic()?;
    let (guid, security) = (from.u64()?, from.u8()?);
    (security != 0).then_some(())?;
    let cookie = from.u32()?;
    let key = from.bytes(64)?.try_into().ok()?;
    Some(SecureReply { guid, cookie, key, mtu: from.u16()? })
}

/// Returns the prologue of the handshake: all unencrypted fields, which the handshake authenticates.
#[must_use]
pub fn prologue(reply: &SecureReply, head: &[u8], address: &[u8], mtu: u16, guid: u64) -> Vec<u8> {
    let mut key = reply.key;
    key[..2].fill(0);
    [
        b"rakwire secure 1",
        &reply.guid.to_be_bytes()[..],
        &key,
        &reply.cookie.to_be_bytes(),
        head,
        address,
        &mtu.to_be_bytes(),
        &guid.to_be_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_derive_the_same_keys_and_proof() {
        let server = KeyPair::new([7; 32]);
        let (mut one, mut two) =
            (Handshake::new(b"prologue", &server.public), Handshake::new(b"prologue", &server.public));
        let client_key = KeyPair::new([8; 32]);
        let first = one.write_first(&client_key, server.public, b"hello");
        let (client, payload) = two.read_first(&first, &server).unwrap();
        assert_eq!((client, &payload[..]), (client_key.public, &b"hello"[..]));
        let second = two.write_second(&KeyPair::new([9; 32]), client, b"welcome");
        assert_eq!(one.read_second(&second, &client_key).unwrap(), b"welcome");
        assert_eq!(one.proof(), two.proof());
        let (mut a, mut b) = (one.keys(true), two.keys(false));
        let mut sealed = a.seal(b"datagram");
        assert_eq!(sealed.len(), 8 + OVERHEAD);
        assert_eq!(b.open(&sealed).unwrap(), (0, b"datagram".to_vec()));
        sealed[5] ^= 1;
        assert_eq!(b.open(&sealed), None);
    }

    #[test]
    fn hash_matches_the_test_vector_of_rfc_7693() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        // The BLAKE2s-256 hash of "abc", from RFC 7693, appendix B.
        let abc = "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982";
        assert_eq!(hex(hash(&[b"abc"])), abc);
    }
}

//! The fields, the prologue, the proof and the errors of the handshake, for both sides
//! (docs/secure.md#the-handshake).

use core::net::SocketAddr;

use super::keys::{KeyHash, KnownServer, PublicKey};
use super::noise::{Pattern, SymmetricState};
use super::primitives::{hash, hmac};
use crate::cursor::{Reader, Source, WireError, Writer};
use crate::raknet::wire::{Guid, address};

/// The size of the server's key in reply 1, in bytes.
pub const PUBLIC_KEY_FIELD: usize = 64;
/// The size of the client's challenge in request 2, in bytes.
pub const CHALLENGE: usize = 64;
/// The size of the server's answer in reply 2, in bytes.
pub const ANSWER: usize = 128;
/// The size of the client's proof in the connection request, in bytes.
pub const PROOF: usize = 32;
/// The size of the client's identity in the connection request, in bytes.
pub const IDENTITY: usize = 160;
/// The maximum length of the application data in an identity, in bytes.
pub const MAX_IDENTITY_DATA: usize = 95;

/// The name of the cipher suite: Noise as in `noise.rs`, datagrams as in `datagrams.rs`.
const SUITE: [u8; 5] = *b"rws01";
const PROLOGUE_LABEL: &[u8; 16] = b"rakwire secure 1";
const MAX_PROLOGUE: usize = 16 + 8 + PUBLIC_KEY_FIELD + 4 + CHALLENGE_HEADER + address::MAX_ADDRESS + 2 + 8;
/// The length of the clear bytes before the ephemeral key of a challenge.
pub(super) const CHALLENGE_HEADER: usize = 8;
/// Length of the payload of an answer.
pub(super) const ANSWER_PAYLOAD: usize = 80;
/// Length of the payload of an identity.
pub(super) const IDENTITY_PAYLOAD: usize = 96;

const REQUIRES_SECURITY: u8 = 1;
const REQUIRES_IDENTITY: u8 = 2;

/// The cleartext exchanged before the handshake, which the handshake authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The server's GUID in reply 1.
    pub server: Guid,
    /// The client's GUID in request 2.
    pub client: Guid,
    /// The cookie of reply 1.
    pub cookie: u32,
    /// The server's address in request 2, which may be the unassigned one.
    pub server_address: SocketAddr,
    /// The MTU in request 2.
    pub mtu: u16,
}

/// The RakNet protocol versions of one connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version in the request 1 that the server answered.
    pub announced: u8,
    /// The version in the first request 1 of the attempt.
    pub first: u8,
}

impl Versions {
    /// Returns true if these versions can only result from a forged "incompatible protocol version"; `accepted` are the
    /// versions that the server accepts.
    pub(super) fn are_downgraded(self, accepted: &[u8]) -> bool {
        !accepted.contains(&self.announced)
            || (self.first != self.announced && accepted.contains(&self.first))
    }
}

/// The contents of the key field in reply 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerKeyField {
    /// The MTU of reply 1. It is at the position where clients without security read the MTU.
    pub mtu: u16,
    /// True if the server refuses clients without security.
    pub requires_security: bool,
    /// True if the server refuses clients without an identity.
    pub requires_identity: bool,
    /// The server's key, and its announced next key.
    pub server: KnownServer,
}

impl ServerKeyField {
    /// Parses the key field of reply 1; returns `None` if it belongs to another cipher suite.
    #[must_use]
    pub fn read(field: &[u8; PUBLIC_KEY_FIELD]) -> Option<Self> {
        Self::read_from(&mut Reader::new(field)).ok().flatten()
    }

    fn read_from(reader: &mut Reader<'_>) -> Result<Option<Self>, WireError> {
        let mtu = reader.u16("mtu")?;
        let flags = reader.u8("flags")?;
        if reader.array()? != SUITE {
            return Ok(None);
        }
        let key = PublicKey(reader.array()?);
        let next = Some(KeyHash(reader.array()?)).filter(|hash| *hash != KeyHash([0; 24]));
        Ok(Some(Self {
            mtu,
            requires_security: flags & REQUIRES_SECURITY != 0,
            requires_identity: flags & REQUIRES_IDENTITY != 0,
            server: KnownServer { key, next },
        }))
    }

    /// Returns the bytes of the field.
    #[must_use]
    pub fn write(&self) -> [u8; PUBLIC_KEY_FIELD] {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        fill(|writer| {
            writer.u16(self.mtu)?;
            writer.u8(flag(self.requires_security, REQUIRES_SECURITY)
                | flag(self.requires_identity, REQUIRES_IDENTITY))?;
            writer.bytes(&SUITE)?;
            writer.bytes(&self.server.key.0)?;
            writer.bytes(&self.server.next.map_or([0; 24], |next| next.0))
        })
    }
}

/// Returns an array filled by `write`; bytes that it does not write are zero.
pub(super) fn fill<const N: usize>(write: impl FnOnce(&mut Writer<'_>) -> Result<(), WireError>) -> [u8; N] {
    let mut bytes = [0; N];
    // Cannot fail: the size of each field is a constant, and a test covers each field.
    let _room = write(&mut Writer::new(&mut bytes));
    bytes
}

/// Returns the clear bytes of a challenge.
pub(super) fn challenge_header(pattern: Pattern) -> [u8; CHALLENGE_HEADER] {
    fill(|writer| {
        writer.u8(match pattern {
            Pattern::Nk => 1,
            Pattern::Xk => 2,
        })?;
        writer.zeros(2)?;
        writer.bytes(&SUITE)
    })
}

/// Returns true if the clear bytes of a challenge belong to this cipher suite, with any pattern.
pub(super) fn is_of_suite(header: &[u8; CHALLENGE_HEADER]) -> bool {
    header.last_chunk() == Some(&SUITE)
}

/// Returns the payload of a challenge: the versions and the number of the challenge.
pub(super) const fn challenge_payload(versions: Versions, number: u8) -> [u8; 8] {
    [versions.announced, versions.first, number, 0, 0, 0, 0, 0]
}

/// Returns the payload of an answer: the client's address and the MTU, as in the cleartext of reply 2, padded with
/// zeros.
pub(super) fn answer_payload(client: &SocketAddr, mtu: u16) -> [u8; ANSWER_PAYLOAD] {
    fill(|writer| {
        address::write(client, writer)?;
        writer.zeros(address::MAX_ADDRESS.saturating_sub(writer.written()))?;
        writer.u16(mtu)
    })
}

/// The prologue of a handshake.
pub(super) struct Prologue {
    bytes: [u8; MAX_PROLOGUE],
    length: usize,
}

impl Prologue {
    /// Creates the prologue. `key_field` is the key field of reply 1 as sent, so that reserved bits are authenticated
    /// too.
    pub(super) fn new(key_field: &[u8; PUBLIC_KEY_FIELD], negotiated: &Negotiated, pattern: Pattern) -> Self {
        let mut prologue = Self { bytes: [0; MAX_PROLOGUE], length: 0 };
        let mut writer = Writer::new(&mut prologue.bytes);
        // Cannot fail: `MAX_PROLOGUE` is the sum of the fields with the longer kind of address.
        let _room = Self::write(&mut writer, key_field, negotiated, pattern);
        prologue.length = writer.written();
        prologue
    }

    fn write(
        writer: &mut Writer<'_>,
        [_, _, behind_mtu @ ..]: &[u8; PUBLIC_KEY_FIELD],
        negotiated: &Negotiated,
        pattern: Pattern,
    ) -> Result<(), WireError> {
        writer.bytes(PROLOGUE_LABEL)?;
        writer.u64(negotiated.server.0)?;
        writer.zeros(2)?;
        writer.bytes(behind_mtu)?;
        writer.u32(negotiated.cookie)?;
        writer.bytes(&challenge_header(pattern))?;
        address::write(&negotiated.server_address, writer)?;
        writer.u16(negotiated.mtu)?;
        writer.u64(negotiated.client.0)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Returns a hash that identifies a request 2.
    pub(super) fn request_hash(&self, challenge: &[u8]) -> [u8; 32] {
        hash(&[self.bytes(), challenge])
    }
}

/// The label of the keys between the second and the third message of XK.
pub(super) const EARLY_LABEL: &[u8] = b"rakwire early 1";

/// Returns the client's proof that it has the keys and received the server's message unchanged.
pub(super) fn proof(state: &SymmetricState) -> [u8; PROOF] {
    let key = hmac(state.chaining_key().as_bytes(), &[b"rakwire proof 1"]);
    *hmac(key.as_bytes(), &[state.handshake_hash()]).as_bytes()
}

error_enum! {
    /// An error in a step of the handshake (docs/secure.md#the-handshake).
    #[non_exhaustive]
    pub enum HandshakeError {
        /// The key or the challenge belongs to another cipher suite, such as RakNet's own security.
        OtherSuite => "the peer uses another kind of security",
        /// The server's key is not the one that the client trusts.
        KeyMismatch => "the server's key is not the trusted one",
        /// A field has a wrong length or an invalid value.
        Malformed => "a field of the handshake is malformed",
        /// The tag is wrong: the message was changed in transit, or encrypted with another key.
        DecryptionFailed => "a handshake message cannot be decrypted",
        /// An attacker on the path has made the client use another protocol version.
        Downgrade => "the protocol version was changed in transit",
        /// The attempt has reached its limit of challenges or answers.
        TooMany => "the connection attempt received too many different answers",
        /// The cleartext of reply 2 differs from the server's authenticated payload.
        Contradiction => "reply 2 was changed in transit",
    }
}

error_enum! {
    /// The reason why a server rejects a client's proof or identity; the discriminant is the type in message 0x0A.
    #[non_exhaustive]
    pub enum IdentityError {
        /// The server requires an identity, and the request contains none.
        Missing => "the client did not present an identity",
        /// The identity cannot be decrypted, or the proof is wrong.
        Invalid => "the client's identity or proof is invalid",
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the encoding of the fields.

    use std::vec::Vec;

    use super::*;

    const FIELD: ServerKeyField = ServerKeyField {
        mtu: 1492,
        requires_security: true,
        requires_identity: false,
        server: KnownServer { key: PublicKey([0xAA; 32]), next: Some(KeyHash([0xBB; 24])) },
    };

    const NEGOTIATED: Negotiated = Negotiated {
        server: Guid(0x1111_1111_1111_1111),
        client: Guid(0x2222_2222_2222_2222),
        cookie: 0x3333_3333,
        server_address: address::UNASSIGNED,
        mtu: 0x4444,
    };

    #[test]
    fn a_key_field_has_the_documented_bytes() {
        let bytes = FIELD.write();
        let expected: [&[u8]; 5] = [&[0x05, 0xD4], &[1], b"rws01", &[0xAA; 32], &[0xBB; 24]];
        assert_eq!(bytes[..], expected.concat());
        assert_eq!(ServerKeyField::read(&bytes), Some(FIELD));
        let plain = ServerKeyField { requires_security: false, requires_identity: true, ..FIELD };
        assert_eq!(plain.write()[2], 2);
        assert_eq!(ServerKeyField::read(&plain.write()), Some(plain));
        let none = ServerKeyField { server: KnownServer { next: None, ..FIELD.server }, ..FIELD };
        assert_eq!(none.write()[40..], [0; 24]);
        assert_eq!(ServerKeyField::read(&none.write()), Some(none));
        for at in 3..8 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(ServerKeyField::read(&other), None);
        }
    }

    #[test]
    fn the_prologue_has_the_documented_bytes() {
        let prologue = Prologue::new(&FIELD.write(), &NEGOTIATED, Pattern::Xk);
        let mut field = FIELD.write();
        field[..2].fill(0);
        let unassigned = [4, 255, 255, 255, 255, 0, 0];
        let parts: [&[u8]; 8] = [
            b"rakwire secure 1",
            &[0x11; 8],
            &field,
            &[0x33; 4],
            &[2, 0, 0, b'r', b'w', b's', b'0', b'1'],
            &unassigned,
            &[0x44; 2],
            &[0x22; 8],
        ];
        assert_eq!(prologue.bytes(), parts.concat());
    }

    #[test]
    fn every_negotiated_value_changes_the_prologue() {
        let address = |text: &str| text.parse().expect("an address");
        let changes = [
            (FIELD, Negotiated { server: Guid(9), ..NEGOTIATED }, Pattern::Nk),
            (FIELD, Negotiated { client: Guid(9), ..NEGOTIATED }, Pattern::Nk),
            (FIELD, Negotiated { cookie: 9, ..NEGOTIATED }, Pattern::Nk),
            (FIELD, Negotiated { mtu: 9, ..NEGOTIATED }, Pattern::Nk),
            (FIELD, Negotiated { server_address: address("192.0.2.1:1"), ..NEGOTIATED }, Pattern::Nk),
            (FIELD, Negotiated { server_address: address("[2001:db8::1%7]:1"), ..NEGOTIATED }, Pattern::Nk),
            (FIELD, NEGOTIATED, Pattern::Xk),
            (ServerKeyField { requires_security: false, ..FIELD }, NEGOTIATED, Pattern::Nk),
            (ServerKeyField { requires_identity: true, ..FIELD }, NEGOTIATED, Pattern::Nk),
            (
                ServerKeyField { server: KnownServer { next: None, ..FIELD.server }, ..FIELD },
                NEGOTIATED,
                Pattern::Nk,
            ),
            (FIELD, NEGOTIATED, Pattern::Nk),
        ];
        let all: Vec<Vec<u8>> = changes
            .map(|(key, said, pattern)| Prologue::new(&key.write(), &said, pattern).bytes().to_vec())
            .into();
        for (index, one) in all.iter().enumerate() {
            assert!(all.iter().skip(index + 1).all(|other| other != one), "change {index}");
        }
        for bit in 0..8 {
            let mut field = FIELD.write();
            field[2] ^= 1 << bit;
            let changed = Prologue::new(&field, &NEGOTIATED, Pattern::Nk);
            assert_ne!(changed.bytes(), all[10], "bit {bit} of the flags");
        }
        let other_mtu = ServerKeyField { mtu: 576, ..FIELD };
        assert_eq!(
            Prologue::new(&other_mtu.write(), &NEGOTIATED, Pattern::Nk).bytes(),
            all[10],
            "the MTU of reply 1 is not authenticated, because relays may lower it"
        );
    }

    #[test]
    fn prologue_and_answer_fit_the_longest_address() {
        let longest =
            Negotiated { server_address: "[2001:db8::1%7]:1".parse().expect("an address"), ..NEGOTIATED };
        assert_eq!(Prologue::new(&FIELD.write(), &longest, Pattern::Nk).bytes().len(), MAX_PROLOGUE);
        let payload = answer_payload(&longest.server_address, 0x0506);
        assert_eq!((payload[0], &payload[29..32]), (6, &[5, 6, 0][..]));
    }

    #[test]
    fn a_downgrade_is_detected_from_the_first_and_the_announced_version() {
        let versions = |first, announced| Versions { announced, first };
        let accepted = [6, 10, 11];
        assert!(!versions(11, 11).are_downgraded(&accepted));
        assert!(
            !versions(9, 10).are_downgraded(&accepted),
            "the server announced that it does not support 9"
        );
        assert!(versions(11, 10).are_downgraded(&accepted), "the server does support 11");
        assert!(versions(9, 9).are_downgraded(&accepted));
    }
}

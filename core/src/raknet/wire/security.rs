//! Cookies and the fields of the secure mode (docs/raknet.md#secure-mode).

use crate::cursor::{Source, WireError, Writer};

/// The sizes of the secure mode's fields, in bytes.
///
/// No field carries its length, so a reader must know them. Writing does not use them: each field is written at its own
/// length.
///
/// ```
/// use rakwire::raknet::Guid;
/// use rakwire::wire::offline::{Offline, ServerSecurity};
/// use rakwire::wire::{Reader, SecuritySizes, Wire, Writer};
///
/// let security = ServerSecurity::PublicKey { cookie: 7, key: &[9; 294] };
/// let reply = Offline::Reply1 { guid: Guid(1), security, mtu: 1492 };
/// let mut buffer = [0; 512];
/// let mut writer = Writer::new(&mut buffer);
/// reply.write(&mut writer)?;
/// let bytes = writer.finish();
/// assert_eq!(Offline::read_with(&mut Reader::new(bytes), &SecuritySizes::DOCUMENTED)?, reply);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecuritySizes {
    /// The server's public key in reply 1.
    pub public_key: u16,
    /// The client's challenge in request 2.
    pub challenge: u16,
    /// The server's answer in reply 2.
    pub answer: u16,
    /// The client's proof in the connection request.
    pub proof: u16,
    /// The client's identity in the connection request.
    pub identity: u16,
}

impl SecuritySizes {
    /// The sizes that the original sends: 64, 64, 128, 32, 160.
    pub const ORIGINAL: Self = Self { public_key: 64, challenge: 64, answer: 128, proof: 32, identity: 160 };
    /// The sizes in the public documents: 294 for the public key and for the identity.
    ///
    /// No known peer sends these.
    pub const DOCUMENTED: Self =
        Self { public_key: 294, challenge: 64, answer: 128, proof: 32, identity: 294 };
}

impl Default for SecuritySizes {
    fn default() -> Self {
        Self::ORIGINAL
    }
}

/// The security fields of reply 1, which the client has to return.
///
/// They are security (u8) and, if it is set, a cookie (u32) and possibly a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSecurity<'a> {
    /// Nothing.
    None,
    /// A cookie, which validates the client's address.
    Cookie(u32),
    /// A cookie, and the public key for an encrypted connection. The bytes of the key must not all be zero.
    PublicKey {
        /// The cookie.
        cookie: u32,
        /// The server's public key.
        key: &'a [u8],
    },
}

/// The security fields that request 2 returns.
///
/// They are empty, or cookie (u32), challenge flag (u8), and the challenge if it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSecurity<'a> {
    /// Nothing.
    None,
    /// The cookie of reply 1, and no challenge.
    Cookie(u32),
    /// The cookie and a challenge.
    Challenge {
        /// The cookie.
        cookie: u32,
        /// The challenge.
        challenge: &'a [u8],
    },
}

/// The proof of a client in the request of an encrypted connection.
///
/// It consists of the proof, an identity flag (u8), and the identity if it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The proof, 32 bytes.
    pub proof: &'a [u8],
    /// The identity, 160 bytes, if the client has one.
    pub identity: Option<&'a [u8]>,
}

/// The size of an MTU in bytes, which is between the cookie or key and the padding of reply 1.
const MTU: usize = 2;

impl<'a> ServerSecurity<'a> {
    /// Reads the flag and the fields that it announces.
    ///
    /// A reply with only a cookie may be padded with zeros. The bytes after the cookie decide whether there is a key,
    /// because no key is all zeros.
    pub(super) fn read<S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Self, WireError> {
        if source.u8("security")? == 0 {
            return Ok(Self::None);
        }
        let cookie = source.u32("cookie")?;
        let length = usize::from(sizes.public_key);
        let is_set = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
        match (source.peek().get(MTU..), source.peek().get(MTU..MTU + length)) {
            (_, Some(window)) if is_set(window) => {
                Ok(Self::PublicKey { cookie, key: source.bytes("public key", length)? })
            }
            (Some(after), None) if is_set(after) => Err(WireError::Truncated),
            _ => Ok(Self::Cookie(cookie)),
        }
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::None => writer.u8(0),
            Self::Cookie(cookie) => {
                writer.u8(1)?;
                writer.u32(cookie)
            }
            Self::PublicKey { cookie, key } => {
                writer.u8(1)?;
                writer.u32(cookie)?;
                writer.bytes(key)
            }
        }
    }
}

/// The sizes of the fields after the security fields of request 2: the address, the MTU and the GUID.
const TAIL_4: usize = 7 + 2 + 8;
const TAIL_6: usize = 29 + 2 + 8;

impl<'a> ClientSecurity<'a> {
    /// Reads the security fields of request 2.
    ///
    /// A server keeps nothing of request 1, so the length decides whether there is a cookie.
    pub(super) fn read<S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Self, WireError> {
        if matches!((source.remaining(), source.peek().first()), (TAIL_4, Some(4)) | (TAIL_6, Some(6))) {
            return Ok(Self::None);
        }
        let cookie = source.u32("cookie")?;
        if source.u8("challenge follows")? == 0 {
            return Ok(Self::Cookie(cookie));
        }
        let challenge = source.bytes("challenge", sizes.challenge.into())?;
        Ok(Self::Challenge { cookie, challenge })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        match *self {
            Self::None => Ok(()),
            Self::Cookie(cookie) => {
                writer.u32(cookie)?;
                writer.u8(0)
            }
            Self::Challenge { cookie, challenge } => {
                writer.u32(cookie)?;
                writer.u8(1)?;
                writer.bytes(challenge)
            }
        }
    }
}

impl<'a> Proof<'a> {
    pub(super) fn read<S: Source<'a>>(source: &mut S, sizes: &SecuritySizes) -> Result<Self, WireError> {
        let proof = source.bytes("proof", sizes.proof.into())?;
        let identity = match source.u8("identity follows")? {
            0 => None,
            _ => Some(source.bytes("identity", sizes.identity.into())?),
        };
        Ok(Self { proof, identity })
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.bytes(self.proof)?;
        writer.u8(u8::from(self.identity.is_some()))?;
        writer.bytes(self.identity.unwrap_or(&[]))
    }
}

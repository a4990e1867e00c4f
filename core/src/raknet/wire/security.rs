//! Cookies and the other fields of RakNet's secure mode (docs/raknet.md#secure-mode).

use crate::cursor::{Source, WireError, Writer};

/// The sizes of the security fields in bytes.
///
/// The wire format contains no lengths for these fields, so the reader must know them. A writer does not use these
/// sizes: it writes each field at its own length.
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
    /// The sizes of C++ RakNet: 64, 64, 128, 32, 160.
    pub const ORIGINAL: Self = Self { public_key: 64, challenge: 64, answer: 128, proof: 32, identity: 160 };
    /// The sizes in the public RakNet documents: 294 for the public key and for the identity.
    ///
    /// No known implementation sends them.
    pub const DOCUMENTED: Self =
        Self { public_key: 294, challenge: 64, answer: 128, proof: 32, identity: 294 };
}

impl Default for SecuritySizes {
    fn default() -> Self {
        Self::ORIGINAL
    }
}

/// The security fields of reply 1, which the client answers in request 2.
///
/// On the wire: security (u8) and, if it is set, a cookie (u32) and optionally a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSecurity<'a> {
    /// No security fields: the flag is 0.
    None,
    /// A cookie, by which the client validates its address.
    Cookie(u32),
    /// A cookie, and the public key for a secure connection. The key must not be all zeros.
    PublicKey {
        /// The cookie.
        cookie: u32,
        /// The server's public key.
        key: &'a [u8],
    },
}

/// The security fields of request 2.
///
/// On the wire: nothing; or cookie (u32), challenge flag (u8), and the challenge if the flag is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSecurity<'a> {
    /// No security fields.
    None,
    /// The cookie of reply 1, without a challenge.
    Cookie(u32),
    /// The cookie of reply 1, and a challenge.
    Challenge {
        /// The cookie of reply 1.
        cookie: u32,
        /// The challenge.
        challenge: &'a [u8],
    },
}

/// The client's proof in the connection request of a secure connection.
///
/// On the wire: the proof, an identity flag (u8), and the identity if the flag is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The proof, 32 bytes in C++ RakNet.
    pub proof: &'a [u8],
    /// The identity, 160 bytes in C++ RakNet, if the client presents one.
    pub identity: Option<&'a [u8]>,
}

/// The size of the MTU field, which follows the security fields of reply 1.
const MTU: usize = 2;

impl<'a> ServerSecurity<'a> {
    /// Reads the security flag and the fields that it announces.
    ///
    /// A reply without a key may be padded with zeros. The bytes after the cookie are therefore read as a key only if
    /// they are not all zero.
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

/// The size of the fields after the security fields of request 2, with an IPv4 address: address, MTU and GUID.
const TAIL_4: usize = 7 + 2 + 8;
const TAIL_6: usize = 29 + 2 + 8;

impl<'a> ClientSecurity<'a> {
    /// Reads the security fields of request 2.
    ///
    /// A server that sent a cookie has stored nothing about the client, so the length of request 2 shows whether it
    /// contains the cookie.
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

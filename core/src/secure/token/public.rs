//! What a client gets from a backend.

use core::fmt;
use core::str::from_utf8;

use heapless::Vec;

use super::sealed::{MAX_SEALED_TOKEN, MAX_TOKEN_SERVERS};
use crate::cursor::{Reader, Source, WireError, Writer};
use crate::secure::keys::PublicKey;
use crate::secure::text;

/// The most bytes of a connect token.
pub const MAX_CONNECT_TOKEN: usize = 4 + 8 + 1 + MAX_TOKEN_SERVERS * (32 + 1 + 255) + 1 + MAX_SEALED_TOKEN;

const PREFIX: &[u8; 4] = b"rwc1";
const TEXT_PREFIX: &str = "rakwire-connect-token-1:";

error_enum! {
    /// Why bytes are no connect token.
    #[non_exhaustive]
    pub enum ConnectTokenError {
        /// They are none, or were cut off.
        Malformed => "this is no connect token; was it copied as a whole?",
        /// The buffer is too small, a name is longer than 255 bytes, or there are not 1 to 4 servers.
        TooLong => "a connect token has 1 to 4 servers, with names of up to 255 bytes",
    }
}

/// A server of a connect token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenServer<'t> {
    /// Its key, which the client pins.
    pub key: PublicKey,
    /// Its name: `host:port`, or a target of a relay.
    pub name: &'t str,
}

/// The servers of a connect token, in the order in which a client should try them.
pub type TokenServers<'t> = Vec<TokenServer<'t>, MAX_TOKEN_SERVERS>;

/// What a client gets from a backend: where to connect to, whom to trust there, and the sealed part to show.
///
/// ```
/// use rakwire::secure::{ConnectToken, ConnectTokenError, MAX_CONNECT_TOKEN, StaticKey, TokenServer};
///
/// let server = TokenServer { key: StaticKey::from_bytes([1; 32]).public(), name: "game.example.org:19132" };
/// let token = ConnectToken {
///     expires: 1_800_000_060,
///     servers: [server].into_iter().collect(),
///     sealed: b"as TokenClaims::seal made it",
/// };
/// let mut buffer = [0; MAX_CONNECT_TOKEN];
/// let bytes = token.write(&mut buffer)?;
/// assert_eq!(ConnectToken::read(bytes)?, token);
/// let text = token.to_string();
/// assert!(text.starts_with("rakwire-connect-token-1:"));
/// assert_eq!(ConnectToken::from_text(&text, &mut buffer)?, token);
/// # Ok::<(), ConnectTokenError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectToken<'t> {
    /// When it is over, in seconds since 1970.
    pub expires: u64,
    /// The servers.
    pub servers: TokenServers<'t>,
    /// What the client sends in the password's place.
    pub sealed: &'t [u8],
}

impl<'t> ConnectToken<'t> {
    /// Reads the bytes that a backend gave.
    ///
    /// # Errors
    /// [`ConnectTokenError::Malformed`].
    pub fn read(bytes: &'t [u8]) -> Result<Self, ConnectTokenError> {
        Self::read_from(&mut Reader::new(bytes)).map_err(|_| ConnectTokenError::Malformed)
    }

    /// Reads the text that a backend gave. Its bytes come into a buffer, for which [`MAX_CONNECT_TOKEN`] is always enough.
    ///
    /// # Errors
    /// [`ConnectTokenError::Malformed`].
    pub fn from_text(text: &str, buffer: &'t mut [u8]) -> Result<Self, ConnectTokenError> {
        Self::read(text::read_into(text, TEXT_PREFIX, buffer).map_err(|_| ConnectTokenError::Malformed)?)
    }

    fn read_from(reader: &mut Reader<'t>) -> Result<Self, WireError> {
        if reader.array::<4>()? != *PREFIX {
            return Err(WireError::BadValue);
        }
        let expires = reader.u64("expiry")?;
        let mut servers = Vec::new();
        for _ in 0..reader.u8("number of servers")? {
            let key = PublicKey(reader.array()?);
            let length = reader.u8("length of the name")?;
            let name = from_utf8(reader.bytes("name", length.into())?).map_err(|_| WireError::BadValue)?;
            servers.push(TokenServer { key, name }).map_err(|_| WireError::BadLength)?;
        }
        let length = reader.u8("length of the sealed part")?;
        let sealed = reader.bytes("sealed part", length.into())?;
        if reader.remaining() > 0 || servers.is_empty() {
            return Err(WireError::BadLength);
        }
        Ok(Self { expires, servers, sealed })
    }

    /// Writes the bytes to a buffer, for which [`MAX_CONNECT_TOKEN`] is always enough.
    ///
    /// # Errors
    /// [`ConnectTokenError::TooLong`].
    pub fn write<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], ConnectTokenError> {
        let mut writer = Writer::new(buffer);
        self.write_to(&mut writer).map_err(|_| ConnectTokenError::TooLong)?;
        Ok(writer.finish())
    }

    fn write_to(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        if self.servers.is_empty() {
            return Err(WireError::BadLength);
        }
        writer.bytes(PREFIX)?;
        writer.u64(self.expires)?;
        writer.u8(self.servers.len() as u8)?;
        for server in &self.servers {
            writer.bytes(&server.key.0)?;
            write_short(server.name.as_bytes(), writer)?;
        }
        write_short(self.sealed, writer)
    }
}

/// Writes the text that [`ConnectToken::from_text`] reads.
impl fmt::Display for ConnectToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        text::write(f, TEXT_PREFIX, self.write(&mut buffer).map_err(|_| fmt::Error)?)
    }
}

/// A length of one byte, and the bytes.
fn write_short(bytes: &[u8], writer: &mut Writer<'_>) -> Result<(), WireError> {
    writer.u8(u8::try_from(bytes.len()).map_err(|_| WireError::BadLength)?)?;
    writer.bytes(bytes)
}

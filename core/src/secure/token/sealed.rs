//! The sealed part of a connect token.

use heapless::Vec;

use crate::cursor::{Reader, Source, WireError, Writer};
use crate::secure::keys::{KeyHash, KeyTextError, PrivateText, PublicKey, text};
use crate::secure::primitives::{
    KEY, Secret, SecureRandom, TAG, hmac, is_equal, open_message, seal_message, secret,
};

/// The maximum length of a sealed token in bytes, equal to the maximum length of a password.
pub const MAX_SEALED_TOKEN: usize = 255;
/// The maximum number of servers of one token.
pub const MAX_TOKEN_SERVERS: usize = 4;
/// The maximum length of the user data in a token for one server, in bytes.
///
/// Each further server takes 24 bytes. With two servers the maximum is only 15 bytes lower, because 9 bytes are spare.
pub const MAX_USER_DATA: usize = 128;

/// The length of a token's salt in bytes. The salt also identifies the token.
pub(super) const SALT: usize = 24;

const PREFIX: &[u8; 4] = b"rwt1";
/// The length of the bytes before the ciphertext: prefix and salt.
const HEAD: usize = PREFIX.len() + SALT;
const LABEL: &[u8] = b"rakwire token 1";
const KEY_PREFIX: &str = "rakwire-token-key-1:";

error_enum! {
    /// The reason why a token was not sealed or not accepted.
    #[non_exhaustive]
    pub enum TokenError {
        /// The claims exceed the maximum size of a token.
        TooLong => "a token has 1 to 4 servers and up to 128 bytes of user data, fewer with several servers",
        /// The bytes are not a token, or no key decrypts them.
        DecryptionFailed => "this is not a token of this backend",
        /// The token has expired.
        Expired => "the token has expired",
        /// The token names other servers.
        OtherServer => "the token is for another server",
        /// The client did not prove that it has the key named in the token.
        OtherClient => "the token belongs to another client",
        /// The token was used before.
        Used => "the token was used before",
        /// The record of used tokens is full.
        NoRoom => "too many tokens are in use at once",
    }
}

/// The statements of a backend about a player, which a token contains.
///
/// ```
/// use rakwire::secure::{SeededRandom, StaticKey, TokenClaims, TokenError, TokenKey};
///
/// let mut random = SeededRandom::new([7; 32]); // 32 random bytes in a real program
/// let [server, client] = [1, 2].map(|byte| StaticKey::from_bytes([byte; 32]).public());
///
/// // At the backend, after the client has logged in and sent its public key:
/// let key = TokenKey::generate(&mut random);
/// let claims = TokenClaims {
///     user_id: 42,
///     expires: 1_800_000_060,
///     client,
///     servers: &[server.hash()],
///     user_data: b"level 3",
/// };
/// let token = claims.seal(&key, &mut random)?;
///
/// // At the game server, which has authenticated the client's key:
/// let accepted = key.open(&token, &server.hash(), &client, 1_800_000_000)?;
/// assert_eq!((accepted.user_id, accepted.user_data()), (42, &b"level 3"[..]));
/// assert_eq!(key.open(&token, &server.hash(), &client, 1_800_000_060).err(), Some(TokenError::Expired));
/// assert_eq!(key.open(&token, &server.hash(), &server, 1_800_000_000).err(), Some(TokenError::OtherClient));
/// # Ok::<(), TokenError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenClaims<'a> {
    /// The backend's ID of the player.
    pub user_id: u64,
    /// The expiry in Unix time, in seconds.
    pub expires: u64,
    /// The key by which the client will authenticate itself.
    pub client: PublicKey,
    /// The key hashes of the servers that may accept the token, 1 to 4.
    pub servers: &'a [KeyHash],
    /// Up to [`MAX_USER_DATA`] bytes of application data.
    pub user_data: &'a [u8],
}

impl TokenClaims<'_> {
    /// Seals the claims and returns the token.
    ///
    /// # Errors
    /// [`TokenError::TooLong`] if the claims exceed the maximum size of a token.
    pub fn seal(
        &self,
        key: &TokenKey,
        random: &mut impl SecureRandom,
    ) -> Result<Vec<u8, MAX_SEALED_TOKEN>, TokenError> {
        let mut salt = [0; SALT];
        random.fill(&mut salt);
        self.seal_with_salt(key, &salt)
    }

    pub(super) fn seal_with_salt(
        &self,
        key: &TokenKey,
        salt: &[u8; SALT],
    ) -> Result<Vec<u8, MAX_SEALED_TOKEN>, TokenError> {
        if !(1..=MAX_TOKEN_SERVERS).contains(&self.servers.len()) || self.user_data.len() > MAX_USER_DATA {
            return Err(TokenError::TooLong);
        }
        let mut token = Vec::new();
        token.resize_default(MAX_SEALED_TOKEN).map_err(|_| TokenError::TooLong)?;
        let mut writer = Writer::new(&mut token);
        self.write(salt, &mut writer).map_err(|_| TokenError::TooLong)?;
        let length = writer.written();
        token.truncate(length);
        let (head, message) = token.split_first_chunk_mut::<HEAD>().ok_or(TokenError::TooLong)?;
        seal_message(&key.of_token(salt), 0, head, message).ok_or(TokenError::TooLong)?;
        Ok(token)
    }

    fn write(&self, salt: &[u8; SALT], writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.bytes(PREFIX)?;
        writer.bytes(salt)?;
        writer.u64(self.user_id)?;
        writer.u64(self.expires)?;
        writer.bytes(&self.client.0)?;
        writer.u8(self.servers.len() as u8)?;
        for server in self.servers {
            writer.bytes(&server.0)?;
        }
        writer.u8(self.user_data.len() as u8)?;
        writer.bytes(self.user_data)?;
        writer.zeros(TAG)
    }
}

/// The key that a backend shares with its game servers. Its bytes are erased on drop.
pub struct TokenKey(Secret);

impl TokenKey {
    /// Generates a key.
    #[must_use]
    pub fn generate(random: &mut impl SecureRandom) -> Self {
        Self(secret(random))
    }

    /// Creates the key from 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Secret::new(bytes))
    }

    /// Parses the key from the contents of a key file, like
    /// [`StaticKey::from_key_file`](crate::secure::StaticKey::from_key_file).
    ///
    /// # Errors
    /// A [`KeyTextError`] if the file does not contain exactly one valid key.
    pub fn from_key_file(file: &str) -> Result<Self, KeyTextError> {
        text::read::<KEY>(text::only_line(file)?, KEY_PREFIX).map(|bytes| Self::from_bytes(*bytes))
    }

    /// Returns the line for a key file. It is secret: with it anyone can issue tokens.
    #[must_use]
    pub const fn private_text(&self) -> PrivateText<'_> {
        PrivateText::of_secret(KEY_PREFIX, &self.0)
    }

    /// Returns a copy. The type does not implement `Clone`, so all copies of a secret are easy to find in the code.
    pub(super) const fn duplicate(&self) -> Self {
        Self(self.0.duplicate())
    }

    fn of_token(&self, salt: &[u8; SALT]) -> Secret {
        hmac(self.0.as_bytes(), &[LABEL, salt])
    }

    /// Decrypts and validates a token at a server, for an authenticated client, at Unix time `now` in seconds.
    ///
    /// Check with [`UsedTokens`](super::UsedTokens) whether the token was used before. With several token keys, try
    /// each key.
    ///
    /// # Errors
    /// The first of these that applies: `DecryptionFailed`, `Expired`, `OtherServer`, `OtherClient`.
    pub fn open(
        &self,
        token: &[u8],
        server: &KeyHash,
        client: &PublicKey,
        now: u64,
    ) -> Result<AcceptedToken, TokenError> {
        let mut copy =
            Vec::<u8, MAX_SEALED_TOKEN>::from_slice(token).map_err(|_| TokenError::DecryptionFailed)?;
        let (head, message) = copy.split_first_chunk_mut::<HEAD>().ok_or(TokenError::DecryptionFailed)?;
        let salt = *head.last_chunk::<SALT>().ok_or(TokenError::DecryptionFailed)?;
        if head.first_chunk() != Some(PREFIX) {
            return Err(TokenError::DecryptionFailed);
        }
        let plain =
            open_message(&self.of_token(&salt), 0, head, message).ok_or(TokenError::DecryptionFailed)?;
        let read = Opened::read(&mut Reader::new(plain), salt).map_err(|_| TokenError::DecryptionFailed)?;
        read.check(server, client, now)
    }
}

/// A token that was decrypted but not validated.
struct Opened {
    accepted: AcceptedToken,
    client: PublicKey,
    servers: Vec<KeyHash, MAX_TOKEN_SERVERS>,
}

impl Opened {
    fn read(reader: &mut Reader<'_>, salt: [u8; SALT]) -> Result<Self, WireError> {
        let user_id = reader.u64("user id")?;
        let expires = reader.u64("expiry")?;
        let client = PublicKey(reader.array()?);
        let mut servers = Vec::new();
        for _ in 0..reader.u8("number of servers")? {
            servers.push(KeyHash(reader.array()?)).map_err(|_| WireError::BadLength)?;
        }
        let length = reader.u8("length of user data")?;
        let user_data = Vec::from_slice(reader.bytes("user data", length.into())?);
        let user_data = user_data.map_err(|_| WireError::BadLength)?;
        if reader.remaining() > 0 || servers.is_empty() {
            return Err(WireError::BadLength);
        }
        Ok(Self { accepted: AcceptedToken { user_id, expires, salt, user_data }, client, servers })
    }

    fn check(self, server: &KeyHash, client: &PublicKey, now: u64) -> Result<AcceptedToken, TokenError> {
        if now >= self.accepted.expires {
            Err(TokenError::Expired)
        } else if !self.servers.iter().any(|named| is_equal(&named.0, &server.0)) {
            Err(TokenError::OtherServer)
        } else if !is_equal(&self.client.0, &client.0) {
            Err(TokenError::OtherClient)
        } else {
            Ok(self.accepted)
        }
    }
}

/// The contents of an accepted token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedToken {
    /// The backend's ID of the player.
    pub user_id: u64,
    /// The expiry in Unix time, in seconds.
    pub expires: u64,
    pub(super) salt: [u8; SALT],
    user_data: Vec<u8, MAX_USER_DATA>,
}

impl AcceptedToken {
    /// Returns the random bytes that identify this token.
    #[must_use]
    pub const fn salt(&self) -> &[u8; SALT] {
        &self.salt
    }

    /// Returns the application data.
    #[must_use]
    pub fn user_data(&self) -> &[u8] {
        &self.user_data
    }
}

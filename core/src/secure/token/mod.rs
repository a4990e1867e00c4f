//! Connect tokens, which a web backend issues to players and game servers accept (docs/secure.md#connect-tokens).
//!
//! - [`sealed`]: the part that only the backend and its game servers can decrypt. A client sends it in place of a
//!   password.
//! - [`ConnectToken`]: the whole token, for the client: the servers and the sealed part.
//! - [`TokenVerifier`]: verification at a server.
//! - [`UsedTokens`]: the record of used tokens.

mod sealed;

use core::fmt;
use core::str::from_utf8;

use heapless::Vec;

use self::sealed::SALT;
use crate::cursor::{Reader, Source, WireError, Writer};
use crate::secure::keys::{KeyHash, PublicKey, text};

pub use sealed::{
    AcceptedToken, MAX_SEALED_TOKEN, MAX_TOKEN_SERVERS, MAX_USER_DATA, TokenClaims, TokenError, TokenKey,
};

/// The maximum size of a connect token in bytes.
pub const MAX_CONNECT_TOKEN: usize = 4 + 8 + 1 + MAX_TOKEN_SERVERS * (32 + 1 + 255) + 1 + MAX_SEALED_TOKEN;

const PREFIX: &[u8; 4] = b"rwc1";
const TEXT_PREFIX: &str = "rakwire-connect-token-1:";

error_enum! {
    /// The reason why a connect token cannot be parsed or written.
    #[non_exhaustive]
    pub enum ConnectTokenError {
        /// The bytes are not a connect token, or are truncated.
        Malformed => "this is not a connect token; was it copied completely?",
        /// The buffer is too small, a name is longer than 255 bytes, or there are not 1 to 4 servers.
        TooLong => "a connect token has 1 to 4 servers, with names of up to 255 bytes",
    }
}

/// A server of a connect token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenServer<'t> {
    /// The server's key, which the client pins.
    pub key: PublicKey,
    /// The server's name: `host:port`, or the name of a relay's target.
    pub name: &'t str,
}

/// The servers of a connect token, in the order in which a client should try them.
pub type TokenServers<'t> = Vec<TokenServer<'t>, MAX_TOKEN_SERVERS>;

/// The token that a client gets from a backend: the servers, their keys, and the sealed part.
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
    /// The expiry in Unix time, in seconds.
    pub expires: u64,
    /// The servers.
    pub servers: TokenServers<'t>,
    /// The sealed part, which the client sends in place of a password.
    pub sealed: &'t [u8],
}

impl<'t> ConnectToken<'t> {
    /// Parses a token in its binary form.
    ///
    /// # Errors
    /// [`ConnectTokenError::Malformed`] if the bytes are not a connect token.
    pub fn read(bytes: &'t [u8]) -> Result<Self, ConnectTokenError> {
        Self::read_from(&mut Reader::new(bytes)).map_err(|_| ConnectTokenError::Malformed)
    }

    /// Parses a token in its text form.
    ///
    /// It is decoded into `buffer`, for which [`MAX_CONNECT_TOKEN`] bytes always suffice.
    ///
    /// # Errors
    /// [`ConnectTokenError::Malformed`] if the text is not a connect token.
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

    /// Writes the binary form into `buffer`, for which [`MAX_CONNECT_TOKEN`] bytes always suffice.
    ///
    /// # Errors
    /// [`ConnectTokenError::TooLong`] if a field exceeds its limit or the buffer is too small.
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

/// Writes the text form, which [`ConnectToken::from_text`] parses.
impl fmt::Display for ConnectToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        text::write(f, TEXT_PREFIX, self.write(&mut buffer).map_err(|_| fmt::Error)?)
    }
}

/// Writes a length of one byte, then the bytes.
fn write_short(bytes: &[u8], writer: &mut Writer<'_>) -> Result<(), WireError> {
    writer.u8(u8::try_from(bytes.len()).map_err(|_| WireError::BadLength)?)?;
    writer.bytes(bytes)
}

/// The maximum number of token keys of a server. Several keys are needed while keys are rotated.
pub const MAX_TOKEN_KEYS: usize = 4;

/// The token keys of a server.
pub type TokenKeys = Vec<TokenKey, MAX_TOKEN_KEYS>;

/// A record of used tokens. All peers of one server must share one record, so that each token can be used only once.
pub trait UsedTokenStore: fmt::Debug + Send + Sync {
    /// Marks a token as used at Unix time `now` in seconds, atomically, like [`UsedTokens::mark_used`].
    ///
    /// The implementation must not block.
    ///
    /// # Errors
    /// [`TokenError::Used`], [`TokenError::NoRoom`] or [`TokenError::Expired`]; the client is then refused.
    fn mark_used(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError>;
}

/// Verifies connect tokens at a server, with its token keys and a record of used tokens.
///
/// ```
/// use std::sync::{Mutex, PoisonError};
/// use rakwire::secure::{
///     AcceptedToken, ServerIdentity, StaticKey, TokenError, TokenKey, TokenVerifier, UsedTokenStore, UsedTokens,
/// };
///
/// #[derive(Debug)]
/// struct Store(Mutex<UsedTokens<1024>>);
///
/// impl UsedTokenStore for Store {
///     fn mark_used(&self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
///         self.0.lock().unwrap_or_else(PoisonError::into_inner).mark_used(token, now)
///     }
/// }
///
/// static USED: Store = Store(Mutex::new(UsedTokens::new()));
///
/// let key = TokenKey::from_bytes([7; 32]); // from a key file in a real program
/// let mut identity = ServerIdentity::new(StaticKey::from_bytes([1; 32]));
/// identity.tokens = Some(TokenVerifier::new([key].into_iter().collect(), &USED));
/// ```
pub struct TokenVerifier {
    keys: TokenKeys,
    used: Used,
}

/// The record of used tokens.
#[derive(Clone)]
enum Used {
    Borrowed(&'static dyn UsedTokenStore),
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    Shared(alloc::sync::Arc<dyn UsedTokenStore>),
}

impl Used {
    fn store(&self) -> &dyn UsedTokenStore {
        match self {
            Self::Borrowed(store) => *store,
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Self::Shared(store) => &**store,
        }
    }
}

impl TokenVerifier {
    /// Creates a verifier for tokens sealed with these keys. Without a key no token is accepted.
    #[must_use]
    pub fn new(keys: TokenKeys, used: &'static dyn UsedTokenStore) -> Self {
        Self { keys, used: Used::Borrowed(used) }
    }

    /// Creates a verifier like [`new`](Self::new), with a store that is dropped together with the last verifier that
    /// uses it.
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    #[must_use]
    pub fn shared(keys: TokenKeys, used: alloc::sync::Arc<dyn UsedTokenStore>) -> Self {
        Self { keys, used: Used::Shared(used) }
    }

    /// Returns a copy with the same store, for copies of a configuration.
    pub(crate) fn duplicate(&self) -> Self {
        Self { keys: self.keys.iter().map(TokenKey::duplicate).collect(), used: self.used.clone() }
    }

    /// Verifies a token and marks it as used.
    ///
    /// `server` is the server's key hash, `client` the key of the authenticated client, and `now` the Unix time in
    /// seconds.
    ///
    /// # Errors
    /// A [`TokenError`]; the client must be refused.
    pub fn accept(
        &self,
        token: &[u8],
        server: &KeyHash,
        client: &PublicKey,
        now: u64,
    ) -> Result<AcceptedToken, TokenError> {
        let open = |key: &TokenKey| key.open(token, server, client, now);
        let opened = self.keys.iter().map(open).find(|opened| *opened != Err(TokenError::DecryptionFailed));
        let token = opened.unwrap_or(Err(TokenError::DecryptionFailed))?;
        self.used.store().mark_used(&token, now)?;
        Ok(token)
    }
}

/// A record of up to `N` tokens that were used and have not expired (docs/secure.md#connect-tokens).
///
/// Only decrypted tokens of authenticated clients are recorded, so other clients cannot fill the record. A server that
/// accepts `n` connections per second with tokens valid for `t` seconds needs `N = n * t`.
///
/// ```
/// use rakwire::secure::UsedTokens;
///
/// let used = UsedTokens::<1024>::new();
/// assert!(used.is_empty());
/// ```
#[derive(Debug)]
pub struct UsedTokens<const N: usize> {
    used: Vec<([u8; SALT], u64), N>,
    /// The latest expiry of a token that was removed. A clock that is set back must not make that token valid again.
    forgotten: u64,
}

impl<const N: usize> Default for UsedTokens<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> UsedTokens<N> {
    /// Creates an empty record.
    #[must_use]
    pub const fn new() -> Self {
        Self { used: Vec::new(), forgotten: 0 }
    }

    /// Returns true if the record is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Returns the number of recorded tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Marks a token as used at Unix time `now` in seconds.
    ///
    /// # Errors
    /// [`TokenError::Used`] or [`TokenError::NoRoom`]: the client must be refused. [`TokenError::Expired`] is also
    /// returned for a token that is not expired at `now`, but may have been used and removed while the clock was ahead.
    pub fn mark_used(&mut self, token: &AcceptedToken, now: u64) -> Result<(), TokenError> {
        if token.expires <= self.forgotten {
            return Err(TokenError::Expired);
        }
        if self.used.iter().any(|(salt, _)| *salt == token.salt) {
            return Err(TokenError::Used);
        }
        if self.used.is_full() {
            let over = self.used.iter().map(|(_, expires)| *expires).filter(|expires| *expires <= now);
            self.forgotten = over.fold(self.forgotten, u64::max);
            self.used.retain(|(_, expires)| now < *expires);
        }
        self.used.push((token.salt, token.expires)).map_err(|_| TokenError::NoRoom)
    }
}

#[cfg(test)]
mod tests {
    //! Tests of accepted connect tokens and of every reason for refusal.

    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use crate::secure::keys::{KeyHash, KeyTextError, PublicKey};

    const KEY: TokenKey = TokenKey::from_bytes([7; 32]);
    const CLIENT: PublicKey = PublicKey([1; 32]);
    const SERVER: KeyHash = KeyHash([2; 24]);
    const EXPIRES: u64 = 1_000;
    const NOW: u64 = 999;

    fn claims<'a>(servers: &'a [KeyHash], user_data: &'a [u8]) -> TokenClaims<'a> {
        TokenClaims { user_id: 42, expires: EXPIRES, client: CLIENT, servers, user_data }
    }

    fn sealed(salt: u8) -> Vec<u8> {
        claims(&[SERVER], b"data").seal_with_salt(&KEY, &[salt; SALT]).expect("enough space").to_vec()
    }

    fn accept(token: &[u8]) -> Result<AcceptedToken, TokenError> {
        KEY.open(token, &SERVER, &CLIENT, NOW)
    }

    #[test]
    fn a_token_is_refused_after_expiry_and_for_other_servers_clients_and_keys() {
        let accepted = accept(&sealed(0)).expect("a good token");
        assert_eq!((accepted.user_id, accepted.expires, accepted.user_data()), (42, EXPIRES, &b"data"[..]));
        let token = sealed(0);
        let open = |server, client, now| KEY.open(&token, server, client, now).err();
        assert_eq!(open(&SERVER, &CLIENT, EXPIRES), Some(TokenError::Expired));
        assert_eq!(open(&KeyHash([3; 24]), &CLIENT, NOW), Some(TokenError::OtherServer));
        assert_eq!(open(&SERVER, &PublicKey([9; 32]), NOW), Some(TokenError::OtherClient));
        let other_key = TokenKey::from_bytes([8; 32]).open(&token, &SERVER, &CLIENT, NOW);
        assert_eq!(other_key.err(), Some(TokenError::DecryptionFailed));
    }

    #[test]
    fn every_changed_bit_and_wrong_length_is_detected() {
        let token = sealed(0);
        for bit in 0..token.len() * 8 {
            let mut changed = token.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(accept(&changed), Err(TokenError::DecryptionFailed), "bit {bit}");
        }
        for length in 0..token.len() {
            assert_eq!(accept(&token[..length]), Err(TokenError::DecryptionFailed), "{length} bytes");
        }
        let long = [&token[..], &[0; 256]].concat();
        assert_eq!(accept(&long), Err(TokenError::DecryptionFailed));
    }

    #[test]
    fn user_data_has_the_documented_maximum_length() {
        for (servers, longest) in [(1, 128), (2, 113), (3, 89), (4, 65)] {
            let names = std::vec![SERVER; servers];
            let data = std::vec![5; longest + 1];
            let seal = |length| claims(&names, &data[..length]).seal_with_salt(&KEY, &[0; SALT]);
            let token = seal(longest).expect("enough space");
            assert_eq!(
                accept(&token).map(|accepted| accepted.user_data().to_vec()),
                Ok(data[..longest].to_vec())
            );
            assert_eq!(seal(longest + 1), Err(TokenError::TooLong), "{servers} servers");
        }
        assert_eq!(claims(&[], b"").seal_with_salt(&KEY, &[0; SALT]), Err(TokenError::TooLong));
        assert_eq!(claims(&[SERVER; 5], b"").seal_with_salt(&KEY, &[0; SALT]), Err(TokenError::TooLong));
    }

    #[test]
    fn a_token_can_be_used_only_once() {
        let mut used = UsedTokens::<2>::new();
        let [a, b, c] = [0, 1, 2].map(|salt| accept(&sealed(salt)).expect("a good token"));
        assert_eq!(used.mark_used(&a, NOW), Ok(()));
        assert_eq!(used.mark_used(&a, NOW), Err(TokenError::Used));
        assert_eq!(used.mark_used(&b, NOW), Ok(()));
        assert_eq!(
            used.mark_used(&c, NOW),
            Err(TokenError::NoRoom),
            "a token that cannot be recorded is refused"
        );
        assert_eq!(used.mark_used(&b, NOW), Err(TokenError::Used));
        assert_eq!(used.mark_used(&c, EXPIRES), Ok(()), "expired tokens free their entries");
        assert_eq!(used.len(), 1);
    }

    /// After the clock steps back, no used token becomes valid again, and tokens that expire later are still accepted.
    #[test]
    fn a_used_token_remains_refused_after_the_clock_steps_back() {
        let until = |expires, salt| {
            let mut token = accept(&sealed(salt)).expect("a good token");
            token.expires = expires;
            token
        };
        let (first, second) = (until(EXPIRES, 0), until(EXPIRES + 5, 1));
        let mut used = UsedTokens::<2>::new();
        assert_eq!((used.mark_used(&first, NOW), used.mark_used(&second, NOW)), (Ok(()), Ok(())));
        // The first token is removed while the clock is ahead; then the clock steps back.
        assert_eq!(used.mark_used(&until(EXPIRES + 9, 2), EXPIRES + 3), Ok(()));
        assert_eq!(used.mark_used(&first, NOW), Err(TokenError::Expired));
        assert_eq!(used.mark_used(&second, NOW), Err(TokenError::Used));
        assert_eq!(
            used.mark_used(&until(EXPIRES + 1, 3), EXPIRES + 7),
            Ok(()),
            "the token expires after the forgotten tokens"
        );
        assert_eq!(used.mark_used(&until(EXPIRES + 5, 4), NOW), Err(TokenError::Expired));
    }

    #[test]
    fn tokens_with_equal_claims_have_different_salts() {
        let mut random = crate::secure::SeededRandom::new([1; 32]);
        let tokens = [(); 2].map(|()| claims(&[SERVER], b"").seal(&KEY, &mut random).expect("enough space"));
        assert_ne!(tokens[0][4..28], tokens[1][4..28]);
    }

    #[test]
    fn a_token_key_round_trips_through_a_key_file() {
        let file = KEY.private_text().to_string();
        let token = sealed(0);
        let read = TokenKey::from_key_file(&file).expect("a key");
        assert!(read.open(&token, &SERVER, &CLIENT, NOW).is_ok());
        let other = crate::secure::StaticKey::from_bytes([7; 32]).private_text().to_string();
        assert_eq!(TokenKey::from_key_file(&other).err(), Some(KeyTextError::WrongPrefix));
    }

    #[test]
    fn a_connect_token_round_trips_and_truncated_bytes_are_refused() {
        let server = |name| TokenServer { key: PublicKey([3; 32]), name };
        let (sealed, long) = (sealed(0), "x".repeat(256));
        let token = ConnectToken {
            expires: EXPIRES,
            servers: [server("a.example:1"), server("")].into_iter().collect(),
            sealed: &sealed,
        };
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        let bytes = token.write(&mut buffer).expect("enough space").to_vec();
        assert_eq!(ConnectToken::read(&bytes), Ok(token.clone()));
        for length in 0..bytes.len() {
            assert_eq!(ConnectToken::read(&bytes[..length]), Err(ConnectTokenError::Malformed));
            assert_eq!(token.write(&mut std::vec![0; length]), Err(ConnectTokenError::TooLong));
        }
        assert_eq!(ConnectToken::read(&[&bytes[..], &[0]].concat()), Err(ConnectTokenError::Malformed));
        let too_long = ConnectToken { servers: [server(&long)].into_iter().collect(), ..token.clone() };
        assert_eq!(too_long.write(&mut buffer), Err(ConnectTokenError::TooLong));
        let none = ConnectToken { servers: TokenServers::new(), ..token };
        assert_eq!(none.write(&mut buffer), Err(ConnectTokenError::TooLong));
        let mut no_text = bytes;
        no_text[4 + 8 + 1 + 32 + 1] = 0xFF;
        assert_eq!(ConnectToken::read(&no_text), Err(ConnectTokenError::Malformed));
    }

    #[test]
    fn a_connect_token_round_trips_as_text_and_truncated_text_is_refused() {
        let server = TokenServer { key: PublicKey([3; 32]), name: "a.example:1" };
        // Text lengths for every remainder of a group of three bytes.
        for length in 0..6 {
            let sealed = sealed(0)[..length].to_vec();
            let servers = [server].into_iter().collect();
            let token = ConnectToken { expires: EXPIRES, servers, sealed: &sealed };
            let text = token.to_string();
            let mut buffer = [0; MAX_CONNECT_TOKEN];
            assert_eq!(ConnectToken::from_text(&text, &mut buffer), Ok(token), "{length} bytes");
            for cut in 0..text.len() {
                let read = ConnectToken::from_text(&text[..cut], &mut buffer);
                assert_eq!(read, Err(ConnectTokenError::Malformed), "{cut} characters");
            }
            let other = text.replace("connect-token", "public-key");
            assert_eq!(ConnectToken::from_text(&other, &mut buffer), Err(ConnectTokenError::Malformed));
            assert_eq!(ConnectToken::from_text(&text, &mut [0; 20]), Err(ConnectTokenError::Malformed));
        }
    }

    #[test]
    fn the_longest_connect_token_fits() {
        let name = "x".repeat(255);
        let server = TokenServer { key: PublicKey([3; 32]), name: &name };
        let sealed = [1; MAX_SEALED_TOKEN];
        let token = ConnectToken { expires: 1, servers: [server; 4].into_iter().collect(), sealed: &sealed };
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        assert_eq!(token.write(&mut buffer).map(<[u8]>::len), Ok(MAX_CONNECT_TOKEN));
        assert_eq!(ConnectToken::from_text(&token.to_string(), &mut buffer), Ok(token));
    }
}

//! Keys, connect tokens, and the authenticated peer of a secure connection.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rakwire_native::secure::{
    ConnectToken, KeyHash, KnownServer, MAX_CONNECT_TOKEN, MAX_TOKEN_KEYS, MAX_TOKEN_SERVERS, PublicKey,
    ServerIdentity, ServerTrust, StaticKey, TokenClaims, TokenKey as DriverTokenKey, TokenServer,
    TokenVerifier,
};
use rakwire_native::{
    Connection, KeyFileError, Options, SecurePeer, UsedTokenTable, create_key_file, create_token_key_file,
    read_key_file, read_token_key_file, system_random,
};

use zeroize::Zeroizing;

use crate::errors;
use crate::message::Bytes;

/// Reads an array of exactly `N` bytes.
fn array<const N: usize>(bytes: &[u8], name: &str) -> PyResult<[u8; N]> {
    bytes.try_into().map_err(|_| errors::value(format!("{name} must have {N} bytes, not {}", bytes.len())))
}

fn key_file(error: KeyFileError) -> PyErr {
    match error {
        KeyFileError::Io(error) => errors::system(&error),
        KeyFileError::Text(_) | _ => errors::value(error),
    }
}

/// The private key of a server, or of a client with an identity.
#[pyclass(frozen, module = "rakwire", name = "SecretKey")]
#[derive(Debug)]
pub(crate) struct SecretKey(StaticKey);

#[pymethods]
impl SecretKey {
    /// Generates a private key.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        let mut random = system_random().map_err(|error| errors::system(&error))?;
        Ok(Self(StaticKey::generate(&mut random)))
    }

    /// Creates a key from its 32 secret bytes.
    #[staticmethod]
    fn from_bytes(data: Bytes<'_>) -> PyResult<Self> {
        Ok(Self(StaticKey::from_bytes(array(data.as_slice(), "a key")?)))
    }

    /// Generates a private key and writes it to a new file that only its owner may read.
    #[staticmethod]
    fn create_file(path: PathBuf) -> PyResult<Self> {
        create_key_file(path).map(Self).map_err(|error| errors::system(&error))
    }

    /// Reads a private key from a file.
    #[staticmethod]
    fn read_file(path: PathBuf) -> PyResult<Self> {
        read_key_file(path).map(Self).map_err(key_file)
    }

    /// The public key, 32 bytes, which others use to verify this key.
    #[getter]
    fn public_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.public().0)
    }

    fn __repr__(&self) -> String {
        format!("<SecretKey of the public key {}>", hex(&self.0.public().0))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The key with which a backend seals connect tokens, and game servers open them.
#[pyclass(frozen, module = "rakwire", name = "TokenKey")]
pub(crate) struct TokenKey(DriverTokenKey);

#[pymethods]
impl TokenKey {
    /// Generates a token key.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        let mut random = system_random().map_err(|error| errors::system(&error))?;
        Ok(Self(DriverTokenKey::generate(&mut random)))
    }

    /// Creates a key from its 32 secret bytes.
    #[staticmethod]
    fn from_bytes(data: Bytes<'_>) -> PyResult<Self> {
        Ok(Self(DriverTokenKey::from_bytes(array(data.as_slice(), "a key")?)))
    }

    /// Generates a token key and writes it to a new file that only its owner may read.
    #[staticmethod]
    fn create_file(path: PathBuf) -> PyResult<Self> {
        create_token_key_file(path).map(Self).map_err(|error| errors::system(&error))
    }

    /// Reads a token key from a file.
    #[staticmethod]
    fn read_file(path: PathBuf) -> PyResult<Self> {
        read_token_key_file(path).map(Self).map_err(key_file)
    }

    #[expect(clippy::unused_self, reason = "a representation without the key")]
    fn __repr__(&self) -> &'static str {
        "<TokenKey>"
    }
}

impl TokenKey {
    /// Returns a copy of the key.
    fn copy(&self) -> PyResult<DriverTokenKey> {
        let text = Zeroizing::new(self.0.private_text().to_string());
        DriverTokenKey::from_key_file(&text).map_err(errors::value)
    }
}

/// The security options of an endpoint, read from rakwire.Security.
#[derive(FromPyObject)]
pub(crate) struct Security {
    server_key: Option<Py<SecretKey>>,
    identity: Option<Py<SecretKey>>,
    requires_security: bool,
    requires_identity: bool,
    token_keys: Vec<Py<TokenKey>>,
}

impl Security {
    pub(crate) fn apply(&self, options: &mut Options) -> PyResult<()> {
        let needs_key = self.requires_security || self.requires_identity || !self.token_keys.is_empty();
        if needs_key && self.server_key.is_none() {
            return Err(errors::value(
                "requires_security, requires_identity and token_keys need a server_key",
            ));
        }
        if self.token_keys.len() > MAX_TOKEN_KEYS {
            return Err(errors::value(format!("token_keys must have at most {MAX_TOKEN_KEYS} keys")));
        }
        let security = options.secure().map_err(|error| errors::system(&error))?;
        security.identity = self.identity.as_ref().map(|key| key.get().0.duplicate());
        let Some(key) = &self.server_key else { return Ok(()) };
        let mut server = ServerIdentity::new(key.get().0.duplicate());
        server.requires_security = self.requires_security;
        server.requires_identity = self.requires_identity;
        if !self.token_keys.is_empty() {
            let keys = self.token_keys.iter().map(|key| key.get().copy()).collect::<PyResult<_>>()?;
            server.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default())));
        }
        security.server = Some(server);
        Ok(())
    }
}

/// The security options of a connection attempt, read from a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Credentials<'py> {
    trust_any: bool,
    server_key: Option<Bytes<'py>>,
    next_key_hash: Option<Bytes<'py>>,
    identity: Option<Py<SecretKey>>,
    identity_data: Bytes<'py>,
    token: Option<String>,
}

/// The security options of a connection attempt, without Python objects.
pub(crate) struct Known {
    pub(crate) trust: Option<ServerTrust>,
    pub(crate) identity: Option<StaticKey>,
    pub(crate) identity_data: Vec<u8>,
    pub(crate) token: Option<Token>,
}

/// The sealed part of a connect token, and its servers.
pub(crate) struct Token {
    pub(crate) servers: Vec<(PublicKey, String)>,
    pub(crate) sealed: Vec<u8>,
}

impl Credentials<'_> {
    pub(crate) fn read(self) -> PyResult<Known> {
        let key = self.server_key.map(|key| array(key.as_slice(), "a public key")).transpose()?;
        let next = self.next_key_hash.map(|hash| array(hash.as_slice(), "the hash of a key")).transpose()?;
        let trust = match (key, next) {
            (Some(key), Some(next)) => {
                Some(ServerTrust::Known(KnownServer { key: PublicKey(key), next: Some(KeyHash(next)) }))
            }
            (Some(key), None) => Some(ServerTrust::Key(PublicKey(key))),
            (None, _) => self.trust_any.then_some(ServerTrust::Any),
        };
        let identity = self.identity.map(|key| key.get().0.duplicate());
        let token = self.token.map(|text| Token::read(&text)).transpose()?;
        if token.is_some() && identity.is_none() {
            return Err(errors::value("a connect token needs the identity of its client; pass identity"));
        }
        if token.is_some() && trust.is_some() {
            return Err(errors::value("a connect token contains the keys to trust; leave out trust"));
        }
        Ok(Known { trust, identity, identity_data: self.identity_data.into_vec(), token })
    }
}

impl Token {
    fn read(text: &str) -> PyResult<Self> {
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        let token = ConnectToken::from_text(text, &mut buffer).map_err(errors::value)?;
        let servers = token.servers.iter().map(|server| (server.key, server.name.to_owned())).collect();
        Ok(Self { servers, sealed: token.sealed.to_vec() })
    }
}

/// Creates a connect token, in a backend. `expires` is in seconds since the Unix epoch, `client_key` is the
/// public key of the player, and each of `servers` has a public key and "host:port". `user_data` has at most
/// 128 bytes.
#[pyfunction]
#[pyo3(signature = (key, *, user_id, expires, client_key, servers, user_data=None))]
pub(crate) fn create_token(
    key: &Bound<'_, TokenKey>,
    user_id: u64,
    expires: u64,
    client_key: Bytes<'_>,
    servers: Vec<(Bytes<'_>, String)>,
    user_data: Option<Bytes<'_>>,
) -> PyResult<String> {
    if !(1..=MAX_TOKEN_SERVERS).contains(&servers.len()) {
        return Err(errors::value(format!("a token must list 1 to {MAX_TOKEN_SERVERS} servers")));
    }
    let keys: Vec<PublicKey> = servers
        .iter()
        .map(|(key, _)| array(key.as_slice(), "the public key of a server").map(PublicKey))
        .collect::<PyResult<_>>()?;
    let hashes: Vec<KeyHash> = keys.iter().map(PublicKey::hash).collect();
    let claims = TokenClaims {
        user_id,
        expires,
        client: PublicKey(array(client_key.as_slice(), "the public key of a client")?),
        servers: &hashes,
        user_data: user_data.as_ref().map_or(&[], Bytes::as_slice),
    };
    let mut random = system_random().map_err(|error| errors::system(&error))?;
    let sealed = claims.seal(&key.get().0, &mut random).map_err(errors::value)?;
    let names = servers.iter().map(|(_, name)| name.as_str());
    let servers = keys.into_iter().zip(names).map(|(key, name)| TokenServer { key, name }).collect();
    let token = ConnectToken { expires, servers, sealed: &sealed };
    token.write(&mut [0; MAX_CONNECT_TOKEN]).map_err(errors::value)?;
    Ok(token.to_string())
}

/// Returns the authenticated peer as fields of SecurePeer, or None for an unencrypted connection.
pub(crate) fn peer<'py>(py: Python<'py>, connection: &Connection) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(peer) = connection.secure_peer() else { return Ok(None) };
    let dict = PyDict::new(py);
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    let (key, next, data) = match &peer {
        SecurePeer::Server(server) => {
            (Some(bytes(&server.key.0)), server.next.map(|hash| bytes(&hash.0)), None)
        }
        SecurePeer::Client(Some(client)) => (Some(bytes(&client.key.0)), None, Some(bytes(client.data()))),
        SecurePeer::Client(None) => (None, None, None),
    };
    dict.set_item("key", key)?;
    dict.set_item("next_key_hash", next)?;
    dict.set_item("identity_data", data.unwrap_or_else(|| bytes(&[])))?;
    let token = connection.accepted_token();
    dict.set_item("token_user_id", token.as_ref().map(|token| token.user_id))?;
    dict.set_item("token_expires", token.as_ref().map(|token| token.expires))?;
    dict.set_item("token_data", bytes(token.as_ref().map_or(&[], |token| token.user_data())))?;
    Ok(Some(dict))
}

//! Secure connections, keys and connect tokens.
//!
//! The functions exist in every build, so that the ABI does not depend on features.

use std::ffi::c_char;

use crate::types::{RakwireResult, RakwireTokenClaims};

pub(crate) use self::kind::{Credentials, KeptSecurity, apply};

/// Generates a private key of 32 bytes and stores it with its public key. `public_key` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_key_generate(private_key: *mut u8, public_key: *mut u8) -> RakwireResult {
    // SAFETY: each pointer is null, or points to 32 writable bytes.
    crate::codes::guard(|| unsafe { kind::generate(private_key, public_key) })
}

/// Stores the public key of a private key, 32 bytes each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_public_key(private_key: *const u8, public_key: *mut u8) -> RakwireResult {
    // SAFETY: each pointer is null, or points to 32 bytes.
    crate::codes::guard(|| unsafe { kind::public(private_key, public_key) })
}

/// Generates a private key and writes it to a new file that only its owner may read. Fails if the file exists. Stores the
/// public key; `public_key` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_key_file_create(path: *const c_char, public_key: *mut u8) -> RakwireResult {
    // SAFETY: the caller passes a string, and null or a pointer to 32 writable bytes.
    crate::codes::guard(|| unsafe { kind::create_file(path, public_key) })
}

/// Stores the public key of a file written by rakwire_key_file_create().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_key_file_public(path: *const c_char, public_key: *mut u8) -> RakwireResult {
    // SAFETY: the caller passes a string, and a pointer to 32 writable bytes.
    crate::codes::guard(|| unsafe { kind::file_public(path, public_key) })
}

/// Generates a token key and writes it to a new file that only its owner may read. Fails if the file exists. Servers and
/// backend share the key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_token_key_file_create(path: *const c_char) -> RakwireResult {
    // SAFETY: the caller passes a string.
    crate::codes::guard(|| unsafe { kind::create_token_file(path) })
}

/// Creates a connect token as a NUL-terminated string, with a token key of 32 bytes, or with null and the key in
/// `token_key_file`. Stores the length including the NUL; 4,096 bytes are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rakwire_token_create(
    token_key: *const u8,
    claims: *const RakwireTokenClaims,
    buffer: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> RakwireResult {
    // SAFETY: the caller passes a key or null, claims with their actual size in `size`, and a buffer with its capacity.
    crate::codes::guard(|| unsafe { kind::create_token(token_key, claims, (buffer, capacity), length) })
}

#[cfg(feature = "secure")]
mod kind {
    use std::ffi::c_char;
    use std::sync::Arc;

    use rakwire_native::secure::{
        ConnectToken, KeyHash, KnownServer, MAX_CONNECT_TOKEN, MAX_TOKEN_KEYS, PublicKey, ServerIdentity,
        ServerTrust, StaticKey, TokenClaims, TokenKey, TokenServer, TokenVerifier,
    };
    use rakwire_native::{
        ConnectOptions, KeyLogFile, Options, UsedTokenTable, create_key_file, create_token_key_file,
        read_key_file, read_token_key_file, system_random,
    };

    use crate::codes::{
        Failure, Outcome, RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_NULL, RAKWIRE_ERROR_SECURITY,
        RAKWIRE_ERROR_SYSTEM, RAKWIRE_OK,
    };
    use crate::memory::{bytes, check_out, fill, flag, needed_text, read_struct, store, text};
    use crate::types::{
        RAKWIRE_TRUST_ANY, RAKWIRE_TRUST_KEY, RAKWIRE_TRUST_KNOWN, RAKWIRE_TRUST_NONE, RakwireConnectOptions,
        RakwireOptions, RakwireTokenClaims,
    };

    fn refused(text: impl std::fmt::Display) -> Failure {
        Failure::with(RAKWIRE_ERROR_SECURITY, text)
    }

    /// # Safety
    /// `to` is null, or points to 32 writable bytes.
    unsafe fn store_key(to: *mut u8, key: [u8; 32]) -> Outcome<()> {
        // SAFETY: required of the caller of this function; bytes need no alignment.
        unsafe { store(to.cast(), key) }
    }

    /// Borrows 32 bytes of the caller; `None` for a null pointer.
    ///
    /// # Safety
    /// `data` is null, or points to 32 readable bytes.
    unsafe fn key<'a>(data: *const u8) -> Option<&'a [u8; 32]> {
        // SAFETY: null, or 32 bytes by the contract of this function; bytes need no alignment.
        unsafe { data.cast::<[u8; 32]>().as_ref() }
    }

    /// # Safety
    /// `data` is null, or points to 32 readable bytes.
    unsafe fn needed_key<'a>(data: *const u8) -> Outcome<&'a [u8; 32]> {
        // SAFETY: required of the caller of this function.
        unsafe { key(data) }.ok_or(Failure::new(RAKWIRE_ERROR_NULL))
    }

    /// Applies the security options of an endpoint.
    ///
    /// # Safety
    /// The pointers in the options are null or valid: strings are NUL-terminated, and other data has its length.
    pub(crate) unsafe fn apply(from: &RakwireOptions, options: &mut Options) -> Outcome<()> {
        let is_secure = flag(from.secure, "secure")?;
        let requires_security = flag(from.requires_security, "requires_security")?;
        let requires_identity = flag(from.requires_identity, "requires_identity")?;
        // SAFETY: required of the caller of this function.
        let (server, identity) = unsafe {
            let server = key_or_file(from.server_key, from.server_key_file)?;
            (server, key_or_file(from.identity_key, from.identity_key_file)?)
        };
        // SAFETY: as above.
        let token_keys = unsafe { token_keys(from) }?;
        let needs_server = requires_security || requires_identity || !token_keys.is_empty();
        if needs_server && server.is_none() {
            return Err(refused("requires_security, requires_identity and token keys need a server_key"));
        }
        // SAFETY: as above.
        let key_log = unsafe { text(from.key_log_file) }?;
        if !is_secure && server.is_none() && identity.is_none() {
            if key_log.is_some() {
                return Err(refused("key_log_file needs secure connections: set `secure`, or a key"));
            }
            return Ok(());
        }
        let security = options.secure().map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))?;
        security.identity = identity;
        if let Some(path) = key_log {
            let log = KeyLogFile::open(path);
            let log = log.map_err(|error| {
                Failure::with(RAKWIRE_ERROR_SYSTEM, format_args!("key_log_file: {path}: {error}"))
            })?;
            security.key_log = Some(Arc::new(log));
        }
        let Some(server) = server else { return Ok(()) };
        let mut server = ServerIdentity::new(server);
        server.requires_security = requires_security;
        server.requires_identity = requires_identity;
        if !token_keys.is_empty() {
            let keys = token_keys.into_iter().collect();
            server.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default())));
        }
        security.server = Some(server);
        Ok(())
    }

    /// Reads the token keys that a server accepts. Their number is checked before they are read.
    ///
    /// # Safety
    /// The pointers in the options are null or valid: `token_keys` points to `token_key_count` keys.
    unsafe fn token_keys(from: &RakwireOptions) -> Outcome<Vec<TokenKey>> {
        // SAFETY: required of the caller of this function.
        let file = unsafe { text(from.token_key_file) }?;
        let count = from.token_key_count as usize;
        if count.saturating_add(usize::from(file.is_some())) > MAX_TOKEN_KEYS {
            return Err(Failure::with(RAKWIRE_ERROR_ARGUMENT, "a server can have at most 4 token keys"));
        }
        // SAFETY: as above.
        let (keys, _) = unsafe { bytes(from.token_keys, count * 32) }?.as_chunks::<32>();
        let mut keys: Vec<TokenKey> = keys.iter().map(|key| TokenKey::from_bytes(*key)).collect();
        if let Some(path) = file {
            keys.push(token_key_from_file(path)?);
        }
        Ok(keys)
    }

    /// The security settings of a connection attempt.
    #[derive(Debug)]
    pub(crate) struct Credentials<'a> {
        trust: Option<ServerTrust>,
        identity: Option<Arc<StaticKey>>,
        data: &'a [u8],
        token: Option<&'a str>,
        token_server: usize,
    }

    impl<'a> Credentials<'a> {
        /// # Safety
        /// The pointers in the options are null or valid: strings are NUL-terminated, and other data has its length.
        pub(crate) unsafe fn read(from: &RakwireConnectOptions) -> Outcome<Self> {
            let server = PublicKey(from.server_key);
            let trust = match from.trust {
                RAKWIRE_TRUST_NONE => None,
                RAKWIRE_TRUST_ANY => Some(ServerTrust::Any),
                RAKWIRE_TRUST_KEY => Some(ServerTrust::Key(server)),
                RAKWIRE_TRUST_KNOWN => {
                    let next = Some(KeyHash(from.next_key_hash));
                    Some(ServerTrust::Known(KnownServer { key: server, next }))
                }
                _ => return Err(Failure::with(RAKWIRE_ERROR_ARGUMENT, "trust must be 0 to 3")),
            };
            // SAFETY: required of the caller of this function.
            let (identity, data, token) = unsafe {
                let data = bytes(from.identity_data, from.identity_data_length)?;
                (key(from.identity_key), data, text(from.token)?)
            };
            let identity = identity.map(|key| Arc::new(StaticKey::from_bytes(*key)));
            Ok(Self { trust, identity, data, token, token_server: from.token_server.into() })
        }

        /// Returns the security of the options from [`use_for`](Self::use_for), for later attempts.
        pub(crate) fn keep(&self, options: &ConnectOptions<'_>) -> KeptSecurity {
            KeptSecurity {
                trust: options.trust,
                identity: self.identity.clone(),
                data: options.identity_data.to_vec(),
            }
        }

        /// Calls `connect` with the options and with the server that the token selects.
        pub(crate) fn use_for(
            &self,
            with: ConnectOptions<'_>,
            connect: impl FnOnce(&ConnectOptions<'_>, Option<&str>) -> Outcome<u64>,
        ) -> Outcome<u64> {
            let Some(token) = self.token else {
                let (identity, identity_data) = (self.identity.as_deref(), self.data);
                return connect(&ConnectOptions { trust: self.trust, identity, identity_data, ..with }, None);
            };
            let mut buffer = [0; MAX_CONNECT_TOKEN];
            let token = ConnectToken::from_text(token, &mut buffer).map_err(refused)?;
            let server = token.servers.get(self.token_server);
            let server = server.ok_or_else(|| refused("token_server exceeds the servers in the token"))?;
            let identity = self.identity.as_deref();
            let identity =
                identity.ok_or_else(|| refused("a connect token needs the identity_key of its client"))?;
            let options = ConnectOptions {
                identity_data: self.data,
                protocol_version: with.protocol_version,
                connect_timeout: with.connect_timeout,
                attempts: with.attempts,
                interval: with.interval,
                timeout: with.timeout,
                ..ConnectOptions::connect_token(&token, server, identity)
            };
            connect(&options, Some(server.name))
        }
    }

    /// The security settings kept for further attempts at the same server.
    #[derive(Debug, Default)]
    pub(crate) struct KeptSecurity {
        trust: Option<ServerTrust>,
        identity: Option<Arc<StaticKey>>,
        data: Vec<u8>,
    }

    impl KeptSecurity {
        /// Adds the security settings to the options of an attempt.
        pub(crate) fn lend<'a>(&'a self, options: ConnectOptions<'a>) -> ConnectOptions<'a> {
            let identity = self.identity.as_deref();
            ConnectOptions { trust: self.trust, identity, identity_data: &self.data, ..options }
        }
    }

    /// # Safety
    /// Each pointer is null, or points to 32 writable bytes.
    pub(super) unsafe fn generate(private: *mut u8, public: *mut u8) -> Outcome<i32> {
        check_out(private)?;
        let mut bytes = [0; 32];
        let mut random = system_random().map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))?;
        rakwire_native::secure::SecureRandom::fill(&mut random, &mut bytes);
        // SAFETY: required of the caller of this function.
        unsafe {
            store_key(private, bytes)?;
            store_key(public, StaticKey::from_bytes(bytes).public().0)?;
        }
        Ok(RAKWIRE_OK)
    }

    /// # Safety
    /// Each pointer is null, or points to 32 bytes. `public` is writable.
    pub(super) unsafe fn public(private: *const u8, public: *mut u8) -> Outcome<i32> {
        check_out(public)?;
        // SAFETY: required of the caller of this function.
        unsafe { store_key(public, StaticKey::from_bytes(*needed_key(private)?).public().0) }?;
        Ok(RAKWIRE_OK)
    }

    /// # Safety
    /// `path` is null or a string. `public` is null, or points to 32 writable bytes.
    pub(super) unsafe fn create_file(path: *const c_char, public: *mut u8) -> Outcome<i32> {
        // SAFETY: required of the caller of this function.
        let path = unsafe { needed_text(path) }?;
        let key = create_key_file(path).map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))?;
        // SAFETY: as above.
        unsafe { store_key(public, key.public().0) }?;
        Ok(RAKWIRE_OK)
    }

    /// # Safety
    /// `path` is null or a string. `public` is null, or points to 32 writable bytes.
    pub(super) unsafe fn file_public(path: *const c_char, public: *mut u8) -> Outcome<i32> {
        check_out(public)?;
        // SAFETY: required of the caller of this function.
        let key = from_file(unsafe { needed_text(path) }?)?;
        // SAFETY: as above.
        unsafe { store_key(public, key.public().0) }?;
        Ok(RAKWIRE_OK)
    }

    /// # Safety
    /// `path` is null or a string.
    pub(super) unsafe fn create_token_file(path: *const c_char) -> Outcome<i32> {
        // SAFETY: required of the caller of this function.
        let path = unsafe { needed_text(path) }?;
        create_token_key_file(path).map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))?;
        Ok(RAKWIRE_OK)
    }

    fn token_key_from_file(path: &str) -> Outcome<TokenKey> {
        read_token_key_file(path).map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))
    }

    fn from_file(path: &str) -> Outcome<StaticKey> {
        read_key_file(path).map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))
    }

    /// Reads a key from its bytes or from its file.
    ///
    /// # Safety
    /// `data` is null, or points to 32 readable bytes. `file` is null or a string.
    unsafe fn key_or_file(data: *const u8, file: *const c_char) -> Outcome<Option<StaticKey>> {
        // SAFETY: required of the caller of this function.
        match unsafe { (key(data), text(file)?) } {
            (Some(_), Some(_)) => Err(refused("set a key or its file, not both")),
            (Some(key), None) => Ok(Some(StaticKey::from_bytes(*key))),
            (None, Some(file)) => from_file(file).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// # Safety
    /// `token_key` is null, or points to 32 readable bytes. `claims` is null, or points to claims with their actual
    /// size in `size` and valid pointers. `buffer` is null, or points to `capacity` writable bytes. `length` is null or
    /// writable.
    pub(super) unsafe fn create_token(
        token_key: *const u8,
        claims: *const RakwireTokenClaims,
        (buffer, capacity): (*mut c_char, usize),
        length: *mut usize,
    ) -> Outcome<i32> {
        // SAFETY: required of the caller of this function.
        let (token_key, from) = unsafe { (key(token_key), read_struct(claims)?) };
        // SAFETY: as above.
        let token_key = match (token_key, unsafe { text(from.token_key_file) }?) {
            (Some(key), None) => TokenKey::from_bytes(*key),
            (None, Some(path)) => token_key_from_file(path)?,
            (None, None) => return Err(Failure::new(RAKWIRE_ERROR_NULL)),
            (Some(_), Some(_)) => return Err(refused("set a token key or its file, not both")),
        };
        let count = from.server_count as usize;
        if !(1..=4).contains(&count) {
            return Err(Failure::with(RAKWIRE_ERROR_ARGUMENT, "server_count must be 1 to 4"));
        }
        check_out(from.server_names.cast_mut())?;
        // SAFETY: as above: the claims name that many keys and names.
        let (client, (keys, _), names, user_data) = unsafe {
            let names = std::slice::from_raw_parts(from.server_names, count);
            let user_data = bytes(from.user_data, from.user_data_length)?;
            (
                needed_key(from.client_key)?,
                bytes(from.server_keys, count * 32)?.as_chunks::<32>(),
                names,
                user_data,
            )
        };
        let mut servers = Vec::new();
        for (key, name) in keys.iter().zip(names) {
            // SAFETY: as above.
            servers.push(TokenServer { key: PublicKey(*key), name: unsafe { needed_text(*name) }? });
        }
        let hashes: Vec<KeyHash> = servers.iter().map(|server| server.key.hash()).collect();
        let mut random = system_random().map_err(|error| Failure::with(RAKWIRE_ERROR_SYSTEM, error))?;
        let claims = TokenClaims {
            user_id: from.user_id,
            expires: from.expires,
            client: PublicKey(*client),
            servers: &hashes,
            user_data,
        };
        let sealed = claims.seal(&token_key, &mut random).map_err(refused)?;
        let token =
            ConnectToken { expires: from.expires, servers: servers.into_iter().collect(), sealed: &sealed };
        let mut place = [0; MAX_CONNECT_TOKEN];
        token.write(&mut place).map_err(refused)?;
        let text = format!("{token}\0");
        // SAFETY: as above.
        unsafe { fill(text.as_bytes(), buffer.cast(), capacity, length) }
    }
}

#[cfg(not(feature = "secure"))]
mod kind {
    use std::ffi::c_char;

    use rakwire_native::{ConnectOptions, Options};

    use crate::codes::{Failure, Outcome, RAKWIRE_ERROR_UNSUPPORTED};
    use crate::memory::flag;
    use crate::types::{RakwireConnectOptions, RakwireOptions, RakwireTokenClaims};

    const fn unsupported<T>() -> Outcome<T> {
        Err(Failure::new(RAKWIRE_ERROR_UNSUPPORTED))
    }

    pub(crate) unsafe fn apply(from: &RakwireOptions, _: &mut Options) -> Outcome<()> {
        let has_keys = [from.server_key, from.identity_key, from.token_keys].iter().any(|key| !key.is_null());
        let files = [from.server_key_file, from.identity_key_file, from.token_key_file, from.key_log_file];
        let has_files = files.iter().any(|file| !file.is_null());
        let requires_security = flag(from.requires_security, "requires_security")?;
        let requires_identity = flag(from.requires_identity, "requires_identity")?;
        let is_secure = flag(from.secure, "secure")? || requires_security || requires_identity;
        if has_keys || has_files || is_secure { unsupported() } else { Ok(()) }
    }

    /// Replaces the security settings in builds without secure connections.
    #[derive(Debug)]
    pub(crate) struct Credentials;

    impl Credentials {
        pub(crate) unsafe fn read(from: &RakwireConnectOptions) -> Outcome<Self> {
            let is_plain = from.trust == 0 && from.identity_key.is_null() && from.token.is_null();
            if is_plain { Ok(Self) } else { unsupported() }
        }

        pub(crate) const fn keep(&self, _: &ConnectOptions<'_>) -> KeptSecurity {
            KeptSecurity
        }

        pub(crate) fn use_for(
            &self,
            with: ConnectOptions<'_>,
            connect: impl FnOnce(&ConnectOptions<'_>, Option<&str>) -> Outcome<u64>,
        ) -> Outcome<u64> {
            connect(&with, None)
        }
    }

    /// Replaces the security settings in builds without secure connections.
    #[derive(Debug, Default)]
    pub(crate) struct KeptSecurity;

    impl KeptSecurity {
        pub(crate) const fn lend<'a>(&self, options: ConnectOptions<'a>) -> ConnectOptions<'a> {
            options
        }
    }

    pub(super) const unsafe fn generate(_: *mut u8, _: *mut u8) -> Outcome<i32> {
        unsupported()
    }

    pub(super) const unsafe fn public(_: *const u8, _: *mut u8) -> Outcome<i32> {
        unsupported()
    }

    pub(super) const unsafe fn create_file(_: *const c_char, _: *mut u8) -> Outcome<i32> {
        unsupported()
    }

    pub(super) const unsafe fn file_public(_: *const c_char, _: *mut u8) -> Outcome<i32> {
        unsupported()
    }

    pub(super) const unsafe fn create_token_file(_: *const c_char) -> Outcome<i32> {
        unsupported()
    }

    pub(super) const unsafe fn create_token(
        _: *const u8,
        _: *const RakwireTokenClaims,
        _: (*mut c_char, usize),
        _: *mut usize,
    ) -> Outcome<i32> {
        unsupported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{RAKWIRE_ERROR_ARGUMENT, RAKWIRE_ERROR_SECURITY, RAKWIRE_ERROR_UNSUPPORTED};
    use crate::memory::Versioned;
    use crate::types::RakwireOptions;

    /// Applies options that are zero except for what `change` sets, and returns the code of the failure.
    fn applied(change: impl FnOnce(&mut RakwireOptions)) -> Option<i32> {
        let mut from = RakwireOptions::zeroed();
        change(&mut from);
        let mut options = rakwire_native::Options::client().expect("entropy");
        // SAFETY: the pointers in the options are null, or not read because of the count beside them.
        unsafe { apply(&from, &mut options) }.err().map(|failure| failure.code)
    }

    #[test]
    fn each_security_flag_must_be_0_or_1() {
        let needs = if cfg!(feature = "secure") { RAKWIRE_ERROR_SECURITY } else { RAKWIRE_ERROR_UNSUPPORTED };
        assert_eq!(applied(|options| options.requires_identity = 1), Some(needs));
        for (secure, security, identity) in [(255, 1, 0), (128, 128, 0), (0, 255, 1), (0, 128, 128)] {
            let failure = applied(|options| {
                (options.secure, options.requires_security, options.requires_identity) =
                    (secure, security, identity);
            });
            assert_eq!(failure, Some(RAKWIRE_ERROR_ARGUMENT), "{secure} {security} {identity}");
        }
    }

    #[test]
    #[cfg(feature = "secure")]
    fn too_many_token_keys_are_refused_without_reading_them() {
        let key = [1_u8; 32];
        for count in [5, 1 << 26, u32::MAX] {
            let failure =
                applied(|options| (options.token_keys, options.token_key_count) = (key.as_ptr(), count));
            assert_eq!(failure, Some(RAKWIRE_ERROR_ARGUMENT), "{count}");
        }
    }
}

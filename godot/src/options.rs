//! The options of servers and clients, which scripts pass as a dictionary of names and values.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use rakwire_native::secure::{
    ConnectToken, MAX_CONNECT_TOKEN, PublicKey, ServerIdentity, ServerTrust, StaticKey, TokenKey,
    TokenVerifier,
};
use rakwire_native::{
    ConnectOptions, Options, Simulation, UsedTokenTable, read_key_file, read_token_key_file,
};

use crate::error::Error;

/// The default limit of queued reliable packets per connection, in bytes: 16 MiB.
pub const DEFAULT_BACKLOG: usize = 16 << 20;
/// The default time limit for closing a session: how long it waits for acknowledgements of its last packets.
pub const DEFAULT_CLOSE_WAIT: Duration = Duration::from_millis(100);

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A `bool`.
    Flag(bool),
    /// An `int`.
    Whole(i64),
    /// A `float`.
    Number(f64),
    /// A `String`.
    Text(String),
    /// A `PackedByteArray`.
    Bytes(Vec<u8>),
    /// The type name of any other value.
    Other(String),
}

impl Value {
    fn wrong(&self, name: &str, needed: &str) -> Error {
        let found = match self {
            Self::Flag(_) => "a bool",
            Self::Whole(_) => "an int",
            Self::Number(_) => "a float",
            Self::Text(_) => "a String",
            Self::Bytes(_) => "a PackedByteArray",
            Self::Other(kind) => kind,
        };
        Error::option(name, format!("it must be {needed}, not {found}"))
    }

    fn flag(&self, name: &str) -> Result<bool, Error> {
        let Self::Flag(value) = self else { return Err(self.wrong(name, "a bool")) };
        Ok(*value)
    }

    fn whole(&self, name: &str, most: i64) -> Result<i64, Error> {
        let Self::Whole(value) = self else { return Err(self.wrong(name, "an int")) };
        if (1..=most).contains(value) {
            Ok(*value)
        } else {
            Err(Error::option(name, format!("it must be 1 to {most}, not {value}")))
        }
    }

    fn seconds(&self, name: &str) -> Result<Duration, Error> {
        let seconds = match self {
            Self::Whole(value) => *value as f64,
            Self::Number(value) => *value,
            _ => return Err(self.wrong(name, "a number of seconds")),
        };
        if (0.0..=86_400.0).contains(&seconds) {
            Ok(Duration::from_secs_f64(seconds))
        } else {
            Err(Error::option(name, format!("it must be 0 to 86400 seconds, not {seconds}")))
        }
    }

    /// Returns the value as a timeout in seconds. 0 is an error, because it would close every connection immediately.
    fn timeout(&self, name: &str) -> Result<Duration, Error> {
        match self.seconds(name)? {
            Duration::ZERO => Err(Error::option(name, "it must be more than 0")),
            timeout => Ok(timeout),
        }
    }

    fn text(&self, name: &str) -> Result<&str, Error> {
        let Self::Text(value) = self else { return Err(self.wrong(name, "a String")) };
        Ok(value)
    }

    /// Returns the bytes of the value. A `String` becomes UTF-8.
    fn bytes(&self, name: &str) -> Result<&[u8], Error> {
        match self {
            Self::Text(value) => Ok(value.as_bytes()),
            Self::Bytes(value) => Ok(value),
            _ => Err(self.wrong(name, "a String or a PackedByteArray")),
        }
    }

    fn key(&self, name: &str) -> Result<[u8; 32], Error> {
        let Self::Bytes(value) = self else { return Err(self.wrong(name, "a PackedByteArray")) };
        key_bytes(value).map_err(|error| Error::option(name, error.to_string()))
    }
}

/// Converts bytes to a key.
///
/// # Errors
/// Returns an error unless there are 32 bytes.
pub fn key_bytes(bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| Error::KeyLength(bytes.len()))
}

/// The options that servers and clients share.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) password: Vec<u8>,
    pub(crate) bind_address: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) backlog: usize,
    pub(crate) simulation: Option<Simulation>,
    pub(crate) close_wait: Duration,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            password: Vec::new(),
            bind_address: None,
            timeout: None,
            backlog: DEFAULT_BACKLOG,
            simulation: None,
            close_wait: DEFAULT_CLOSE_WAIT,
        }
    }
}

impl Common {
    /// Sets an option. Returns false if it is not a shared option.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool, Error> {
        match name {
            "password" => self.password = value.bytes(name)?.to_vec(),
            "bind_address" => self.bind_address = Some(value.text(name)?.to_owned()),
            "timeout" => self.timeout = Some(value.timeout(name)?),
            "backlog" => self.backlog = value.whole(name, i64::from(u32::MAX))? as usize,
            "close_wait" => self.close_wait = value.seconds(name)?,
            "simulate" => self.simulation = Some(parsed(name, value.text(name)?)?),
            _ => return Ok(false),
        }
        if self.password.len() > 255 {
            return Err(Error::option(
                name,
                format!("it has at most 255 bytes, not {}", self.password.len()),
            ));
        }
        Ok(true)
    }

    /// Returns an error if a password is combined with connect tokens: a server with a token key checks no password.
    fn check_token(&self, has_token: bool) -> Result<(), Error> {
        if has_token && !self.password.is_empty() {
            return Err(Error::option(
                "password",
                "a connect token replaces the password; leave \"password\" out",
            ));
        }
        Ok(())
    }

    fn apply(&self, options: &mut Options) {
        // A session is polled once per frame, so an acknowledgement delay would postpone acknowledgements to
        // the next frame.
        options.config.ack_delay = Duration::ZERO;
        if let Some(timeout) = self.timeout {
            options.config.timeout = timeout;
        }
        options.simulate = self.simulation;
    }
}

fn parsed<T: std::str::FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::option(name, error.to_string()))
}

fn unknown(name: &str, known: &str) -> Error {
    Error::option(
        name,
        format!(
            "no such option; the options are bind_address, password, timeout, backlog, close_wait, simulate, {known}"
        ),
    )
}

fn key_from_file(path: &str) -> Result<StaticKey, Error> {
    read_key_file(path).map_err(|source| Error::KeyFile { path: path.to_owned(), source })
}

/// The options of a server.
#[derive(Default)]
pub struct ServerSettings {
    pub(crate) common: Common,
    pub(crate) advertisement: Vec<u8>,
    max_per_address: Option<u16>,
    key: Option<StaticKey>,
    token_key: Option<TokenKey>,
    requires_security: Option<bool>,
}

impl ServerSettings {
    /// Sets an option by its name.
    ///
    /// # Errors
    /// Returns an error if the option does not exist or the value is invalid.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), Error> {
        match name {
            "advertisement" => self.advertisement = value.bytes(name)?.to_vec(),
            "max_per_address" => self.max_per_address = Some(value.whole(name, 65_534)? as u16),
            "key" => self.key = Some(StaticKey::from_bytes(value.key(name)?)),
            "key_file" => self.key = Some(key_from_file(value.text(name)?)?),
            "token_key" => self.token_key = Some(TokenKey::from_bytes(value.key(name)?)),
            "token_key_file" => {
                let path = value.text(name)?;
                let read = read_token_key_file(path);
                self.token_key =
                    Some(read.map_err(|source| Error::KeyFile { path: path.to_owned(), source })?);
            }
            "require_security" => self.requires_security = Some(value.flag(name)?),
            _ if self.common.set(name, value)? => {}
            _ => {
                let known = "advertisement, max_per_address, key, key_file, token_key, token_key_file, require_security";
                return Err(unknown(name, known));
            }
        }
        Ok(())
    }

    /// Returns an error if options contradict each other.
    fn check(&self) -> Result<(), Error> {
        let has_key = self.key.is_some();
        if self.token_key.is_some() {
            if !has_key {
                let text = "tokens need the key of the server in \"key\" or \"key_file\"";
                return Err(Error::option("token_key", text));
            } else if self.requires_security == Some(false) {
                let text =
                    "\"token_key\" refuses plain clients, which have no token; leave one of the two out";
                return Err(Error::option("require_security", text));
            }
        } else if self.requires_security == Some(true) && !has_key {
            let text = "secure connections need the key of the server in \"key\" or \"key_file\"";
            return Err(Error::option("require_security", text));
        }
        self.common.check_token(self.token_key.is_some())
    }

    /// Returns the endpoint options.
    pub(crate) fn options(&mut self, max_clients: u16) -> Result<Options, Error> {
        self.check()?;
        let mut options = Options::server(max_clients)?;
        self.common.apply(&mut options);
        options.config.max_per_address = self.max_per_address;
        let Some(key) = self.key.take() else { return Ok(options) };
        let mut identity = ServerIdentity::new(key);
        identity.requires_security = self.requires_security.unwrap_or(true);
        if let Some(token_key) = self.token_key.take() {
            let keys = [token_key].into_iter().collect();
            identity.tokens = Some(TokenVerifier::shared(keys, Arc::new(UsedTokenTable::default())));
        }
        options.secure()?.server = Some(identity);
        Ok(options)
    }
}

/// The options of a client.
#[derive(Debug, Default)]
pub struct ClientSettings {
    pub(crate) common: Common,
    connect_timeout: Option<Duration>,
    server_key: Option<PublicKey>,
    trusts_any: bool,
    identity: Option<StaticKey>,
    token: Option<String>,
}

impl ClientSettings {
    /// Sets an option by its name.
    ///
    /// # Errors
    /// Returns an error if the option does not exist or the value is invalid.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), Error> {
        match name {
            "connect_timeout" => self.connect_timeout = Some(value.timeout(name)?),
            "server_key" => self.server_key = Some(PublicKey(value.key(name)?)),
            "trust_any_key" => self.trusts_any = value.flag(name)?,
            "identity_key" => self.identity = Some(StaticKey::from_bytes(value.key(name)?)),
            "identity_file" => self.identity = Some(key_from_file(value.text(name)?)?),
            "token" => self.token = Some(value.text(name)?.to_owned()),
            _ if self.common.set(name, value)? => {}
            _ => {
                let known = "connect_timeout, server_key, trust_any_key, identity_key, identity_file, token";
                return Err(unknown(name, known));
            }
        }
        Ok(())
    }

    fn trust(&self) -> Option<ServerTrust> {
        let any = self.trusts_any.then_some(ServerTrust::Any);
        self.server_key.map(ServerTrust::Key).or(any)
    }

    /// Returns an error if options contradict each other.
    fn check(&self) -> Result<(), Error> {
        let trust_name = if self.server_key.is_some() { "server_key" } else { "trust_any_key" };
        if self.server_key.is_some() && self.trusts_any {
            let text = "\"trust_any_key\" would accept any other key; leave one of the two out";
            return Err(Error::option("server_key", text));
        } else if self.token.is_some() && self.trust().is_some() {
            let text = format!("the token contains the server's key; leave \"{trust_name}\" out");
            return Err(Error::option(trust_name, text));
        } else if self.token.is_some() && self.identity.is_none() {
            let text = "it needs the key of the player in \"identity_key\" or \"identity_file\"";
            return Err(Error::option("token", text));
        } else if self.token.is_none() && self.identity.is_some() && self.trust().is_none() {
            let text = "it needs a secure connection: set \"server_key\" or \"trust_any_key\"";
            return Err(Error::option("identity_key", text));
        }
        self.common.check_token(self.token.is_some())
    }

    /// Returns the endpoint options.
    pub(crate) fn options(&self) -> Result<Options, Error> {
        self.check()?;
        let mut options = Options::client()?;
        self.common.apply(&mut options);
        if self.trust().is_some() || self.token.is_some() {
            options.secure()?;
        }
        Ok(options)
    }

    /// Calls `connect` with the options of an attempt to `host`, a host name with a port. A connect token may list
    /// several servers; the one named `host` is used, or else the first.
    pub(crate) fn attempt<T>(
        &self,
        host: &str,
        connect: impl FnOnce(&ConnectOptions<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let plain = ConnectOptions {
            password: &self.common.password,
            connect_timeout: self.connect_timeout,
            trust: self.trust(),
            identity: self.identity.as_ref(),
            ..ConnectOptions::default()
        };
        let (Some(token), Some(identity)) = (&self.token, &self.identity) else { return connect(&plain) };
        let unreadable = |error: &dyn Display| Error::Token(error.to_string());
        let mut buffer = [0; MAX_CONNECT_TOKEN];
        let token = ConnectToken::from_text(token, &mut buffer).map_err(|error| unreadable(&error))?;
        let named = token.servers.iter().find(|server| server.name == host);
        let server =
            named.or_else(|| token.servers.first()).ok_or_else(|| unreadable(&"it names no server"))?;
        connect(&ConnectOptions {
            connect_timeout: self.connect_timeout,
            ..ConnectOptions::connect_token(&token, server, identity)
        })
    }
}

#[cfg(test)]
mod tests;

//! Reads the options of endpoints and of connection attempts from Python objects.

use std::time::Duration;

use pyo3::prelude::*;
use rakwire_native::{
    ConnectError, ConnectOptions, Connection, CookiePolicy, Endpoint, Options, OutOfBand, Simulation, lookup,
};

use crate::errors;
use crate::message::Bytes;
use crate::security::{Credentials, Known, Security};

pub(crate) fn seconds(time: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(time)
        .map_err(|_| errors::value(format!("a time must be 0 or more seconds, not {time}")))
}

/// The options of an endpoint, read from rakwire.Options.
#[derive(FromPyObject)]
pub(crate) struct BindOptions<'py> {
    max_incoming: u16,
    pub(crate) password: Bytes<'py>,
    pub(crate) advertisement: Bytes<'py>,
    out_of_band: bool,
    defer_incoming: bool,
    timeout: Option<f64>,
    close_timeout: Option<f64>,
    handshake_timeout: Option<f64>,
    mtu: Option<u16>,
    max_message_length: Option<u32>,
    progress_interval: u32,
    protocol_version: Option<u8>,
    accepted_versions: Option<Vec<u8>>,
    outgoing_limit: Option<u64>,
    cookies: String,
    max_per_address: Option<u16>,
    max_per_network: Option<u16>,
    trusted_proxies: Vec<String>,
    simulate: Option<String>,
    security: Option<Security>,
}

/// Sets a field of the configuration if the option is not None.
macro_rules! set {
    ($($to:expr => $from:expr),+ $(,)?) => {
        $( if let Some(value) = $from { $to = value; } )+
    };
}

impl BindOptions<'_> {
    pub(crate) fn read(&self) -> PyResult<Options> {
        let mut options = Options::server(self.max_incoming).map_err(|error| errors::system(&error))?;
        let config = &mut options.config;
        set!(
            config.timeout => self.timeout.map(seconds).transpose()?,
            config.close_timeout => self.close_timeout.map(seconds).transpose()?,
            config.handshake_timeout => self.handshake_timeout.map(seconds).transpose()?,
            config.mtu => self.mtu,
            config.max_message_len => self.max_message_length,
            config.protocol_version => self.protocol_version,
        );
        config.progress_interval = self.progress_interval;
        config.outgoing_limit = self.outgoing_limit;
        config.max_per_address = self.max_per_address;
        config.max_per_network = self.max_per_network;
        config.out_of_band = if self.out_of_band { OutOfBand::Accept } else { OutOfBand::Refuse };
        config.cookies = cookies(&self.cookies)?;
        if let Some(versions) = &self.accepted_versions {
            if versions.len() > 8 {
                return Err(errors::value("accepted_versions must have at most 8 versions"));
            }
            config.accepted_versions = versions.iter().copied().collect();
        }
        options.defer_incoming = self.defer_incoming;
        for proxy in &self.trusted_proxies {
            let network = proxy.parse().map_err(|_| {
                errors::value(format!(
                    "trusted_proxies: {proxy:?} is invalid; use a network such as 10.0.0.0/8"
                ))
            })?;
            options.trusted_proxies.push(network);
        }
        options.simulate = self.simulate.as_deref().map(simulation).transpose()?;
        if let Some(security) = &self.security {
            security.apply(&mut options)?;
        }
        Ok(options)
    }
}

fn simulation(text: &str) -> PyResult<Simulation> {
    text.parse().map_err(|error| errors::value(format!("simulate: {error}")))
}

fn cookies(policy: &str) -> PyResult<CookiePolicy> {
    match policy {
        "automatic" => Ok(CookiePolicy::Automatic),
        "required" => Ok(CookiePolicy::Required),
        "off" => Ok(CookiePolicy::Off),
        _ => Err(errors::value("cookies must be \"automatic\", \"required\" or \"off\"")),
    }
}

/// The options of a connection attempt, read from a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ConnectArguments<'py> {
    password: Bytes<'py>,
    timeout: Option<f64>,
    protocol_version: Option<u8>,
    credentials: Credentials<'py>,
}

/// The options of a connection attempt, without Python objects.
pub(crate) struct Attempt {
    password: Vec<u8>,
    timeout: Option<Duration>,
    protocol_version: Option<u8>,
    known: Known,
}

/// The reason why an attempt failed.
pub(crate) enum Failure {
    Resolve(std::io::Error),
    Connect(ConnectError),
}

impl ConnectArguments<'_> {
    pub(crate) fn read(self) -> PyResult<Attempt> {
        Ok(Attempt {
            password: self.password.into_vec(),
            timeout: self.timeout.map(seconds).transpose()?,
            protocol_version: self.protocol_version,
            known: self.credentials.read()?,
        })
    }
}

impl Attempt {
    /// Connects to `target`. Without a target, tries the servers in the connect token in order until one accepts.
    pub(crate) async fn run(
        &self,
        endpoint: &Endpoint,
        target: Option<&str>,
    ) -> Result<Connection, (String, Failure)> {
        let options = ConnectOptions {
            password: &self.password,
            trust: self.known.trust,
            identity: self.known.identity.as_ref(),
            identity_data: &self.known.identity_data,
            protocol_version: self.protocol_version,
            connect_timeout: self.timeout,
            ..ConnectOptions::default()
        };
        let Some(token) = &self.known.token else {
            return connect(endpoint, target.unwrap_or_default(), &options).await;
        };
        let mut failed = (String::new(), Failure::Connect(ConnectError::UnassignedAddress));
        for (key, name) in &token.servers {
            let trust = Some(rakwire_native::secure::ServerTrust::Key(*key));
            let options = ConnectOptions { password: &token.sealed, trust, ..options };
            match connect(endpoint, target.unwrap_or(name), &options).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

async fn connect(
    endpoint: &Endpoint,
    target: &str,
    options: &ConnectOptions<'_>,
) -> Result<Connection, (String, Failure)> {
    let failed = |failure| (target.to_owned(), failure);
    let addresses = lookup(target).await.map_err(|error| failed(Failure::Resolve(error)))?;
    endpoint.connect_any(&addresses, options).await.map_err(|error| failed(Failure::Connect(error)))
}

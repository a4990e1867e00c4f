//! The connection between two machines that transfer files.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rakwire::endpoint::{Plugin, PluginHost};
use rakwire_native::Simulation;
use rakwire_native::endpoint::SharedHook;
use rakwire_native::raknet::{
    Capacity, ConnectError, ConnectFailure, ConnectOptions, Connection, Endpoint, Options, RakNet,
};
use rakwire_native::secure::ServerIdentity;

use crate::failure::Failure;
use crate::host;
use crate::keys::{self, TrustArgument};
use crate::password::PasswordArguments;

/// The poll interval of a transfer.
pub(crate) const POLL: Duration = Duration::from_millis(20);
/// The maximum number of peers connected at the same time.
pub(crate) const PEERS: u16 = 16;
/// The memory for messages: up to 16 connections, and 64 MiB in blocks of 1 KiB.
const CAPACITY: Capacity = Capacity { connections: PEERS as usize, blocks: 65_536, block_size: 1_024 };

/// The options for connecting to the other side, or for waiting for it.
#[derive(Debug, Args)]
pub(crate) struct Link {
    /// The other machine, such as 192.0.2.1:19132 or example.org:19132, which runs the other command with --listen
    #[arg(value_name = "HOST:PORT", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) target: Option<String>,
    /// Wait for the other side on this address instead, such as 0.0.0.0:19132; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Time to wait for the connection, and for an answer from the remote machine
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = host::seconds)]
    pub(crate) timeout: Duration,
    /// The maximum transfer rate in bytes per second
    #[arg(long, value_name = "BYTES")]
    pub(crate) rate: Option<NonZeroU32>,
    #[command(flatten)]
    password: PasswordArguments,
    /// Require a secure connection to a server with this public key or key hash; or "any", which protects against
    /// passive eavesdroppers only
    #[arg(long, value_name = "KEY", conflicts_with = "listen")]
    server_key: Option<TrustArgument>,
    /// Present the identity in this file to the server (see keygen)
    #[arg(long, value_name = "FILE", requires = "server_key")]
    identity: Option<PathBuf>,
    /// Require secure connections, with the key in this file (see keygen)
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    secure: Option<PathBuf>,
    /// Require that clients present an identity
    #[arg(long, requires = "secure")]
    require_identity: bool,
    /// Simulate a bad network in both directions: loss=5%,latency=50ms,jitter=10ms, each optional
    #[arg(long, value_name = "NETWORK")]
    simulate: Option<Simulation>,
}

impl Link {
    /// Binds an endpoint with a plugin, to listen or to connect to the other side.
    pub(crate) async fn bind<T: Plugin<RakNet> + Send + 'static>(
        &self,
        plugin: &SharedHook<T>,
    ) -> Result<Endpoint, Failure> {
        let mut host = PluginHost::<_, 1>::new();
        host.attach::<RakNet>(plugin.clone()).map_err(Failure::runtime)?;
        let address = match (&self.listen, &self.target) {
            (Some(listen), _) => listen.as_str(),
            (None, Some(target)) => host::unspecified_address_for(&host::resolve_all(target).await?),
            (None, None) => return Err(Failure::usage("give HOST:PORT, or --listen ADDR")),
        };
        let bound = Endpoint::bind_with_hook(address, self.options()?, |_| host).await;
        let endpoint = bound.map_err(|error| host::bind_failure(address, &error))?;
        let refuse = |error| Failure::usage(format!("the text of --password is too long: {error}"));
        endpoint.set_password(self.password.text()?.as_bytes()).map_err(refuse)?;
        Ok(endpoint)
    }

    fn options(&self) -> Result<Options, Failure> {
        let mut options = if self.listen.is_some() { Options::server(PEERS) } else { Options::client() }
            .map_err(host::no_entropy)?;
        options.capacity = CAPACITY;
        options.simulate = self.simulate;
        if let Some(file) = &self.secure {
            let mut identity = ServerIdentity::new(keys::read("--secure", file)?);
            identity.requires_security = true;
            identity.requires_identity = self.require_identity;
            options.secure().map_err(host::no_entropy)?.server = Some(identity);
        }
        if self.server_key.is_some() {
            let identity = self.identity.as_deref().map(|file| keys::read("--identity", file)).transpose()?;
            options.secure().map_err(host::no_entropy)?.identity = identity;
        }
        Ok(options)
    }

    /// Connects to the other side.
    pub(crate) async fn connect(&self, endpoint: &Endpoint, target: &str) -> Result<Connection, Failure> {
        let servers = host::resolve_all(target).await?;
        let password = self.password.text()?;
        let attempt = async |server, share| {
            let options = ConnectOptions {
                password: password.as_bytes(),
                trust: self.server_key.map(|argument| argument.0),
                connect_timeout: Some(share),
                ..ConnectOptions::default()
            };
            endpoint.connect_with(server, &options).await
        };
        let no_answer = ConnectError::Failed(ConnectFailure::NoAnswer);
        let was_unanswered = host::was_unanswered::<RakNet>;
        let connected = host::try_each(&servers, self.timeout, no_answer, was_unanswered, attempt).await;
        connected.map_err(|error| {
            let advice = if let ConnectError::Failed(failure) = error { advice(failure) } else { "" };
            Failure::runtime(format!("cannot connect to {}: {error}{advice}", host::list(&servers)))
        })
    }
}

/// Returns the fix for a failed attempt, to append to the error message.
fn advice(failure: ConnectFailure) -> &'static str {
    if failure == ConnectFailure::InvalidPassword {
        "; set it with --password"
    } else if failure == ConnectFailure::SecurityRequired {
        "; give its key with --server-key"
    } else if failure == ConnectFailure::ServerWithoutSecurity {
        "; connect without --server-key if that is acceptable"
    } else if failure == ConnectFailure::IdentityRequired {
        "; present one with --identity"
    } else if failure == ConnectFailure::NoAnswer {
        "; check the address, and that UDP is not blocked, or allow more time with --timeout"
    } else if failure == ConnectFailure::Unreachable {
        "; check the address and the port, and that the other command runs there with --listen"
    } else if failure == ConnectFailure::HandshakeTimeout {
        "; allow more time with --timeout"
    } else {
        ""
    }
}

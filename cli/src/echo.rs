//! `rakwire echo`: a server that echoes every user message.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rakwire::endpoint::Protocol;
use rakwire::wire::id;
use rakwire_native::endpoint::{Connection, Endpoint};
use rakwire_native::secure::{ServerIdentity, TokenKeys, TokenVerifier};
use rakwire_native::sqlite_log::Sample;
use rakwire_native::{
    AddressPattern, Capacity, CookiePolicy, SetError, Simulation, UsedTokenTable, game_protocol, raknet,
};
use tracing::info;

use crate::capture::{Capture, Statistics};
use crate::failure::Failure;
use crate::host;
use crate::keys;
use crate::protocol::{PongFramingArgument, ProtocolArgument, reject_options_of_raknet};

/// The protocol versions that are accepted by default.
const PROTOCOLS: [u8; 3] = [6, 10, 11];
/// The default data of pongs.
const ADVERTISEMENT: &str = "rakwire echo";
/// The least memory for messages: one may have a quarter of it, 32 MB.
const BLOCKS: usize = 131_072;
/// The size of the receive queue of a connection; its sender has to wait when it is full.
const RECEIVE_QUEUE: usize = 2 << 20;

/// Echoes every user message (first byte 0x86 and above) with its reliability and channel.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The address to listen on, as 127.0.0.1:19132; port 0 picks a free one
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// A RakNet protocol version to accept, at most eight (default: 6, 10 and 11); or "game" for the Game Protocol
    #[arg(long = "protocol", value_name = "N|game", num_args = 1.., value_delimiter = ',')]
    protocols: Vec<ProtocolArgument>,
    /// The maximum number of clients
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=65_000))]
    max_connections: u16,
    /// Do not use cookies, for clients that do not support them, among them those of the original with its security
    #[arg(long)]
    no_cookies: bool,
    /// Use cookies only under load: let N clients in without one, and N more in each 10 s
    #[arg(long, value_name = "N", conflicts_with = "no_cookies")]
    cookies_under_load: Option<u16>,
    /// The data of pongs, at most 399 bytes, or 397 with a length before them
    #[arg(long, value_name = "TEXT", default_value = ADVERTISEMENT)]
    advertise: String,
    /// What stands before the data of pongs: nothing, or their length (default: the length if every --protocol is above 6)
    #[arg(long, value_enum, value_name = "FRAMING")]
    pong_framing: Option<PongFramingArgument>,
    /// The largest MTU to offer, in bytes including IP and UDP headers
    #[arg(long, value_name = "N", default_value_t = 1_492, value_parser = clap::value_parser!(u16).range(576..=1_492))]
    mtu: u16,
    /// The password that clients need, at most 255 bytes
    #[arg(long, value_name = "TEXT", default_value = "")]
    password: String,
    /// Require secure connections, with the key in this file (see keygen)
    #[arg(long, value_name = "FILE")]
    secure: Option<PathBuf>,
    /// Write the keys of secure connections to this file, behind what it has: with it (see decode) everybody can read them
    #[arg(long, value_name = "FILE", requires = "secure")]
    key_log: Option<PathBuf>,
    /// Let clients without security in too
    #[arg(long, requires = "secure")]
    allow_plain: bool,
    /// Require that clients show an identity
    #[arg(long, requires = "secure", conflicts_with = "allow_plain")]
    require_identity: bool,
    /// Require connect tokens that were made with the key in this file (see token) instead of a password; up to four files
    #[arg(long = "token-key", value_name = "FILE", requires = "secure", conflicts_with_all = ["allow_plain", "password"])]
    token_keys: Vec<PathBuf>,
    /// Addresses that may not connect: 192.0.2.1, 192.0.2.* or 2001:db8::/32; can be repeated
    #[arg(long = "ban", value_name = "PATTERN")]
    bans: Vec<AddressPattern>,
    /// Simulate a bad network in both directions: loss=5%,latency=50ms,jitter=10ms,duplicate=1%,reorder=2%,seed=7, each
    /// optional
    #[arg(long, value_name = "NETWORK")]
    simulate: Option<Simulation>,
    #[command(flatten)]
    capture: Capture,
}

/// The connections of the Game Protocol that may wait to be accepted: all that there can be.
const BACKLOG: usize = 65_000;

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { listen, capture, .. } = &arguments;
    if arguments.protocols.contains(&ProtocolArgument::GameProtocol) {
        let bound = capture.bind(listen, game_protocol_options(&arguments)?).await?;
        return serve(bound, |_| true, |connection| info!(remote = %connection.remote(), "connected")).await;
    }
    let bound = capture.bind(listen, raknet_options(&arguments)?).await?;
    set_access(&bound.0, &arguments)?;
    let is_user_message = |message: &[u8]| message.first().is_some_and(|first| *first >= id::USER);
    serve(bound, is_user_message, |connection| {
        let user = connection.accepted_token().map(|token| token.user_id);
        info!(remote = %connection.remote(), guid = %connection.guid(), user, "connected");
    })
    .await
}

/// Sets the advertisement and who may connect.
fn set_access(endpoint: &raknet::Endpoint, arguments: &Arguments) -> Result<(), Failure> {
    let refuse =
        |option: &str, error: SetError| Failure::usage(format!("the text of {option} is too long: {error}"));
    let advertised = endpoint.set_advertisement(arguments.advertise.as_bytes());
    advertised.map_err(|error| refuse("--advertise", error))?;
    let protected = endpoint.set_password(arguments.password.as_bytes());
    protected.map_err(|error| refuse("--password", error))?;
    for pattern in &arguments.bans {
        endpoint.ban(*pattern, None).map_err(Failure::usage)?;
    }
    Ok(())
}

fn game_protocol_options(arguments: &Arguments) -> Result<game_protocol::Options, Failure> {
    reject_options_of_raknet(&[
        ("another --protocol", arguments.protocols.len() > 1),
        ("--no-cookies", arguments.no_cookies),
        ("--cookies-under-load", arguments.cookies_under_load.is_some()),
        ("--advertise", arguments.advertise != ADVERTISEMENT),
        ("--pong-framing", arguments.pong_framing.is_some()),
        ("--mtu", arguments.mtu != rakwire::wire::MAX_MTU),
        ("--password", !arguments.password.is_empty()),
        ("--ban", !arguments.bans.is_empty()),
        ("--secure", arguments.secure.is_some()),
    ])?;
    let mut options = game_protocol::Options::server(arguments.max_connections).map_err(host::no_entropy)?;
    options.backlog = BACKLOG;
    options.simulate = arguments.simulate;
    Ok(options)
}

fn raknet_options(arguments: &Arguments) -> Result<raknet::Options, Failure> {
    let mut options = raknet::Options::server(arguments.max_connections).map_err(host::no_entropy)?;
    let connections = usize::from(arguments.max_connections);
    options.capacity = Capacity { connections, blocks: BLOCKS.max(64 * connections), block_size: 1_024 };
    options.receive_queue = RECEIVE_QUEUE;
    options.config.mtu = arguments.mtu;
    options.config.pong_framing = arguments.pong_framing.map(Into::into);
    options.simulate = arguments.simulate;
    if arguments.no_cookies {
        options.config.cookies = CookiePolicy::Off;
    }
    if let Some(unvalidated) = arguments.cookies_under_load {
        options.config.cookies = CookiePolicy::UnderLoad { unvalidated };
    }
    if let Some(file) = &arguments.secure {
        let security = options.secure().map_err(host::no_entropy)?;
        security.server = Some(identity(arguments, file)?);
        keys::log(security, arguments.key_log.as_deref())?;
    }
    let versions = arguments.protocols.iter().filter_map(|protocol| match protocol {
        ProtocolArgument::RakNet(version) => Some(*version),
        ProtocolArgument::GameProtocol => None,
    });
    let versions: Vec<u8> = versions.collect();
    let versions = if versions.is_empty() { &PROTOCOLS[..] } else { &versions };
    options.config.accepted_versions.clear();
    options
        .config
        .accepted_versions
        .extend_from_slice(versions)
        .map_err(|_| Failure::usage("more than eight protocol versions; use at most eight"))?;
    Ok(options)
}

/// The key of the server, and what it asks of clients.
fn identity(arguments: &Arguments, file: &Path) -> Result<ServerIdentity, Failure> {
    let mut identity = ServerIdentity::new(keys::read("--secure", file)?);
    identity.requires_security = !arguments.allow_plain;
    identity.requires_identity = arguments.require_identity;
    let mut token_keys = TokenKeys::new();
    for file in &arguments.token_keys {
        let key = keys::read_token_key("--token-key", file)?;
        token_keys.push(key).map_err(|_| Failure::usage("more than four --token-key; use at most four"))?;
    }
    if !token_keys.is_empty() {
        identity.tokens = Some(TokenVerifier::shared(token_keys, Arc::new(UsedTokenTable::default())));
    }
    Ok(identity)
}

/// Echoes what arrives at an endpoint until a signal ends the program: the messages that `is_echoed` picks, as they
/// travelled.
async fn serve<P: Protocol<ConnectionStats: Sample>>(
    (endpoint, statistics): (Endpoint<P>, Statistics),
    is_echoed: fn(&[u8]) -> bool,
    log_connected: fn(&Connection<P>),
) -> Result<(), Failure> {
    start_logging();
    host::serve(&endpoint, |connection| {
        log_connected(&connection);
        statistics.watch(&connection);
        tokio::spawn(echo(connection, is_echoed));
    })
    .await?;
    info!("closing");
    endpoint.close().await;
    statistics.finish().await
}

async fn echo<P: Protocol>(connection: Connection<P>, is_echoed: fn(&[u8]) -> bool) {
    let remote = connection.remote();
    let (mut messages, mut bytes) = (0_u64, 0_u64);
    while let Some(message) = connection.recv().await {
        if !is_echoed(&message.bytes) {
            continue;
        }
        if let Err(error) = connection.send(&message.bytes, message.delivery).await {
            info!(%remote, %error, "a message was not echoed");
            continue;
        }
        messages += 1;
        bytes += message.bytes.len() as u64;
    }
    let reason = connection.closed_reason().map_or_else(String::new, |reason| reason.to_string());
    info!(%remote, messages, bytes, %reason, "disconnected");
}

fn start_logging() {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}

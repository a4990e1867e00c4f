//! `rakwire echo` over UDP.

use std::path::Path;
use std::sync::Arc;

use rakwire::endpoint::Protocol;
use rakwire::wire::id;
use rakwire_extras::sqlite_log::Sample;
use rakwire_native::endpoint::{Connection, Endpoint};
use rakwire_native::secure::{PublicKey, ServerIdentity, TokenKeys, TokenVerifier};
use rakwire_native::{Capacity, CookiePolicy, SecurePeer, SetError, UsedTokenTable, game_protocol, raknet};
use tracing::field::display;
use tracing::info;

use super::answer::{echo, start_logging};
use super::arguments::{ADVERTISEMENT, Arguments};
use crate::capture::Statistics;
use crate::connection::PathMtu;
use crate::failure::Failure;
use crate::host;
use crate::keys;
use crate::protocol::{ProtocolArgument, reject_options_of_raknet};

/// The protocol versions accepted by default.
const PROTOCOLS: [u8; 3] = [6, 10, 11];
/// The minimum of message memory; one message may use a quarter of it, 32 MB.
const BLOCKS: usize = 131_072;
/// The size of the receive queue of a connection. A full queue stops its sender.
const RECEIVE_QUEUE: usize = 2 << 20;

/// The backlog of the Game Protocol: as many connections as there can be.
const BACKLOG: usize = 65_000;

/// Echoes with either protocol until a signal ends the program.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { listen, capture, .. } = arguments;
    if arguments.protocols.contains(&ProtocolArgument::GameProtocol) {
        let bound = capture.bind(listen, game_protocol_options(arguments)?).await?;
        return serve(bound, |_| true, |connection| info!(remote = %connection.remote(), "connected")).await;
    }
    let bound = capture.bind(listen, raknet_options(arguments)?).await?;
    set_access(&bound.0, arguments)?;
    let is_user_message = |message: &[u8]| message.first().is_some_and(|first| *first >= id::USER);
    serve(bound, is_user_message, |connection| {
        let user = connection.accepted_token().map(|token| token.user_id);
        let (identity, data) = identity_of(connection).unzip();
        let (identity, data) = (identity.map(display), data.map(display));
        let mtu = connection.mtu();
        info!(remote = %connection.remote(), guid = %connection.guid(), mtu, user, identity, data, "connected");
        tokio::spawn(log_mtu(connection.clone()));
    })
    .await
}

/// Logs each change of the MTU until the connection is closed.
async fn log_mtu(connection: raknet::Connection) {
    while let Some(mtu) = connection.mtu_changed().await {
        info!(remote = %connection.remote(), mtu, "the MTU has changed");
    }
}

/// Returns the public key that a client presented, and the text that came with it.
fn identity_of(connection: &raknet::Connection) -> Option<(PublicKey, String)> {
    let Some(SecurePeer::Client(Some(shown))) = connection.secure_peer() else { return None };
    Some((shown.key, shown.data().escape_ascii().to_string()))
}

/// Sets the advertisement and the access rules.
fn set_access(endpoint: &raknet::Endpoint, arguments: &Arguments) -> Result<(), Failure> {
    let refuse =
        |option: &str, error: SetError| Failure::usage(format!("the text of {option} is too long: {error}"));
    let advertised = endpoint.set_advertisement(arguments.advertise.as_bytes());
    advertised.map_err(|error| refuse("--advertise", error))?;
    let protected = endpoint.set_password(arguments.password.text()?.as_bytes());
    protected.map_err(|error| refuse("--password", error))?;
    for pattern in &arguments.bans {
        endpoint.ban(*pattern, None).map_err(Failure::usage)?;
    }
    Ok(())
}

fn game_protocol_options(arguments: &Arguments) -> Result<game_protocol::Options, Failure> {
    reject_options_of_raknet(&[
        ("a second --protocol", arguments.protocols.len() > 1),
        ("--no-cookies", arguments.no_cookies),
        ("--cookies-under-load", arguments.cookies_under_load.is_some()),
        ("--advertise", arguments.advertise != ADVERTISEMENT),
        ("--pong-framing", arguments.pong_framing.is_some()),
        ("--mtu", arguments.mtu != rakwire::wire::MAX_MTU),
        ("--password", arguments.password.is_given()),
        ("--ban", !arguments.bans.is_empty()),
        ("--secure", arguments.secure.is_some()),
    ])?;
    let mut options = game_protocol::Options::server(arguments.max_connections).map_err(host::no_entropy)?;
    options.backlog = BACKLOG;
    options.simulate = arguments.simulate;
    options.trusted_proxies.clone_from(&arguments.trusted_proxies);
    options.config.max_per_address = arguments.max_per_address;
    options.config.max_per_network = arguments.max_per_network;
    Ok(options)
}

fn raknet_options(arguments: &Arguments) -> Result<raknet::Options, Failure> {
    let mut options = raknet::Options::server(arguments.max_connections).map_err(host::no_entropy)?;
    let connections = usize::from(arguments.max_connections);
    options.capacity = Capacity { connections, blocks: BLOCKS.max(64 * connections), block_size: 1_024 };
    options.receive_queue = RECEIVE_QUEUE;
    options.config.mtu = arguments.mtu;
    options.config.max_per_address = arguments.max_per_address;
    options.config.max_per_network = arguments.max_per_network;
    // The memory is the only limit on the message size.
    options.config.max_message_len = u32::MAX;
    options.config.pong_framing = arguments.pong_framing.map(Into::into);
    options.simulate = arguments.simulate;
    options.trusted_proxies.clone_from(&arguments.trusted_proxies);
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
        .map_err(|_| Failure::usage("more than eight --protocol versions; give at most eight"))?;
    Ok(options)
}

/// Builds the server's key and its requirements for clients.
fn identity(arguments: &Arguments, file: &Path) -> Result<ServerIdentity, Failure> {
    let mut identity = ServerIdentity::new(keys::read("--secure", file)?);
    identity.requires_security = !arguments.allow_plain;
    identity.requires_identity = arguments.require_identity;
    let mut token_keys = TokenKeys::new();
    for file in &arguments.token_keys {
        let key = keys::read_token_key("--token-key", file)?;
        token_keys
            .push(key)
            .map_err(|_| Failure::usage("more than four --token-key files; give at most four"))?;
    }
    if !token_keys.is_empty() {
        identity.tokens = Some(TokenVerifier::shared(token_keys, Arc::new(UsedTokenTable::default())));
    }
    Ok(identity)
}

/// Echoes the messages that `is_echoed` selects, with their delivery, until a signal ends the program.
async fn serve<P: Protocol<ConnectionStats: Sample + PathMtu>>(
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

//! `rakwire send` with RakNet.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rakwire::wire::id;
use rakwire_native::raknet::{
    Capacity, Channel, ConnectError, ConnectFailure, ConnectOptions, Connection, Delivery, Endpoint, Options,
    PingError, RakNet, Reliability,
};
use rakwire_native::secure::{ConnectToken, MAX_CONNECT_TOKEN, ServerTrust};

use super::arguments::{Arguments, ReliabilityArgument};
use super::exchange::{Request, exchange};
use crate::failure::Failure;
use crate::{hex, host, keys};

/// The first byte of a text message: a user message, which every peer passes to its application.
const TEXT_ID: u8 = 0xFE;
/// The timeout of the ping that precedes the first attempt.
const PONG_TIMEOUT: Duration = Duration::from_secs(1);
/// The timeout for the server's acknowledgement of the disconnection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends with this protocol version, or with the version of the server.
pub(super) async fn run(arguments: &Arguments, version: Option<u8>) -> Result<(), Failure> {
    let prefix = prefix(arguments)?;
    let request = request(arguments, &prefix, delivery(arguments)?);
    let servers = host::resolve_all(&arguments.target).await?;
    let any = host::unspecified_address_for(&servers);
    let (endpoint, statistics) = arguments.capture.bind(any, options(arguments)?).await?;
    let result = match connect(&endpoint, &servers, version, arguments).await {
        Ok(connection) => {
            statistics.watch(&connection);
            exchange(&connection, &request).await
        }
        Err(failure) => Err(failure),
    };
    endpoint.close().await;
    result.and(statistics.finish().await)
}

/// Returns the message to send, over UDP or TCP.
pub(super) fn request<'a>(
    arguments: &Arguments,
    prefix: &'a [u8],
    delivery: Delivery,
) -> Request<'a, Delivery> {
    Request {
        prefix,
        text_at: usize::from(!arguments.raw),
        size: arguments.size.and_then(|size| usize::try_from(size).ok()),
        count: arguments.count,
        delivery,
        timeout: arguments.timeout,
    }
}

fn delivery(arguments: &Arguments) -> Result<Delivery, Failure> {
    let reliability = match arguments.reliability.unwrap_or(ReliabilityArgument::ReliableOrdered) {
        ReliabilityArgument::Unreliable => Reliability::Unreliable,
        ReliabilityArgument::UnreliableSequenced => Reliability::UnreliableSequenced,
        ReliabilityArgument::Reliable => Reliability::Reliable,
        ReliabilityArgument::ReliableOrdered => Reliability::ReliableOrdered,
        ReliabilityArgument::ReliableSequenced => Reliability::ReliableSequenced,
    };
    let channel =
        Channel::new(arguments.channel).ok_or_else(|| Failure::usage("the channel must be 0 to 31"))?;
    Ok(Delivery::new(reliability).on(channel))
}

/// Returns the prefix of every message.
pub(super) fn prefix(arguments: &Arguments) -> Result<Vec<u8>, Failure> {
    let prefix = if !arguments.raw {
        [&[TEXT_ID], arguments.text.as_bytes()].concat()
    } else if arguments.text.starts_with("0x") || arguments.text.starts_with("0X") {
        hex::parse(&arguments.text).map_err(|error| Failure::usage(format!("TEXT is not hex: {error}")))?
    } else {
        arguments.text.as_bytes().to_vec()
    };
    match prefix.first() {
        None => Err(Failure::usage("a message cannot be empty; add TEXT")),
        Some(first) if !arguments.tcp && *first < id::USER => Err(Failure::usage(format!(
            "the first byte is {first:#04x}, and only 0x86 and above are echoed; remove --raw or begin with --raw 0xfe"
        ))),
        Some(_) if arguments.size.is_some_and(|size| size < prefix.len() as u64) => Err(Failure::usage(
            format!("the message has {} bytes; use a --size that is not smaller", prefix.len()),
        )),
        Some(_) => Ok(prefix),
    }
}

fn options(arguments: &Arguments) -> Result<Options, Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    if arguments.server_key.is_some() || arguments.token.is_some() {
        let identity =
            arguments.identity.as_deref().map(|file| keys::read("--identity", file)).transpose()?;
        let security = options.secure().map_err(host::no_entropy)?;
        security.identity = identity;
        keys::log(security, arguments.key_log.as_deref())?;
    }
    options.config.close_timeout = CLOSE_TIMEOUT;
    options.capacity = Capacity { connections: 2, blocks: 131_072, block_size: 1_024 };
    options.config.max_message_len = u32::MAX;
    Ok(options)
}

/// Connects to the first address at which a server answers, within `--timeout`.
async fn connect(
    endpoint: &Endpoint,
    servers: &[SocketAddr],
    version: Option<u8>,
    arguments: &Arguments,
) -> Result<Connection, Failure> {
    let mut buffer = [0; MAX_CONNECT_TOKEN];
    let password = arguments.password.text()?;
    let (password, trust) = credentials(arguments, &password, &mut buffer)?;
    let options = ConnectOptions {
        password,
        trust,
        identity_data: arguments.identity_data.as_bytes(),
        protocol_version: version,
        ..ConnectOptions::default()
    };
    let no_answer = (None, ConnectError::Failed(ConnectFailure::NoAnswer));
    let was_unanswered = |(_, error): &(_, ConnectError)| host::was_unanswered::<RakNet>(error);
    let attempt = async |server, share| {
        attempt(endpoint, server, &options, share).await.map_err(|error| (Some(server), error))
    };
    let connected = host::try_each(servers, arguments.timeout, no_answer, was_unanswered, attempt).await;
    connected.map_err(|(refusing, error)| {
        // If a server has answered, the message names only this server.
        let refusing = refusing.filter(|_| !host::was_unanswered::<RakNet>(&error));
        explain_error(refusing.as_ref().map_or(servers, std::slice::from_ref), error, arguments.timeout)
    })
}

/// Connects to one address; without `--protocol` it uses the version of the server.
async fn attempt(
    endpoint: &Endpoint,
    server: SocketAddr,
    options: &ConnectOptions<'_>,
    timeout: Duration,
) -> Result<Connection, ConnectError> {
    let start = Instant::now();
    if options.protocol_version.is_none() {
        // The endpoint learns the version from the pong, if there is one. Some servers block an address for a while
        // after it has tried another version.
        let pong = endpoint.ping(server, PONG_TIMEOUT.min(timeout / 2)).await;
        if pong.err() == Some(PingError::Unreachable) {
            return Err(ConnectError::Failed(ConnectFailure::Unreachable));
        }
    }
    let left = timeout.saturating_sub(start.elapsed());
    endpoint.connect_with(server, &ConnectOptions { connect_timeout: Some(left), ..*options }).await
}

fn explain_error(servers: &[SocketAddr], error: ConnectError, timeout: Duration) -> Failure {
    if error == ConnectError::PasswordTooLong {
        return Failure::usage("the text of --password is longer than 255 bytes; shorten it");
    }
    if error == ConnectError::InvalidIdentityData {
        return Failure::usage("the text of --identity-data is longer than 95 bytes; shorten it");
    }
    let reason =
        if let ConnectError::Failed(failure) = error { explain(failure, timeout) } else { error.to_string() };
    Failure::runtime(format!("cannot connect to {}: {reason}", host::list(servers)))
}

/// Returns the credentials that the client presents, and the key that the server must prove.
fn credentials<'a>(
    arguments: &'a Arguments,
    password: &'a str,
    buffer: &'a mut [u8],
) -> Result<(&'a [u8], Option<ServerTrust>), Failure> {
    let Some(token) = &arguments.token else {
        let trust = arguments.server_key.map(|argument| argument.0);
        return Ok((password.as_bytes(), trust));
    };
    let token = ConnectToken::from_text(token, buffer);
    let token = token.map_err(|error| Failure::usage(format!("--token: {error}")))?;
    let names: Vec<&str> = token.servers.iter().map(|server| server.name).collect();
    let server = token.servers.iter().find(|server| server.name == arguments.target).ok_or_else(|| {
        Failure::usage(format!(
            "the token is not for {}; connect to {}",
            arguments.target,
            names.join(" or ")
        ))
    })?;
    Ok((token.sealed, Some(ServerTrust::Key(server.key))))
}

/// Returns the reason why an attempt failed, and the fix.
fn explain(failure: ConnectFailure, timeout: Duration) -> String {
    let seconds = timeout.as_secs_f64();
    let advice = if let ConnectFailure::NoAnswerAfterIncompatible { server } = failure {
        format!("; try again later with --protocol {server}, or with a --timeout above {seconds} s")
    } else if let ConnectFailure::IncompatibleProtocol { .. } = failure {
        "; select it with --protocol".to_owned()
    } else if failure == ConnectFailure::InvalidPassword {
        "; set it with --password, or get a new token for --token".to_owned()
    } else if failure == ConnectFailure::SecurityRequired {
        "; give its key with --server-key".to_owned()
    } else if failure == ConnectFailure::ServerWithoutSecurity {
        "; connect without --server-key if that is acceptable".to_owned()
    } else if failure == ConnectFailure::IdentityRequired {
        "; present one with --identity".to_owned()
    } else if failure == ConnectFailure::NoAnswer {
        let check = "check the address, and that UDP is not blocked, or allow more time with --timeout";
        format!(" within {seconds} s; {check}")
    } else if failure == ConnectFailure::Unreachable {
        "; check the address and the port".to_owned()
    } else if failure == ConnectFailure::HandshakeTimeout {
        format!(
            " ({seconds} s); allow more time with --timeout, or record both sides with --pcap and read the captures with `rakwire decode`"
        )
    } else {
        String::new()
    };
    format!("{failure}{advice}")
}

//! `rakwire send`: sends messages to an echo server and checks the echoes.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rakwire::game_protocol::wire::MAX_PAYLOAD;
use rakwire::wire::id;
use rakwire_native::{
    Capacity, Channel, ConnectError, ConnectFailure, ConnectOptions, Connection, Delivery, Endpoint, Options,
    Reliability,
};

use crate::capture::Capture;
use crate::failure::{Failure, print};
use crate::protocol::Protocol;
use crate::{game_protocol, hex, host, text};

/// The first byte of a message of text: a user message that every peer passes on.
const TEXT_ID: u8 = 0xFE;
/// The protocol version of the first attempt: that of the original.
const FIRST_PROTOCOL: u8 = 6;
/// The largest `--size`, which fits into the memory of one connection at every MTU.
const MAX_SIZE: u64 = 5_000_000;
/// How long the server has to acknowledge the disconnection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects to an echo server, sends messages and compares every echo with its message.
///
/// A message is the byte 0xFE followed by the text.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server, as 127.0.0.1:19132, [::1]:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT")]
    target: String,
    /// The text to send; optional with --size
    #[arg(value_name = "TEXT", required_unless_present = "size", default_value = "")]
    text: String,
    /// How long to wait for the connection, and for each echo
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = host::seconds)]
    timeout: Duration,
    /// The RakNet protocol version (default: 6, or the one that the server requires); or "game" for the Game Protocol, whose
    /// messages are just the text
    #[arg(long, value_name = "N|game")]
    protocol: Option<Protocol>,
    /// The reliability of the messages; default reliable-ordered, or reliable with the Game Protocol
    #[arg(long, value_enum)]
    reliability: Option<ReliabilityArgument>,
    /// The ordering channel, for ordered and sequenced messages
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=31))]
    channel: u8,
    /// How many messages to send, each after the echo of the previous one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Pad each message to this length with bytes that differ between messages
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=MAX_SIZE))]
    size: Option<u64>,
    /// Send the text without the byte 0xFE, or as bytes if it is 0x followed by hex digits
    #[arg(long)]
    raw: bool,
    /// The password of the server, at most 255 bytes
    #[arg(long, value_name = "TEXT", default_value = "")]
    password: String,
    #[command(flatten)]
    capture: Capture,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReliabilityArgument {
    Unreliable,
    UnreliableSequenced,
    Reliable,
    ReliableOrdered,
    ReliableSequenced,
}

impl Arguments {
    fn delivery(&self) -> Result<Delivery, Failure> {
        let reliability = match self.reliability.unwrap_or(ReliabilityArgument::ReliableOrdered) {
            ReliabilityArgument::Unreliable => Reliability::Unreliable,
            ReliabilityArgument::UnreliableSequenced => Reliability::UnreliableSequenced,
            ReliabilityArgument::Reliable => Reliability::Reliable,
            ReliabilityArgument::ReliableOrdered => Reliability::ReliableOrdered,
            ReliabilityArgument::ReliableSequenced => Reliability::ReliableSequenced,
        };
        let channel =
            Channel::new(self.channel).ok_or_else(|| Failure::usage("the channel must be 0 to 31"))?;
        Ok(Delivery::new(reliability).on(channel))
    }

    /// What every message begins with.
    fn prefix(&self) -> Result<Vec<u8>, Failure> {
        let prefix = if !self.raw {
            [&[TEXT_ID], self.text.as_bytes()].concat()
        } else if self.text.starts_with("0x") || self.text.starts_with("0X") {
            hex::parse(&self.text).map_err(|error| Failure::usage(format!("TEXT is not hex: {error}")))?
        } else {
            self.text.as_bytes().to_vec()
        };
        match prefix.first() {
            None => Err(Failure::usage("a message cannot be empty; add TEXT")),
            Some(first) if *first < id::USER => Err(Failure::usage(format!(
                "the first byte is {first:#04x}, and only 0x86 and above are echoed; remove --raw or begin with --raw 0xfe"
            ))),
            Some(_) if self.size.is_some_and(|size| size < prefix.len() as u64) => Err(Failure::usage(
                format!("the message has {} bytes; use a --size that is not smaller", prefix.len()),
            )),
            Some(_) => Ok(prefix),
        }
    }
}

/// The same with the Game Protocol, where a message is just the text.
async fn run_game_protocol(arguments: &Arguments) -> Result<(), Failure> {
    game_protocol::reject_options(&[
        ("--channel", arguments.channel != 0),
        ("--password", !arguments.password.is_empty()),
    ])?;
    let reliability = match arguments.reliability {
        Some(ReliabilityArgument::Unreliable) => rakwire_native::game::Reliability::Unreliable,
        None | Some(ReliabilityArgument::Reliable) => rakwire_native::game::Reliability::Reliable,
        Some(
            ReliabilityArgument::UnreliableSequenced
            | ReliabilityArgument::ReliableOrdered
            | ReliabilityArgument::ReliableSequenced,
        ) => {
            return Err(Failure::usage(
                "the Game Protocol has only --reliability reliable and unreliable; choose one of them",
            ));
        }
    };
    let is_hex = arguments.raw && arguments.text.to_ascii_lowercase().starts_with("0x");
    let prefix = if is_hex {
        hex::parse(&arguments.text).map_err(|error| Failure::usage(format!("TEXT is not hex: {error}")))?
    } else {
        arguments.text.as_bytes().to_vec()
    };
    let size = arguments.size.and_then(|size| usize::try_from(size).ok());
    let length = size.unwrap_or(prefix.len());
    if length == 0 || length > MAX_PAYLOAD || length < prefix.len() {
        return Err(Failure::usage(format!(
            "a message has {} to {MAX_PAYLOAD} bytes, not {length}; change TEXT or --size",
            prefix.len().max(1)
        )));
    }
    let server = host::resolve(&arguments.target).await?;
    let (count, timeout) = (arguments.count, arguments.timeout);
    let request = game_protocol::Request { prefix: &prefix, size, count, reliability, timeout };
    game_protocol::exchange(server, &arguments.capture, &request).await
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.protocol == Some(Protocol::Game) {
        return run_game_protocol(&arguments).await;
    }
    let delivery = arguments.delivery()?;
    let prefix = arguments.prefix()?;
    let server = host::resolve(&arguments.target).await?;
    let endpoint = arguments.capture.bind(host::unspecified_address_for(server), options()?).await?;
    let result = match connect(&endpoint, server, &arguments).await {
        Ok(connection) => exchange(&connection, &arguments, &prefix, delivery).await,
        Err(failure) => Err(failure),
    };
    endpoint.close().await;
    result
}

async fn exchange(
    connection: &Connection,
    arguments: &Arguments,
    prefix: &[u8],
    delivery: Delivery,
) -> Result<(), Failure> {
    let size = arguments.size.and_then(|size| usize::try_from(size).ok()).unwrap_or(prefix.len());
    for number in 0..arguments.count {
        let message = message(prefix, size, number);
        let time = echo(connection, &message, delivery, arguments.timeout).await?;
        let shown = if arguments.size.is_some() {
            format!("of {} bytes", message.len())
        } else {
            let skipped = usize::from(!arguments.raw);
            format!("\"{}\"", text::escape(message.get(skipped..).unwrap_or(&[])))
        };
        print(format_args!("echo {shown} in {}\n", host::millis(time)))?;
    }
    Ok(())
}

fn options() -> Result<Options, Failure> {
    let mut options = Options::client().map_err(host::no_entropy)?;
    options.config.close_timeout = CLOSE_TIMEOUT;
    options.capacity = Capacity { connections: 2, blocks: 65_536, block_size: 1_024 };
    Ok(options)
}

/// Connects. Without `--protocol` it retries with the protocol version that the server requires.
async fn connect(
    endpoint: &Endpoint,
    server: SocketAddr,
    arguments: &Arguments,
) -> Result<Connection, Failure> {
    let first = match arguments.protocol {
        Some(Protocol::RakNet(version)) => version,
        Some(Protocol::Game) | None => FIRST_PROTOCOL,
    };
    let result = match attempt(endpoint, server, first, arguments).await {
        Err(Some(ConnectError::Failed(ConnectFailure::IncompatibleProtocol { server: other })))
            if arguments.protocol.is_none() && other != first =>
        {
            attempt(endpoint, server, other, arguments).await
        }
        result => result,
    };
    result.map_err(|error| {
        let reason = match error {
            Some(ConnectError::PasswordTooLong) => {
                return Failure::usage("the text of --password is longer than 255 bytes; shorten it");
            }
            Some(ConnectError::Failed(failure @ ConnectFailure::IncompatibleProtocol { .. })) => {
                format!("{failure}; choose it with --protocol")
            }
            Some(ConnectError::Failed(failure @ ConnectFailure::InvalidPassword)) => {
                format!("{failure}; set it with --password")
            }
            Some(ConnectError::Failed(failure @ ConnectFailure::NoAnswer)) => {
                format!("{failure}; check the address, and that UDP is not blocked")
            }
            Some(error) => error.to_string(),
            None => format!(
                "no connection within {} s; check the address, or allow more time with --timeout",
                arguments.timeout.as_secs_f64()
            ),
        };
        Failure::runtime(format!("cannot connect to {server}: {reason}"))
    })
}

/// One attempt to connect; `Err(None)` is a timeout.
async fn attempt(
    endpoint: &Endpoint,
    server: SocketAddr,
    protocol: u8,
    arguments: &Arguments,
) -> Result<Connection, Option<ConnectError>> {
    let options = ConnectOptions {
        password: arguments.password.as_bytes(),
        protocol_version: Some(protocol),
        ..ConnectOptions::default()
    };
    let connected = tokio::time::timeout(arguments.timeout, endpoint.connect_with(server, &options)).await;
    connected.map_err(|_| None)?.map_err(Some)
}

/// The message `number`: the prefix, and a byte pattern that depends on the number.
pub(crate) fn message(prefix: &[u8], size: usize, number: u32) -> Vec<u8> {
    let mut message = prefix.to_vec();
    let padding = (prefix.len()..size).map(|at| {
        let mixed = 31 * u64::from(number) + 7 * at as u64 + 13 * (at as u64 / 256);
        mixed.to_le_bytes()[0]
    });
    message.extend(padding);
    message
}

/// Sends a message and returns the time until its echo.
async fn echo(
    connection: &Connection,
    message: &[u8],
    delivery: Delivery,
    timeout: Duration,
) -> Result<Duration, Failure> {
    let start = Instant::now();
    let echo = async {
        connection
            .send(message, delivery)
            .await
            .map_err(|error| Failure::runtime(format!("the message cannot be sent: {error}")))?;
        connection.recv().await.ok_or_else(|| {
            let reason = connection.closed_reason();
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            Failure::runtime(format!("the connection ended before the echo{reason}"))
        })
    };
    let echo = tokio::time::timeout(timeout, echo).await.map_err(|_| no_echo(timeout))??;
    check(&echo.bytes, message)?;
    Ok(start.elapsed())
}

pub(crate) fn no_echo(timeout: Duration) -> Failure {
    let seconds = timeout.as_secs_f64();
    Failure::runtime(format!(
        "no echo within {seconds} s; check that the server echoes, or allow more time with --timeout"
    ))
}

/// Compares an echo with its message, byte for byte.
pub(crate) fn check(echo: &[u8], message: &[u8]) -> Result<(), Failure> {
    if echo == message {
        return Ok(());
    }
    let same = echo.iter().zip(message).take_while(|(a, b)| a == b);
    Err(Failure::runtime(format!(
        "the echo differs from the message: {} bytes instead of {}, equal up to byte {}",
        echo.len(),
        message.len(),
        same.count()
    )))
}

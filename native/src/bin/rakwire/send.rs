//! `rakwire send`: sends a message to an echoing server and checks what comes back.

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
use crate::{game, hex, host, text};

/// The first byte of a message of text: a user message that every peer passes on.
const TEXT_ID: u8 = 0xFE;
/// The protocol version that is tried first: the original's.
const FIRST_PROTOCOL: u8 = 6;
/// The largest `--size`, which the memory of one connection holds at every MTU.
const MAX_SIZE: u64 = 5_000_000;
/// How long the server has to confirm that the connection ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Connects to a server that echoes, sends messages and checks every echo byte for byte.
///
/// A message is the byte 0xFE followed by the text.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server, as 127.0.0.1:19132, [::1]:19132 or example.org:19132
    #[arg(value_name = "HOST:PORT")]
    target: String,
    /// The text to send; may be left out with --size
    #[arg(value_name = "TEXT", required_unless_present = "size", default_value = "")]
    text: String,
    /// How long to wait for the connection, and for each echo
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = host::seconds)]
    timeout: Duration,
    /// The RakNet version; without it 6, or whatever else the server says that it speaks. Or "game": the Game Protocol,
    /// whose messages are the text alone
    #[arg(long, value_name = "N|game")]
    protocol: Option<Protocol>,
    /// What is promised for the messages; reliable-ordered unless given, with the Game Protocol reliable
    #[arg(long, value_enum)]
    reliability: Option<Promise>,
    /// The ordering channel, for ordered and sequenced messages
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=31))]
    channel: u8,
    /// How many messages to send, each after the echo of the one before
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Fill each message up to this length with bytes that differ from message to message
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=MAX_SIZE))]
    size: Option<u64>,
    /// Send the bytes of the text alone, or the bytes themselves when it is hex digits after 0x
    #[arg(long)]
    raw: bool,
    /// What the server asks of its clients, at most 255 bytes
    #[arg(long, value_name = "TEXT", default_value = "")]
    password: String,
    #[command(flatten)]
    capture: Capture,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Promise {
    Unreliable,
    UnreliableSequenced,
    Reliable,
    ReliableOrdered,
    ReliableSequenced,
}

impl Arguments {
    fn delivery(&self) -> Result<Delivery, Failure> {
        let reliability = match self.reliability.unwrap_or(Promise::ReliableOrdered) {
            Promise::Unreliable => Reliability::Unreliable,
            Promise::UnreliableSequenced => Reliability::UnreliableSequenced,
            Promise::Reliable => Reliability::Reliable,
            Promise::ReliableOrdered => Reliability::ReliableOrdered,
            Promise::ReliableSequenced => Reliability::ReliableSequenced,
        };
        let channel =
            Channel::new(self.channel).ok_or_else(|| Failure::usage("there are channels 0 to 31 only"))?;
        Ok(Delivery::new(reliability).on(channel))
    }

    /// What every message begins with.
    fn head(&self) -> Result<Vec<u8>, Failure> {
        let head = if !self.raw {
            [&[TEXT_ID], self.text.as_bytes()].concat()
        } else if self.text.starts_with("0x") || self.text.starts_with("0X") {
            hex::parse(&self.text).map_err(|error| Failure::usage(format!("TEXT is no hex: {error}")))?
        } else {
            self.text.as_bytes().to_vec()
        };
        match head.first() {
            None => Err(Failure::usage("an empty message cannot be sent; give TEXT")),
            Some(first) if *first < id::USER => Err(Failure::usage(format!(
                "the first byte is {first:#04x}, and only 0x86 and above are echoed; leave out --raw or begin with --raw 0xfe"
            ))),
            Some(_) if self.size.is_some_and(|size| size < head.len() as u64) => Err(Failure::usage(
                format!("the message has {} bytes; give a --size that is not smaller", head.len()),
            )),
            Some(_) => Ok(head),
        }
    }
}

/// The same in the Game Protocol, where a message is the text alone.
async fn run_game(arguments: &Arguments) -> Result<(), Failure> {
    game::refuse(&[("--channel", arguments.channel != 0), ("--password", !arguments.password.is_empty())])?;
    let reliability = match arguments.reliability {
        Some(Promise::Unreliable) => rakwire_native::game::Reliability::Unreliable,
        None | Some(Promise::Reliable) => rakwire_native::game::Reliability::Reliable,
        Some(Promise::UnreliableSequenced | Promise::ReliableOrdered | Promise::ReliableSequenced) => {
            return Err(Failure::usage(
                "the Game Protocol has --reliability reliable and unreliable; choose one of them",
            ));
        }
    };
    let is_hex = arguments.raw && arguments.text.to_ascii_lowercase().starts_with("0x");
    let head = if is_hex {
        hex::parse(&arguments.text).map_err(|error| Failure::usage(format!("TEXT is no hex: {error}")))?
    } else {
        arguments.text.as_bytes().to_vec()
    };
    let size = arguments.size.and_then(|size| usize::try_from(size).ok());
    let length = size.unwrap_or(head.len());
    if length == 0 || length > MAX_PAYLOAD || length < head.len() {
        return Err(Failure::usage(format!(
            "a message has {} to {MAX_PAYLOAD} bytes, not {length}; change TEXT or --size",
            head.len().max(1)
        )));
    }
    let server = host::resolve(&arguments.target).await?;
    let (count, timeout) = (arguments.count, arguments.timeout);
    let errand = game::Errand { head: &head, size, count, reliability, timeout };
    game::exchange(server, &arguments.capture, &errand).await
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.protocol == Some(Protocol::Game) {
        return run_game(&arguments).await;
    }
    let delivery = arguments.delivery()?;
    let head = arguments.head()?;
    let server = host::resolve(&arguments.target).await?;
    let endpoint = arguments.capture.bind(host::any_towards(server), options()?).await?;
    let result = match connect(&endpoint, server, &arguments).await {
        Ok(connection) => exchange(&connection, &arguments, &head, delivery).await,
        Err(failure) => Err(failure),
    };
    endpoint.close().await;
    result
}

async fn exchange(
    connection: &Connection,
    arguments: &Arguments,
    head: &[u8],
    delivery: Delivery,
) -> Result<(), Failure> {
    let size = arguments.size.and_then(|size| usize::try_from(size).ok()).unwrap_or(head.len());
    for number in 0..arguments.count {
        let message = message(head, size, number);
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
    options.config.close_timeout = FAREWELL;
    options.capacity = Capacity { connections: 2, blocks: 65_536, block_size: 1_024 };
    Ok(options)
}

/// Connects; when the server wants another protocol version and none was asked for, with that.
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
                format!("{failure}; give it with --password")
            }
            Some(ConnectError::Failed(failure @ ConnectFailure::NoAnswer)) => {
                format!("{failure}; check the address, and that the path lets UDP through")
            }
            Some(error) => error.to_string(),
            None => format!(
                "no connection within {} s; check the address, or give it more time with --timeout",
                arguments.timeout.as_secs_f64()
            ),
        };
        Failure::runtime(format!("cannot connect to {server}: {reason}"))
    })
}

/// One attempt to connect; an error of nothing is a timeout.
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

/// The message `number`: its beginning, and bytes that nothing but a correct echo reproduces.
pub(crate) fn message(head: &[u8], size: usize, number: u32) -> Vec<u8> {
    let mut message = head.to_vec();
    let fill = (head.len()..size).map(|at| {
        let mixed = 31 * u64::from(number) + 7 * at as u64 + 13 * (at as u64 / 256);
        mixed.to_le_bytes()[0]
    });
    message.extend(fill);
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
        "no echo within {seconds} s; check that the server echoes, or give it more time with --timeout"
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

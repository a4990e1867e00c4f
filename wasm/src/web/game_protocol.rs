//! The Game Protocol: opens connections.
//!
//! ```no_run
//! use rakwire::game_protocol::Reliability;
//! use rakwire_wasm::web::game_protocol::connect;
//!
//! # async fn play() -> Result<(), Box<dyn std::error::Error>> {
//! let connection = connect("wss://play.example.org/ws", "snow-fight", 5).await?;
//! connection.send(b"hello", Reliability::Reliable)?;
//! while let Some(message) = connection.recv().await {
//!     // message.bytes, message.delivery
//! }
//! # Ok(())
//! # }
//! ```

use core::time::Duration;

use rakwire::endpoint::Hook;
use rakwire::game_protocol::{ConnectFailure, GameProtocol};

use super::browser::relay_url;
use super::carriers::Transport;
use super::connection;
use super::driver::Start;
use crate::client::{Client, Memory};

/// An open connection of the Game Protocol.
pub type Connection = connection::Connection<GameProtocol>;
/// The reason why a connection of the Game Protocol could not be opened.
pub type ConnectError = connection::ConnectError<GameProtocol>;
/// The reason why an open connection of the Game Protocol was closed.
pub type CloseReason = connection::CloseReason<GameProtocol>;
/// A received message of the Game Protocol.
pub type Message = connection::Message<GameProtocol>;

/// The options of a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The memory of the connection. Default: [`Memory::GAME_PROTOCOL`].
    pub memory: Memory,
    /// The time without a datagram from the server after which the connection counts as lost. Default: 15 s.
    pub timeout: Option<Duration>,
    /// The transport to the relay. Default: WebTransport if available, otherwise a WebSocket.
    pub transport: Transport,
    /// See [`raknet::Options::ends_with_page`](super::raknet::Options::ends_with_page). Default: true.
    pub ends_with_page: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: Memory::GAME_PROTOCOL,
            timeout: None,
            transport: Transport::Auto,
            ends_with_page: true,
        }
    }
}

/// Opens a connection to the game server that the relay at `url` offers as `target`, in at most `attempts` attempts of
/// two seconds; 0 counts as 1. Each attempt opens a new WebSocket or WebTransport session, for which the relay uses
/// another port: a server of the Game Protocol ignores repeated requests from the same port.
///
/// Dropping the future cancels connecting.
///
/// # Errors
/// A [`ConnectError`] that describes the cause.
pub async fn connect(url: &str, target: &str, attempts: u8) -> Result<Connection, ConnectError> {
    connect_with(url, target, attempts, Options::default()).await
}

/// Opens a connection like [`connect`], with other options.
///
/// # Errors
/// A [`ConnectError`] that describes the cause.
pub async fn connect_with(
    url: &str,
    target: &str,
    attempts: u8,
    options: Options,
) -> Result<Connection, ConnectError> {
    connect_with_hook(url, target, attempts, options, || ()).await
}

/// Opens a connection like [`connect_with`], with a hook as in
/// [`raknet::connect_with_hook`](super::raknet::connect_with_hook). A hook is created for each attempt.
///
/// # Errors
/// A [`ConnectError`] that describes the cause.
pub async fn connect_with_hook<H: Hook<GameProtocol> + 'static>(
    url: &str,
    target: &str,
    attempts: u8,
    Options { memory, timeout, transport, ends_with_page }: Options,
    hook: impl Fn() -> H,
) -> Result<Connection, ConnectError> {
    let relay = relay_url(url, target);
    let start = || Start {
        relay: relay.clone(),
        transport,
        ends_with_page,
        client: |entropy| {
            let hook: Box<dyn Hook<GameProtocol>> = Box::new(hook());
            Client::game_protocol(entropy, memory, timeout, hook)
        },
        set_carrier: Client::<GameProtocol, _>::set_carrier,
    };
    for _ in 1..attempts {
        match Connection::open(start()).await {
            Err(ConnectError::Server(ConnectFailure::NoAnswer)) => {}
            result => return result,
        }
    }
    Connection::open(start()).await
}

//! A minimal Rust program for browsers: connects through a relay, sends, and checks the echoes.
//!
//! `tests/rust.test.mjs` builds it and runs it in a browser.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use rakwire::endpoint::{
    ConnectionId, MessageIds, MessageSender, Plugin, PluginHost, Protocol, SendError, Side, Verdict,
};
use rakwire::game_protocol;
#[cfg(feature = "secure")]
use rakwire::raknet::{ConnectError, SecurePeer};
use rakwire::raknet::{Delivery, Direction, Guid, Outcome, RakNet, Reliability};
#[cfg(feature = "secure")]
use rakwire::secure::{ConnectToken, MAX_CONNECT_TOKEN, PublicKey, ServerTrust, StaticKey};
use rakwire::{Chunks, Instant};
use rakwire_wasm::web;
use rakwire_wasm::web::Transport;
use rakwire_wasm::web::connection::Connection;
use wasm_bindgen::prelude::*;

/// Sends a short and a long message to an echo server. Checks the echoes, the receipts, and the progress of the long
/// message in both directions.
///
/// # Errors
/// Fails if connecting or a check fails.
#[wasm_bindgen]
pub async fn play(url: String, target: String, transport: Option<String>) -> Result<String, JsError> {
    let mut options = web::Options::default();
    options.transport = transport_of(transport.as_deref())?;
    options.progress_interval = 10;
    let connection = web::connect(&url, &target, options).await?;
    let mut long = pattern(150_000);
    long[0] = 0xFE;
    for message in [b"\xFEhello".as_slice(), &long] {
        let sent = connection.send(message, Delivery::new(Reliability::ReliableOrderedWithReceipt))?;
        let receipt = connection.recv_receipt().await;
        if receipt != sent.map(|receipt| (receipt, Outcome::Acknowledged)) {
            return Err(JsError::new("the receipt belongs to another message"));
        }
        check_echo(&connection, message).await?;
    }
    let mut has_progress = [false; 2];
    while has_progress != [true; 2] {
        let progress = connection.recv_progress().await;
        let progress = progress.ok_or_else(|| describe_end(&connection))?;
        if progress.done == 0 || progress.done > progress.parts || progress.parts < 150_000 / 1_464 {
            return Err(JsError::new("the progress is invalid"));
        }
        match progress.direction {
            Direction::Sending => has_progress[0] = true,
            Direction::Receiving => has_progress[1] = true,
        }
    }
    connection.disconnect().await;
    Ok("echoed 6 and 150000 bytes".to_owned())
}

/// Opens a secure connection to the echo server with this key and checks an echo. Then checks that another key is
/// refused.
///
/// # Errors
/// Fails if connecting or a check fails.
#[cfg(feature = "secure")]
#[wasm_bindgen]
pub async fn play_secure(url: String, target: String, server_key: String) -> Result<String, JsError> {
    let key: PublicKey = server_key.parse()?;
    let mut options = web::Options::default();
    options.trust = Some(ServerTrust::Key(key));
    let identity = StaticKey::from_bytes([7; 32]); // a real program uses the key of the player
    options.identity = Some(&identity);
    let connection = web::connect(&url, &target, options).await?;
    let mut message = pattern(20_000);
    message[0] = 0xFE;
    connection.send(&message, Delivery::RELIABLE_ORDERED)?;
    check_echo(&connection, &message).await?;
    let Some(SecurePeer::Server(known)) = connection.secure_peer() else {
        return Err(JsError::new("the connection is plain"));
    };
    connection.disconnect().await;
    options.trust = Some(ServerTrust::Key(PublicKey([9; 32])));
    let refusal = web::connect(&url, &target, options).await.err().map(|error| error.to_string());
    options.trust = None;
    let untrusting = web::connect(&url, &target, options).await.err();
    if untrusting != Some(web::ConnectError::Refused(ConnectError::IdentityWithoutTrust)) {
        return Err(JsError::new("an identity was accepted without a trusted server"));
    }
    Ok(format!("{}; {}", known.key, refusal.unwrap_or_default()))
}

/// Opens a connection with a connect token for the owner of this private key and checks an echo. Then checks that the
/// token cannot be used again.
///
/// # Errors
/// Fails if connecting or a check fails.
#[cfg(feature = "secure")]
#[wasm_bindgen]
pub async fn play_with_token(url: String, token: String, private_key: String) -> Result<String, JsError> {
    let identity = StaticKey::from_key_file(&private_key)?;
    let mut buffer = [0; MAX_CONNECT_TOKEN];
    let token = ConnectToken::from_text(&token, &mut buffer)?;
    let server = token.servers.first().ok_or_else(|| JsError::new("the token names no server"))?;
    let options = web::Options::connect_token(&token, server, &identity);
    let connection = web::connect(&url, server.name, options).await?;
    connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED)?;
    check_echo(&connection, b"\xFEhello").await?;
    connection.disconnect().await;
    let refusal = web::connect(&url, server.name, options).await.err().map(|error| error.to_string());
    Ok(refusal.unwrap_or_default())
}

/// Pings a server, connects with a password and a small memory, and sends faster than the memory allows.
///
/// # Errors
/// Fails if connecting or a check fails.
#[wasm_bindgen]
pub async fn play_in_little_memory(url: String, target: String) -> Result<String, JsError> {
    let pong = web::ping(&url, &target, web::PingScope::Any, Duration::from_secs(10)).await?;
    let mut options = web::Options::default();
    options.password = b"secret";
    options.memory = web::Memory { blocks: 64, block_size: 512 };
    let connection = web::connect(&url, &target, options).await?;
    let message = [0xFE; 512];
    let mut refused = 0;
    for _ in 0..200 {
        match connection.send(&message, Delivery::RELIABLE) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                refused += 1;
                connection.ready(message.len(), Delivery::RELIABLE).await?;
                connection.send(&message, Delivery::RELIABLE)?;
            }
            sent => drop(sent?),
        }
    }
    if connection.ready(33 * 512, Delivery::RELIABLE).await != Err(SendError::NeverFits) || refused == 0 {
        return Err(JsError::new("a message of 33 blocks was not refused, or the memory was never full"));
    }
    connection.disconnect().await;
    options.password = b"wrong";
    let refusal = web::connect(&url, &target, options).await.err().map(|error| error.to_string());
    Ok(format!("{}; {}", String::from_utf8_lossy(&pong.data), refusal.unwrap_or_default()))
}

/// Sends a short message and a message of the maximum length to an echo server of the Game Protocol. Checks the echoes.
///
/// # Errors
/// Fails if connecting or a check fails.
#[wasm_bindgen]
pub async fn play_game_protocol(
    url: String,
    target: String,
    transport: Option<String>,
) -> Result<String, JsError> {
    use game_protocol::Reliability;
    let mut options = web::game_protocol::Options::default();
    options.transport = transport_of(transport.as_deref())?;
    let connection = web::game_protocol::connect_with(&url, &target, 3, options).await?;
    let long = pattern(129_024);
    for (message, reliability) in
        [(b"hello".as_slice(), Reliability::Unreliable), (&long, Reliability::Reliable)]
    {
        connection.send(message, reliability)?;
        if check_echo(&connection, message).await? != reliability {
            return Err(JsError::new("the echo and the message differ in their reliability"));
        }
    }
    connection.disconnect().await;
    Ok("echoed 5 and 129024 bytes".to_owned())
}

/// A plugin that sends a greeting on each new connection, and again when `is_due` is set. It receives the echoes of its
/// greetings.
#[derive(Default)]
struct Greeter {
    connection: Option<ConnectionId>,
    is_due: bool,
    answers: u32,
}

impl Plugin<RakNet> for Greeter {
    fn message_ids(&self) -> MessageIds {
        MessageIds::of(&[0x90])
    }

    fn on_connected(&mut self, _now: Instant, id: ConnectionId, _: SocketAddr, _: Guid, _: Side) {
        (self.connection, self.is_due) = (Some(id), true);
    }

    fn on_message(&mut self, _now: Instant, _: ConnectionId, _: Delivery, _: &dyn Chunks) -> Verdict {
        self.answers += 1;
        Verdict::Drop
    }

    fn update(&mut self, _now: Instant, sender: &mut dyn MessageSender<RakNet>) {
        if let Some(id) = self.connection {
            self.is_due &= sender.send(id, b"\x90good day", Delivery::RELIABLE_ORDERED).is_err();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.is_due.then_some(Instant::ZERO)
    }
}

/// Runs a plugin that exchanges messages with an echo server. The application does not receive the messages of the
/// plugin.
///
/// # Errors
/// Fails if connecting or a check fails.
#[wasm_bindgen]
pub async fn play_with_plugin(url: String, target: String) -> Result<String, JsError> {
    let greeter = Rc::new(RefCell::new(Greeter::default()));
    let mut plugins = PluginHost::<_, 1>::new();
    plugins.attach::<RakNet>(Rc::clone(&greeter))?;
    let connection = web::connect_with_hook(&url, &target, web::Options::default(), plugins).await?;
    for _ in 0..2 {
        // The echo of a message on the same channel arrives after the greeting.
        while greeter.borrow().is_due {
            connection.ready(1, Delivery::RELIABLE_ORDERED).await?;
            connection.send(b"\xFEwaiting", Delivery::RELIABLE_ORDERED)?;
            check_echo(&connection, b"\xFEwaiting").await?;
        }
        connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED)?;
        check_echo(&connection, b"\xFEhello").await?;
        let is_first = greeter.borrow().answers == 1;
        greeter.borrow_mut().is_due = is_first;
        connection.wake();
    }
    connection.disconnect().await;
    let answers = greeter.borrow().answers;
    Ok(format!("{answers} answers"))
}

/// Connections of both protocols that stay open, for testing stalled WebSockets.
#[derive(Debug)]
#[wasm_bindgen]
pub struct Open {
    raknet: Connection<RakNet>,
    game: Connection<game_protocol::GameProtocol>,
}

/// Connects to an echo server of each protocol.
///
/// # Errors
/// Fails if connecting fails.
#[wasm_bindgen]
pub async fn open(
    url: String,
    raknet: String,
    game: String,
    transport: Option<String>,
) -> Result<Open, JsError> {
    let transport = transport_of(transport.as_deref())?;
    let mut options = web::Options::default();
    options.transport = transport;
    let mut game_options = web::game_protocol::Options::default();
    game_options.transport = transport;
    Ok(Open {
        raknet: web::connect(&url, &raknet, options).await?,
        game: web::game_protocol::connect_with(&url, &game, 3, game_options).await?,
    })
}

/// Pings a server.
///
/// # Errors
/// Fails if the server does not answer.
#[wasm_bindgen]
pub async fn ping(url: String, target: String) -> Result<String, JsError> {
    let pong = web::ping(&url, &target, web::PingScope::Any, Duration::from_secs(10)).await?;
    Ok(String::from_utf8_lossy(&pong.data).into_owned())
}

/// Starts to connect and cancels immediately.
///
/// # Errors
/// Fails if the name of the transport is unknown.
#[wasm_bindgen]
pub async fn give_up(url: String, target: String, transport: String) -> Result<(), JsError> {
    let mut options = web::Options::default();
    options.transport = transport_of(Some(&transport))?;
    let mut attempt = Box::pin(web::connect(&url, &target, options));
    poll_fn(|cx| {
        let _ = attempt.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
    Ok(())
}

/// Returns a transport by its name in the npm package; the default without a name.
fn transport_of(name: Option<&str>) -> Result<Transport, JsError> {
    match name {
        None | Some("auto") => Ok(Transport::Auto),
        Some("webtransport") => Ok(Transport::WebTransport),
        Some("websocket") => Ok(Transport::WebSocket),
        Some(_) => Err(JsError::new("there is no such transport")),
    }
}

#[wasm_bindgen]
impl Open {
    /// Sends a message on both connections.
    ///
    /// # Errors
    /// Fails if a connection is closed, or its send memory is full.
    pub fn send(&self) -> Result<(), JsError> {
        self.raknet.send(b"\xFEhello", Delivery::RELIABLE_ORDERED)?;
        self.game.send(b"hello", game_protocol::Reliability::Reliable)?;
        Ok(())
    }

    /// Waits for this many echoes on both connections.
    ///
    /// # Errors
    /// Fails if a connection is closed.
    pub async fn receive(&self, count: u32) -> Result<(), JsError> {
        for _ in 0..count {
            check_echo(&self.raknet, b"\xFEhello").await?;
            check_echo(&self.game, b"hello").await?;
        }
        Ok(())
    }

    /// Returns the transports of both connections.
    #[must_use]
    pub fn transports(&self) -> String {
        format!("{:?} {:?}", self.raknet.transport(), self.game.transport())
    }

    /// Closes both connections after their messages have arrived.
    pub async fn close(self) {
        self.raknet.disconnect().await;
        self.game.disconnect().await;
    }

    /// Waits until the relay of both connections announces its shutdown. Returns the remaining time of each connection
    /// in milliseconds.
    pub async fn draining(&self) -> Vec<f64> {
        let left = [self.raknet.draining().await, self.game.draining().await];
        left.map(|left| left.map_or(f64::NAN, |left| left.as_secs_f64() * 1_000.0)).to_vec()
    }

    /// Waits until both connections are closed; returns the reasons.
    pub async fn ended(&self) -> String {
        while self.raknet.recv().await.is_some() {}
        while self.game.recv().await.is_some() {}
        let [raknet, game] = [
            self.raknet.closed_reason().map(|reason| reason.to_string()),
            self.game.closed_reason().map(|reason| reason.to_string()),
        ]
        .map(Option::unwrap_or_default);
        format!("{raknet}; {game}")
    }

    /// Returns the number of datagrams or chunks that both connections resent.
    pub fn sent_again(&self) -> u32 {
        let again = self.raknet.stats().datagrams_lost + self.game.stats().chunks_resent;
        u32::try_from(again).unwrap_or(u32::MAX)
    }
}

fn pattern(length: u32) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

/// Receives a message that must have these bytes; returns its delivery.
async fn check_echo<P: Protocol>(connection: &Connection<P>, message: &[u8]) -> Result<P::Delivery, JsError> {
    let echo = connection.recv().await.ok_or_else(|| describe_end(connection))?;
    if echo.bytes == message {
        Ok(echo.delivery)
    } else {
        Err(JsError::new("the echo differs from the message"))
    }
}

fn describe_end<P: Protocol>(connection: &Connection<P>) -> JsError {
    match connection.closed_reason() {
        Some(reason) => JsError::new(&reason.to_string()),
        None => JsError::new("the connection has not ended"),
    }
}

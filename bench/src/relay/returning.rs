//! A client of the relay that loses its connection and resumes its flow over a new one.

use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::{Error, Message, WebSocket};

use super::game_server::GameServer;

/// The WebSocket subprotocol with control messages (docs/relay-protocol.md#control-messages).
const FLOW_PROTOCOL: &str = "rakwire.relay.1";
/// The time limit for a message from the relay.
const LONGEST: Duration = Duration::from_secs(5);

/// A WebSocket client of the relay with the secret that resumes its flow.
pub(super) struct ReturningClient {
    relay: SocketAddr,
    socket: WebSocket<TcpStream>,
    secret: String,
}

impl ReturningClient {
    pub(super) fn connect(relay: SocketAddr, server: &mut GameServer) -> Result<Self> {
        let mut client = Self { relay, socket: open(relay, "")?, secret: String::new() };
        let answer = client.wait(server, |message| matches!(message, Message::Text(_)))?;
        let answer: Value = serde_json::from_str(answer.to_text()?)?;
        answer["resume"].as_str().context("the relay sent no resume secret")?.clone_into(&mut client.secret);
        Ok(client)
    }

    /// Measures the round-trip time of a packet to the game server.
    pub(super) fn round_trip(&mut self, packet: &[u8], server: &mut GameServer) -> Result<Duration> {
        let start = Instant::now();
        self.echo(packet, server)?;
        Ok(start.elapsed())
    }

    /// Drops the connection and resumes the flow over a new one. Returns the time from opening the new connection until
    /// a packet has been echoed over it.
    pub(super) fn come_back(&mut self, packet: &[u8], server: &mut GameServer) -> Result<Duration> {
        self.socket.get_ref().shutdown(Shutdown::Both)?;
        let start = Instant::now();
        self.socket = open(self.relay, &format!("&resume={}", self.secret))?;
        let answer = self.wait(server, |message| matches!(message, Message::Text(_)))?;
        self.echo(packet, server)?;
        let time = start.elapsed();
        let answer: Value = serde_json::from_str(answer.to_text()?)?;
        ensure!(answer["resumed"] == true, "the relay did not resume the flow: {answer}");
        Ok(time)
    }

    fn echo(&mut self, packet: &[u8], server: &mut GameServer) -> Result<()> {
        self.socket.send(Message::binary(packet.to_vec()))?;
        self.wait(server, |message| matches!(message, Message::Binary(_))).map(drop)
    }

    /// Waits for the next message for which `is_it` returns true, and polls `server` while it waits.
    fn wait(&mut self, server: &mut GameServer, is_it: impl Fn(&Message) -> bool) -> Result<Message> {
        let deadline = Instant::now() + LONGEST;
        while Instant::now() < deadline {
            server.serve()?;
            match self.socket.read() {
                Ok(message) if is_it(&message) => return Ok(message),
                Ok(Message::Close(reason)) => bail!("the relay closed the connection: {reason:?}"),
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
        bail!("no message from the relay within {} s", LONGEST.as_secs())
    }
}

/// Opens a WebSocket and makes it non-blocking. `more` is appended to the query of its URL.
fn open(relay: SocketAddr, more: &str) -> Result<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(relay)?;
    stream.set_nodelay(true)?;
    let mut request = format!("ws://{relay}/ws?target=game{more}").into_client_request()?;
    request.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static(FLOW_PROTOCOL));
    let (socket, _) = tungstenite::client(request, stream)
        .map_err(|error| anyhow!("the WebSocket cannot be opened: {error}"))?;
    socket.get_ref().set_nonblocking(true)?;
    Ok(socket)
}

//! WebSocket and UDP clients of the relay. They block while they connect, and never afterwards.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rakwire::game_protocol::wire::HandshakeWord;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

use super::game_server::GameServer;
use super::socket::{Batch, Calls, Socket};

/// The read buffer size of a WebSocket, small because there are thousands of clients in one process.
const READ_BUFFER: usize = 4 * 1_024;
/// The time limit for one answer during the handshake with the UDP front.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client that sends packets and receives their echoes.
pub(super) trait Client {
    /// Queues a packet until the next call of `flush`.
    fn send(&mut self, packet: &[u8]) -> Result<()>;

    /// Sends the queued packets as far as the socket accepts them.
    fn flush(&mut self) -> Result<()>;

    /// Calls `take` with each packet that has arrived.
    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()>;
}

pub(super) struct WebSocketClient {
    socket: WebSocket<TcpStream>,
    has_unsent: bool,
}

impl WebSocketClient {
    pub(super) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER);
        let url = format!("ws://{address}/ws?target=game");
        let opened = tungstenite::client::client_with_config(url, stream, Some(config));
        let (socket, _) = opened.map_err(|error| anyhow!("the WebSocket cannot be opened: {error}"))?;
        socket.get_ref().set_nonblocking(true)?;
        Ok(Self { socket, has_unsent: false })
    }
}

/// Ignores `WouldBlock`: the message stays in the WebSocket's write buffer until the next flush.
fn unless_full(result: Result<(), Error>) -> Result<()> {
    match result {
        Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        result => Ok(result?),
    }
}

impl Client for WebSocketClient {
    fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.has_unsent = true;
        unless_full(self.socket.write(Message::binary(packet.to_vec())))
    }

    fn flush(&mut self) -> Result<()> {
        if self.has_unsent {
            match self.socket.flush() {
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                result => result?,
            }
            self.has_unsent = false;
        }
        Ok(())
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        loop {
            match self.socket.read() {
                Ok(Message::Binary(packet)) => take(&packet),
                Ok(Message::Close(reason)) => bail!("the relay closed the connection: {reason:?}"),
                Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

pub(super) struct UdpClient {
    socket: Socket,
    batch: Batch,
    to: SocketAddr,
    calls: Calls,
    unsent: Vec<u8>,
    /// The size of each packet in `unsent`, in bytes.
    size: usize,
}

impl UdpClient {
    /// Creates a client that sends to `to` without a handshake.
    pub(super) fn direct(to: SocketAddr, calls: Calls) -> Result<Self> {
        Ok(Self { socket: Socket::bind()?, batch: Batch::new(), to, calls, unsent: Vec::new(), size: 1 })
    }

    /// Creates a client of the UDP front and completes the handshake that validates its address.
    ///
    /// `server` is the game server behind the front. It has no thread, so it is polled during the handshake.
    pub(super) fn through_front(front: SocketAddr, calls: Calls, server: &mut GameServer) -> Result<Self> {
        let mut client = Self::direct(front, calls)?;
        let salt = HandshakeWord(0x499E_D267);
        let pepper = client
            .exchange(salt, server)
            .context("the front did not answer the first word of the handshake")?;
        // The front forwards the last word of the handshake. The server's echo shows that the flow is open.
        client.exchange(salt.season(pepper), server).context("the front did not open the flow")?;
        Ok(client)
    }

    /// Sends a word of the handshake and waits for the next one.
    fn exchange(&mut self, word: HandshakeWord, server: &mut GameServer) -> Result<HandshakeWord> {
        self.send(&word.0.to_be_bytes())?;
        self.flush()?;
        let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
        while Instant::now() < deadline {
            let mut answer = None;
            self.receive(&mut |datagram| answer = HandshakeWord::read(datagram).ok())?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
            server.serve()?;
            std::thread::yield_now();
        }
        bail!("no answer within {} s", HANDSHAKE_TIMEOUT.as_secs())
    }
}

impl Client for UdpClient {
    fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.size = packet.len();
        self.unsent.extend_from_slice(packet);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.send(self.to, &self.unsent, self.size, self.calls)?;
        self.unsent.clear();
        Ok(())
    }

    fn receive(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let hand_over = |_, bytes: &[u8], size: usize| {
            bytes.chunks(size).for_each(&mut *take);
            Ok(())
        };
        self.socket.receive(&mut self.batch, hand_over).map(drop)
    }
}

//! A connection over TCP.

use core::cell::Cell;
use core::net::SocketAddr;

use embassy_net::Stack;
use embassy_net::tcp::{self, TcpSocket};
use embassy_time::{Duration, with_deadline, with_timeout};
use rakwire::codec::frames::FrameReader;
use rakwire::endpoint::SendError;
use rakwire::raknet::{Delivery, Receipt};

use super::error::{AcceptError, ConnectError, DisconnectReason};
use super::halves::{Reader, Receiver, Sender, Writer};
use crate::socket::{endpoint, reach};

/// Time limit for a silent remote peer, for the answer to a connection request, and for closing. RakNet connections
/// have the same limit.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a client's TCP handshake, after which the next client can be accepted.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval of keep-alive probes on an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(4);

/// The memory of a connection: a receive window of `RECEIVE` bytes, a send buffer of `SEND` bytes, and space for one
/// message of at most `MESSAGE` bytes. A message may exceed the window and the buffer.
#[derive(Debug)]
pub struct Memory<const RECEIVE: usize, const SEND: usize, const MESSAGE: usize> {
    received: [u8; RECEIVE],
    sent: [u8; SEND],
    message: [u8; MESSAGE],
}

impl<const RECEIVE: usize, const SEND: usize, const MESSAGE: usize> Memory<RECEIVE, SEND, MESSAGE> {
    /// Creates memory for one connection.
    #[must_use]
    pub const fn new() -> Self {
        Self { received: [0; RECEIVE], sent: [0; SEND], message: [0; MESSAGE] }
    }
}

impl<const RECEIVE: usize, const SEND: usize, const MESSAGE: usize> Default
    for Memory<RECEIVE, SEND, MESSAGE>
{
    fn default() -> Self {
        Self::new()
    }
}

/// An open connection over TCP. Dropping it resets the connection; [`disconnect`](Self::disconnect) closes it
/// gracefully.
pub struct Connection<'d> {
    socket: TcpSocket<'d>,
    frames: FrameReader<'d>,
    is_read: bool,
    closed: Cell<Option<DisconnectReason>>,
    is_within_message: Cell<bool>,
}

impl core::fmt::Debug for Connection<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection").field("closed", &self.closed.get()).finish_non_exhaustive()
    }
}

impl<'d> Connection<'d> {
    fn new<const RECEIVE: usize, const SEND: usize, const MESSAGE: usize>(
        stack: Stack<'d>,
        memory: &'d mut Memory<RECEIVE, SEND, MESSAGE>,
    ) -> Self {
        let mut socket = TcpSocket::new(stack, &mut memory.received, &mut memory.sent);
        socket.set_nagle_enabled(false);
        Self {
            socket,
            frames: FrameReader::new(&mut memory.message),
            is_read: false,
            closed: Cell::new(None),
            is_within_message: Cell::new(false),
        }
    }

    /// Connects to a server. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// Returns a [`ConnectError`].
    pub async fn connect<const RECEIVE: usize, const SEND: usize, const MESSAGE: usize>(
        stack: Stack<'d>,
        memory: &'d mut Memory<RECEIVE, SEND, MESSAGE>,
        server: SocketAddr,
    ) -> Result<Self, ConnectError> {
        let server = endpoint(server).ok_or(ConnectError::NoRoute)?;
        let deadline = embassy_time::Instant::now() + TIMEOUT;
        match with_deadline(deadline, reach(stack, server)).await {
            Ok(reached) => reached.map_err(|_| ConnectError::NoRoute)?,
            Err(_) => return Err(ConnectError::NoAnswer),
        }
        let mut connection = Self::new(stack, memory);
        match with_deadline(deadline, connection.socket.connect(server)).await {
            Ok(Ok(())) => Ok(connection.opened()),
            Ok(Err(tcp::ConnectError::ConnectionReset)) => Err(ConnectError::Refused),
            Ok(Err(tcp::ConnectError::NoRoute | tcp::ConnectError::InvalidState)) => {
                Err(ConnectError::NoRoute)
            }
            Ok(Err(tcp::ConnectError::TimedOut)) | Err(_) => Err(ConnectError::NoAnswer),
        }
    }

    /// Waits for a client on this port. To wait for several clients at the same time, use several tasks, each with
    /// separate memory.
    ///
    /// # Errors
    /// Returns an [`AcceptError`].
    pub async fn accept<const RECEIVE: usize, const SEND: usize, const MESSAGE: usize>(
        stack: Stack<'d>,
        memory: &'d mut Memory<RECEIVE, SEND, MESSAGE>,
        port: u16,
    ) -> Result<Self, AcceptError> {
        let mut connection = Self::new(stack, memory);
        connection.socket.set_timeout(Some(HANDSHAKE_TIMEOUT));
        loop {
            match connection.socket.accept(port).await {
                // The client did not complete the handshake in time. Its address may be forged.
                Ok(()) if connection.socket.state() == tcp::State::Closed => {}
                Ok(()) => return Ok(connection.opened()),
                Err(tcp::AcceptError::InvalidPort | tcp::AcceptError::InvalidState) => {
                    return Err(AcceptError::InvalidPort);
                }
                Err(tcp::AcceptError::ConnectionReset) => return Err(AcceptError::Closed),
            }
        }
    }

    fn opened(mut self) -> Self {
        self.socket.set_timeout(Some(TIMEOUT));
        self.socket.set_keep_alive(Some(KEEP_ALIVE));
        self
    }

    /// Splits the connection into two halves, so that one task can send while another one receives.
    ///
    /// ```
    /// use embassy_futures::join::join;
    /// use rakwire::raknet::Delivery;
    /// use rakwire_embassy::tcp::Connection;
    ///
    /// /// Sends ten messages while the other side sends as many.
    /// async fn swap(connection: &mut Connection<'_>) -> usize {
    ///     let (mut sender, mut receiver) = connection.split();
    ///     let send = async {
    ///         for number in 0..10_u8 {
    ///             let _ = sender.send(&[0xFE, number], Delivery::RELIABLE_ORDERED).await;
    ///         }
    ///     };
    ///     let receive = async {
    ///         let mut received = 0;
    ///         while received < 10 && receiver.recv().await.is_some() {
    ///             received += 1;
    ///         }
    ///         received
    ///     };
    ///     join(send, receive).await.1
    /// }
    /// ```
    pub fn split(&mut self) -> (Sender<'_>, Receiver<'_, 'd>) {
        let (reader, writer) = self.socket.split();
        let (closed, is_within_message) = (&self.closed, &self.is_within_message);
        let sender = Sender { writer: Writer(writer), closed, is_within_message };
        let receiver =
            Receiver { reader: Reader(reader), frames: &mut self.frames, closed, is_read: &mut self.is_read };
        (sender, receiver)
    }

    /// Sends a message; see [`Sender::send`].
    ///
    /// # Errors
    /// The same errors as [`Sender::send`].
    pub async fn send(&mut self, message: &[u8], delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        self.split().0.send(message, delivery).await
    }

    /// Waits for the next message; see [`Receiver::recv`].
    pub async fn recv(&mut self) -> Option<&[u8]> {
        let Self { socket, frames, is_read, closed, .. } = self;
        let (reader, _) = socket.split();
        let mut receiver = Receiver { reader: Reader(reader), frames, closed, is_read };
        let has_message = receiver.recv().await.is_some();
        frames.message().filter(|_| has_message)
    }

    /// Closes the connection gracefully. Waits at most 10 s until all messages have arrived and the remote peer has
    /// closed its side. Messages that arrive during the wait are dropped. If the remote peer has closed first,
    /// messages sent earlier still arrive.
    pub async fn disconnect(&mut self) {
        self.closed.set(self.closed.get().or(Some(DisconnectReason::Local)));
        self.socket.close();
        let rest = async {
            let mut dropped = [0; 32];
            while self.socket.read(&mut dropped).await.is_ok_and(|read| read > 0) {}
            // This fails only if there is nothing left to wait for.
            let _ = self.socket.flush().await;
        };
        // If the remote peer has not closed its side before the timeout, the connection is reset.
        let _ = with_timeout(TIMEOUT, rest).await;
    }

    /// Returns why the connection was closed, or `None` until `recv` has detected the close.
    #[must_use]
    pub fn closed_reason(&self) -> Option<DisconnectReason> {
        self.closed.get()
    }

    /// Returns the address of the remote peer, or `None` once the connection is closed.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        let remote = self.socket.remote_endpoint()?;
        Some(SocketAddr::new(remote.addr.into(), remote.port))
    }
}

//! What all libraries have here: ends that come to be, and messages between them.

use std::future::Future;
use std::net::{SocketAddr, UdpSocket};

use crate::role::BenchConnection;

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    ReliableOrdered,
    Unreliable,
}

/// Bytes of the buffers of a socket; the system may grant less.
const SOCKET_BUFFER: usize = 4 << 20;

/// A library: how its ends come to be.
pub(crate) trait Library {
    type Connection: BenchConnection + Send + 'static;
    type Server: Server<Connection = Self::Connection>;

    /// A server at a port of loopback.
    fn serve(address: SocketAddr, delivery: Delivery) -> impl Future<Output = Result<Self::Server, String>>;
    /// A connection to a server.
    fn connect(
        address: SocketAddr,
        delivery: Delivery,
    ) -> impl Future<Output = Result<Self::Connection, String>>;
}

/// What accepts connections.
pub(crate) trait Server {
    type Connection;

    fn port(&self) -> u16;
    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = Result<Self::Connection, String>>;
}

/// A socket of loopback that does not block, with large buffers.
pub(crate) fn socket(address: SocketAddr) -> Result<UdpSocket, String> {
    let bound = UdpSocket::bind(address).and_then(|socket| {
        let options = socket2::SockRef::from(&socket);
        options.set_recv_buffer_size(SOCKET_BUFFER)?;
        options.set_send_buffer_size(SOCKET_BUFFER)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    bound.map_err(|error| error.to_string())
}

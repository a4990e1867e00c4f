//! The interface that the benchmark uses for all libraries.

use std::future::Future;
use std::net::{SocketAddr, UdpSocket};

use crate::role::BenchConnection;

/// The delivery guarantee of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    ReliableOrdered,
    Unreliable,
}

/// The requested size of each socket buffer in bytes. The system may limit it to less.
const SOCKET_BUFFER: usize = 4 << 20;

/// A library that can create a server and connect to it.
pub(crate) trait Library {
    type Connection: BenchConnection + Send + 'static;
    type Server: Server<Connection = Self::Connection>;

    /// Binds a server to a loopback port.
    fn serve(address: SocketAddr, delivery: Delivery) -> impl Future<Output = Result<Self::Server, String>>;
    /// Connects to a server.
    fn connect(
        address: SocketAddr,
        delivery: Delivery,
    ) -> impl Future<Output = Result<Self::Connection, String>>;
}

/// A server that accepts connections.
pub(crate) trait Server {
    type Connection;

    fn port(&self) -> u16;
    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = Result<Self::Connection, String>>;
}

/// Creates a non-blocking loopback socket with large buffers.
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

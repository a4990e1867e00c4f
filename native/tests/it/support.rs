//! What the tests of all kinds need.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Longer than anything here takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// A UDP port that is closed for all others, and is no other program's as long as the socket exists: it takes datagrams of itself
/// alone.
pub(crate) fn closed_port() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    socket.connect(address).expect("an address of this machine");
    (socket, address)
}

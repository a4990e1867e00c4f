//! Helpers for all tests.

#[cfg(target_os = "linux")]
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Time limit for every wait. It exceeds the duration of any step on a slow machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Returns the address of a UDP port that is closed to all other senders. The socket is connected to itself, so no
/// other program can take the port while the socket exists.
#[cfg(target_os = "linux")]
pub(crate) fn closed_port() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("the socket is bound");
    socket.connect(address).expect("an address of this machine");
    (socket, address)
}

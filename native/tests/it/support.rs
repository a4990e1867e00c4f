//! Helpers for all tests.

#[cfg(target_os = "linux")]
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Time limit for every wait, longer than any step takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Returns a UDP port that is closed to all other senders. The socket is connected to itself, so no other program can
/// take the port while it exists.
#[cfg(target_os = "linux")]
pub(crate) fn closed_port() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    socket.connect(address).expect("an address of this machine");
    (socket, address)
}

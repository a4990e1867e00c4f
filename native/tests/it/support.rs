//! Helpers for all tests.

#[cfg(target_os = "linux")]
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Longer than any step here takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Returns a UDP port that is closed to all other senders. No other program can take it while the socket exists: it is
/// connected to itself.
#[cfg(target_os = "linux")]
pub(crate) fn closed_port() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    socket.connect(address).expect("an address of this machine");
    (socket, address)
}

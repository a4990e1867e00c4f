//! What is set on the TCP connections of clients.

use std::io;

use tokio::net::TcpStream;
use tracing::debug;

/// How many bytes the system takes for a client beyond those that are on their way.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_MAX: u32 = 32 * 1024;

/// Sets up an accepted connection. What fails leaves it slower, but working.
pub(crate) fn tune(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true).and_then(|()| limit_unsent(stream)) {
        debug!(%error, "cannot set up a connection");
    }
}

/// Without this limit the system queues megabytes for a client that reads slowly: stale datagrams, in front of fresh
/// ones, where they cannot be dropped any more.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_MAX)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit_unsent(_: &TcpStream) -> io::Result<()> {
    Ok(())
}

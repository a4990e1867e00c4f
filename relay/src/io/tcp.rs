//! The socket options of client connections.

use std::io;

use tokio::net::TcpStream;
use tracing::debug;

/// How many unsent bytes the system buffers for a client.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_MAX: u32 = 32 * 1024;

/// Sets the options of an accepted connection. Without them it is slower, but works.
pub(crate) fn tune(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true).and_then(|()| limit_unsent(stream)) {
        debug!(%error, "cannot set socket options");
    }
}

/// Without this limit the system buffers megabytes of stale datagrams for a slow client, where they can no longer be
/// dropped.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_MAX)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn limit_unsent(_: &TcpStream) -> io::Result<()> {
    Ok(())
}

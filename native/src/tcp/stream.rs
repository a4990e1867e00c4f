//! Sockets of connections: what the system is told about them, and TLS.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

use super::error::ConnectFailure;

/// The least time after which the system asks whether the other machine is there: it counts whole seconds.
const MIN_PROBE: Duration = Duration::from_secs(1);

/// Lets small messages leave at once, and the system notice that the other machine is gone. What a system does not know of
/// it is not an error: messages pass all the same.
pub(super) fn configure(stream: &TcpStream, timeout: Duration) {
    let _ = stream.set_nodelay(true);
    // Asked after half of the time and twice more in the other half.
    let keepalive = TcpKeepalive::new()
        .with_time((timeout / 2).max(MIN_PROBE))
        .with_interval((timeout / 4).max(MIN_PROBE));
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    let keepalive = keepalive.with_retries(2);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Connects a socket of the address `local` to a server.
pub(super) async fn dial(local: SocketAddr, remote: SocketAddr) -> io::Result<TcpStream> {
    let socket = if remote.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    let chooses = local.ip().is_unspecified() && local.port() == 0;
    if !chooses && local.is_ipv4() == remote.is_ipv4() {
        socket.set_reuseaddr(true)?;
        socket.bind(local)?;
    }
    socket.connect(remote).await
}

/// The failure for an error of the system or of TLS.
pub(super) fn failure(error: &io::Error) -> ConnectFailure {
    #[cfg(feature = "tls")]
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<tokio_rustls::rustls::Error>()) {
        return ConnectFailure::Tls(tls.to_string());
    }
    ConnectFailure::Socket(error.kind())
}

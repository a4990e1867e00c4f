//! The sockets towards game servers: each client has one, and with it a source address or a port of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use tracing::warn;

use crate::flow::Source;

/// A socket on a free port, for the datagrams of the client at `client` to `server`. It does not block.
pub(super) fn bind_source(source: Source, client: IpAddr, server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = match source.address(client, server) {
        Some(address) => bind_to_pool(address)?,
        None => bind_to_any(server)?,
    };
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn bind_to_any(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0))
}

/// Binds to an address of the loopback pool, or to any on systems that lack it.
fn bind_to_pool(address: Ipv4Addr) -> io::Result<UdpSocket> {
    static WARNED: AtomicBool = AtomicBool::new(false);

    match UdpSocket::bind((address, 0)) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            if !WARNED.swap(true, Ordering::Relaxed) {
                warn!(%address, "this system has no pool of loopback addresses; clients share one");
            }
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        }
        bound => bound,
    }
}

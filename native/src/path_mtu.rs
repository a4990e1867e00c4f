//! Fragmentation of datagrams that are larger than the path. The MTU of a reliable message cannot change once it was sent, so
//! routers may fragment every datagram but the probes of the handshake (docs/raknet.md#path-mtu).

use std::io;
use std::net::{SocketAddr, UdpSocket};

use rakwire::wire::offline::is_mtu_probe;

/// The error of a datagram that is larger than the path and must not be fragmented.
#[cfg(any(target_os = "linux", target_os = "android"))]
const EMSGSIZE: i32 = 90;
/// `WSAEMSGSIZE`.
#[cfg(windows)]
const EMSGSIZE: i32 = 10_040;
/// That of BSD and of Apple's systems.
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
const EMSGSIZE: i32 = 40;

/// Whether the system refused a datagram because it is too large for the path.
pub(crate) fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(EMSGSIZE)
}

/// Lets this machine and routers fragment what leaves through a socket. Other systems allow that unless they are asked not to.
///
/// Over IPv4 the path MTU that the system has learnt is ignored: routers fragment, and a forged ICMP message has no effect.
/// Over IPv6 only the sender fragments, at the path MTU that it has learnt.
pub(crate) fn allow_fragmentation(socket: &UdpSocket) {
    // A socket has the options of its family. Where one is missing, datagrams that are too large are lost.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use nix::sys::socket::{setsockopt, sockopt};

        let _ = linux::fragment_ipv4(socket);
        let _ = linux::fragment_ipv6(socket);
        let _ = setsockopt(socket, sockopt::Ipv6DontFrag, &false);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

/// Sends a datagram. If it is a probe of the MTU, routers may not fragment it, and it is refused if it is known to be too large
/// for the path. Other systems than Linux send probes as all other datagrams.
pub(crate) fn send_datagram<T>(
    socket: &impl Descriptor,
    to: SocketAddr,
    datagram: &[u8],
    send: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if !is_mtu_probe(datagram) {
        return send();
    }
    // The options are those of all datagrams of the socket. Few probes leave, and another task whose datagram leaves meanwhile
    // sends it again if it is lost.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let is_ipv4 = to.ip().to_canonical().is_ipv4();
        let _ = if is_ipv4 { linux::probe_ipv4(socket) } else { linux::probe_ipv6(socket) };
        let sent = send();
        let _ = if is_ipv4 { linux::fragment_ipv4(socket) } else { linux::fragment_ipv6(socket) };
        sent
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, to);
        send()
    }
}

/// A socket of the system.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use std::os::fd::AsFd as Descriptor;

/// A socket of the system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) trait Descriptor {}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl<T> Descriptor for T {}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::os::fd::AsFd;

    use rustix::io::Result;
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };

    pub(super) fn fragment_ipv4(socket: impl AsFd) -> Result<()> {
        set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::OMIT)
    }

    pub(super) fn fragment_ipv6(socket: impl AsFd) -> Result<()> {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)
    }

    pub(super) fn probe_ipv4(socket: impl AsFd) -> Result<()> {
        set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)
    }

    pub(super) fn probe_ipv6(socket: impl AsFd) -> Result<()> {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)
    }
}

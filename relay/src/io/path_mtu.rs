//! Datagrams that are larger than the path: routers may fragment all but the probes of a handshake, as those of
//! `rakwire-native` (docs/raknet.md#path-mtu).

use std::io;
use std::net::{SocketAddr, UdpSocket};

use quinn_udp::{UdpSockRef, UdpSocketState};
use rakwire::wire::offline::is_mtu_probe;

#[cfg(any(target_os = "linux", target_os = "android"))]
use self::linux::Dont;

/// Bytes that a probe is cut to where it is larger than the path: those of the MTUs that clients try.
const PROBES: [usize; 4] = [1_372, 1_232, 1_172, 548];

/// Returns the state that quinn-udp needs for a socket, and lets this machine and routers fragment what leaves through it.
///
/// quinn-udp forbids fragmentation, which only Linux can undo. So on other systems quinn-udp gets another socket of the same
/// kind.
pub(super) fn fragmenting_state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        let state = UdpSocketState::new(UdpSockRef::from(socket))?;
        allow_fragmentation(socket);
        return Ok(state);
    }
    let mut similar = socket.local_addr()?;
    similar.set_port(0);
    UdpSocketState::new(UdpSockRef::from(&UdpSocket::bind(similar)?))
}

/// Sends a datagram. A probe of the MTU may not be fragmented, and is cut to the next smaller size that clients try while it is
/// known to be too large for the path.
pub(super) fn send_datagram(
    socket: &impl Descriptor,
    to: SocketAddr,
    datagram: &[u8],
    mut send: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    if !is_mtu_probe(datagram) {
        return send(datagram);
    }
    forbid_fragmentation(socket, to);
    let mut sent = send(datagram);
    for length in PROBES {
        match datagram.get(..length) {
            Some(shorter) if sent.as_ref().is_err_and(is_too_large) => sent = send(shorter),
            Some(_) | None => {}
        }
    }
    allow_fragmentation(socket);
    sent
}

fn is_too_large(error: &io::Error) -> bool {
    // `EMSGSIZE` of Linux, and of BSD and Apple's systems, and `WSAEMSGSIZE`.
    let code = if cfg!(any(target_os = "linux", target_os = "android")) {
        90
    } else if cfg!(windows) {
        10_040
    } else {
        40
    };
    error.raw_os_error() == Some(code)
}

/// Lets this machine and routers fragment what leaves through a socket.
///
/// Over IPv4 the path MTU that the system has learnt is ignored: routers fragment, and a forged ICMP message has no effect.
/// Over IPv6 only the sender fragments, at the path MTU that it has learnt.
pub(super) fn allow_fragmentation(socket: &impl Descriptor) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    linux::set(socket, Dont::Never);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

/// Forbids fragmentation again, for QUIC at the same port (RFC 9000 section 14).
pub(super) fn forbid_again(socket: &impl Descriptor) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    linux::set(socket, Dont::ButProbe);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

fn forbid_fragmentation(socket: &impl Descriptor, to: SocketAddr) {
    // Two options, so that datagrams of the other family are not concerned.
    let is_ipv4 = to.ip().to_canonical().is_ipv4();
    #[cfg(any(target_os = "linux", target_os = "android"))]
    linux::set(socket, if is_ipv4 { Dont::Ipv4 } else { Dont::Ipv6 });
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (socket, is_ipv4);
}

/// A socket of the system.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use std::os::fd::AsFd as Descriptor;

/// A socket of the system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) trait Descriptor {}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl<T> Descriptor for T {}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::os::fd::AsFd;

    use nix::sys::socket::{setsockopt, sockopt};
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };

    /// What may not be fragmented.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Dont {
        /// Everything may be.
        Never,
        /// Datagrams over IPv4.
        Ipv4,
        /// Datagrams over IPv6.
        Ipv6,
        /// Nothing may be, and sizes above the path MTU that the system has learnt may be tried.
        ButProbe,
    }

    pub(super) fn set(socket: &impl AsFd, dont: Dont) {
        let ipv4 = match dont {
            Dont::Never | Dont::Ipv6 => Ipv4PathMtuDiscovery::OMIT,
            Dont::Ipv4 => Ipv4PathMtuDiscovery::DO,
            Dont::ButProbe => Ipv4PathMtuDiscovery::PROBE,
        };
        let ipv6 = match dont {
            Dont::Never | Dont::Ipv4 => Ipv6PathMtuDiscovery::DONT,
            Dont::Ipv6 => Ipv6PathMtuDiscovery::DO,
            Dont::ButProbe => Ipv6PathMtuDiscovery::PROBE,
        };
        // A socket has the options of its family. Where one is missing, datagrams that are too large are lost.
        let _ = set_ip_mtu_discover(socket, ipv4);
        let _ = set_ipv6_mtu_discover(socket, ipv6);
        let _ = setsockopt(socket, sockopt::Ipv6DontFrag, &(dont == Dont::ButProbe));
    }
}

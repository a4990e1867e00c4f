//! Code shared by `rakwire-native` and `rakwire-relay`: IP fragmentation of datagrams that exceed the path MTU, the
//! [headers of the PROXY protocol](proxy), [files that only their owner may read](private_file), [portable
//! paths](is_portable_path()), and [untrusted text](printable()).
//!
//! A RakNet fragment keeps its size when it is resent, even if the path MTU has decreased since. Routers may
//! therefore fragment every datagram except the MTU probes of the handshake (docs/raknet.md#path-mtu).

#![forbid(unsafe_code)]

mod portable_path;
mod printable;
pub mod private_file;
pub mod proxy;

pub use portable_path::is_portable_path;
pub use printable::printable;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use quinn_udp::{UdpSockRef, UdpSocketState};
use rakwire::wire::offline::is_mtu_probe;

#[cfg(any(target_os = "linux", target_os = "android"))]
use self::linux::Unfragmented;

/// The error for a datagram that exceeds the path MTU and must not be fragmented. On Linux its number differs on MIPS
/// and SPARC.
#[cfg(unix)]
const EMSGSIZE: i32 = rustix::io::Errno::MSGSIZE.raw_os_error();
/// `WSAEMSGSIZE`.
#[cfg(windows)]
const EMSGSIZE: i32 = 10_040;

/// The size in bytes of a datagram that every IPv6 path carries unfragmented, since its links take at least 1,280 bytes
/// (RFC 8200 section 5).
pub const IPV6_MIN_MTU_PAYLOAD: usize = 1_280 - 48;

/// The maximum length in bytes of a datagram that sockets accept. Neither RakNet nor the Game Protocol sends longer
/// datagrams.
pub const MAX_DATAGRAM: usize = 2_048;

/// Returns whether the system refused a datagram because it exceeds the path MTU.
#[must_use]
pub fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(EMSGSIZE)
}

/// Returns the destination for a socket at `local`: an IPv6 socket needs IPv4-mapped addresses.
///
/// ```
/// use rakwire_udp::route;
///
/// let address = |text: &str| text.parse().unwrap();
/// assert_eq!(route(address("[::]:0"), address("192.0.2.1:9")), address("[::ffff:192.0.2.1]:9"));
/// assert_eq!(route(address("0.0.0.0:0"), address("192.0.2.1:9")), address("192.0.2.1:9"));
/// ```
#[must_use]
pub fn route(local: SocketAddr, to: SocketAddr) -> SocketAddr {
    match (local, to.ip()) {
        (SocketAddr::V6(_), IpAddr::V4(ip)) => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
        _ => to,
    }
}

/// Returns the canonical form of the source address of a datagram.
///
/// IPv4-mapped addresses become IPv4 addresses, the flow label is removed, and the interface of a link-local address
/// remains.
///
/// ```
/// use rakwire_udp::canonical;
///
/// let address = |text: &str| text.parse().unwrap();
/// assert_eq!(canonical(address("[::ffff:192.0.2.1]:9")), address("192.0.2.1:9"));
/// assert_eq!(canonical(address("[fe80::1%2]:9")), address("[fe80::1%2]:9"));
/// ```
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), v6.port()),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
    }
}

/// Returns the source address that the system would use to send to `elsewhere`. Nothing is sent.
///
/// ```
/// use rakwire_udp::local_address_for;
///
/// let loopback = "127.0.0.1".parse().unwrap();
/// assert_eq!(local_address_for(loopback), Some(loopback));
/// ```
#[must_use]
pub fn local_address_for(elsewhere: IpAddr) -> Option<IpAddr> {
    let unspecified: IpAddr = match elsewhere {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((unspecified, 0)).ok()?;
    socket.connect((elsewhere, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Creates the state that quinn-udp needs for a socket, and allows this machine and routers to fragment its datagrams.
///
/// quinn-udp forbids fragmentation, which can be undone only on Linux. On other systems quinn-udp therefore configures
/// another socket of the same kind.
///
/// # Errors
/// Returns the errors of quinn-udp, and those of creating the other socket.
pub fn fragmenting_state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        let state = state_without_timestamps(socket)?;
        allow_fragmentation(socket);
        return Ok(state);
    }
    let mut similar = socket.local_addr()?;
    similar.set_port(0);
    UdpSocketState::new(UdpSockRef::from(&UdpSocket::bind(similar)?))
}

/// Creates the state that quinn-udp needs for a socket, and disables the receive timestamps, which quinn-udp requests.
///
/// Nothing reads these timestamps. They would also overflow the control buffer of the older quinn-udp that quinn uses,
/// if both receive IPv6 at one port.
///
/// # Errors
/// Returns the errors of quinn-udp.
pub fn state_without_timestamps(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    linux::leave_out_times(socket);
    Ok(state)
}

/// Allows this machine and routers to fragment the datagrams of a socket. Systems other than Linux allow it by default.
///
/// Over IPv4 the system's cached path MTU is ignored: routers fragment, and a forged ICMP message has no effect. Over
/// IPv6 only the sender fragments, at the cached path MTU.
pub fn allow_fragmentation(socket: &impl Descriptor) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    linux::forbid(socket, Unfragmented::Nothing);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

/// Forbids fragmentation of all datagrams, for QUIC at the same port (RFC 9000 section 14).
pub fn forbid_fragmentation(socket: &impl Descriptor) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    linux::forbid(socket, Unfragmented::Everything);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = socket;
}

/// Sends a datagram with `send`.
///
/// Routers must not fragment an MTU probe, and the system refuses a probe that exceeds the cached path MTU. Systems
/// other than Linux and Android send probes like all other datagrams.
///
/// # Errors
/// Returns the errors of `send`.
pub fn send_datagram<T>(
    socket: &impl Descriptor,
    to: SocketAddr,
    datagram: &[u8],
    send: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if !is_mtu_probe(datagram) {
        return send();
    }
    // The socket options apply to every datagram of this address family. Another task's large datagram may be lost
    // while they are set, but the protocol resends it, and probes are rare.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let is_ipv4 = to.ip().to_canonical().is_ipv4();
        linux::forbid(socket, if is_ipv4 { Unfragmented::Ipv4 } else { Unfragmented::Ipv6 });
        let sent = send();
        allow_fragmentation(socket);
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
pub use std::os::fd::AsFd as Descriptor;

/// A socket of the system.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub trait Descriptor {}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl<T> Descriptor for T {}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::os::fd::AsFd;

    use nix::sys::socket::{setsockopt, sockopt};
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };

    /// The datagrams of a socket that must not be fragmented.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Unfragmented {
        Nothing,
        /// Datagrams over IPv4.
        Ipv4,
        /// Datagrams over IPv6.
        Ipv6,
        /// All datagrams, as QUIC requires. Datagrams that exceed the cached path MTU are sent too, so that it can be
        /// probed.
        Everything,
    }

    pub(super) fn leave_out_times(socket: &impl AsFd) {
        // If this fails, the system only spends more time per datagram.
        let _ = setsockopt(socket, sockopt::ReceiveTimestampns, &false);
    }

    pub(super) fn forbid(socket: &impl AsFd, unfragmented: Unfragmented) {
        let ipv4 = match unfragmented {
            Unfragmented::Nothing | Unfragmented::Ipv6 => Ipv4PathMtuDiscovery::OMIT,
            Unfragmented::Ipv4 => Ipv4PathMtuDiscovery::DO,
            Unfragmented::Everything => Ipv4PathMtuDiscovery::PROBE,
        };
        let ipv6 = match unfragmented {
            Unfragmented::Nothing | Unfragmented::Ipv4 => Ipv6PathMtuDiscovery::DONT,
            Unfragmented::Ipv6 => Ipv6PathMtuDiscovery::DO,
            Unfragmented::Everything => Ipv6PathMtuDiscovery::PROBE,
        };
        // A socket supports only the options of its address family. Without such an option, datagrams that exceed the
        // path MTU are lost.
        let _ = set_ip_mtu_discover(socket, ipv4);
        let _ = set_ipv6_mtu_discover(socket, ipv6);
        let _ = setsockopt(socket, sockopt::Ipv6DontFrag, &(unfragmented == Unfragmented::Everything));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_error_of_an_oversized_datagram_is_recognised() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let send = |bytes| socket.send_to(&vec![0; bytes], socket.local_addr().unwrap());
        assert!(is_too_large(&send(65_508).unwrap_err()));
        assert_eq!(send(1_200).unwrap(), 1_200);
        socket.set_nonblocking(true).unwrap();
        socket.recv(&mut [0; 1_200]).unwrap();
        assert!(!is_too_large(&socket.recv(&mut []).unwrap_err()));
    }

    #[test]
    fn addresses_are_canonical() {
        let form = |text: &str| canonical(text.parse().unwrap()).to_string();
        assert_eq!(form("[::ffff:127.0.0.1]:5"), "127.0.0.1:5");
        assert_eq!(form("127.0.0.1:5"), "127.0.0.1:5");
        assert_eq!(form("[::1]:5"), "[::1]:5");
        assert_eq!(form("[fe80::1%3]:5"), "[fe80::1%3]:5");
        let labelled = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 5, 0x000A_BCDE, 0);
        assert_eq!(canonical(labelled.into()), "[::1]:5".parse().unwrap());
    }
}

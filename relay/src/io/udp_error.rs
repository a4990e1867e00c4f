//! Errors of UDP sockets towards game servers: what the network reports, and what leaves a socket that can be used.

use std::io;

use crate::flow::Unreachable;

/// Returns why the game server is unreachable, if an error is about the path or the other end and not about the socket.
pub(super) fn unreachable(error: &io::Error) -> Option<Unreachable> {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkDown, NetworkUnreachable,
        PermissionDenied,
    };
    let kind = error.kind();
    if matches!(kind, ConnectionRefused | ConnectionReset) {
        Some(Unreachable::ClosedPort)
    } else if kind == HostUnreachable {
        Some(Unreachable::Host)
    } else if matches!(kind, NetworkDown | NetworkUnreachable) {
        Some(Unreachable::Network)
    } else if kind == PermissionDenied {
        Some(Unreachable::Forbidden)
    } else {
        is_icmp(error).then_some(Unreachable::Other)
    }
}

/// Whether an error without a kind of its own is one that Linux makes of ICMP messages (`icmp_err_convert`, and parameter
/// problems).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_icmp(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let icmp = [Errno::NOPROTOOPT, Errno::HOSTDOWN, Errno::NONET, Errno::PROTO, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| icmp.contains(&errno))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
const fn is_icmp(_: &io::Error) -> bool {
    false
}

/// Whether an error leaves a socket that can be used. A datagram can be too long for the path.
pub(super) fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory};
    unreachable(error).is_some()
        || quinn_udp::is_msg_size_err(error)
        || matches!(error.kind(), Interrupted | OutOfMemory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_server_does_not_end_a_flow_but_a_broken_socket_does() {
        let is_temporary = |kind: io::ErrorKind| is_temporary(&kind.into());
        assert!(is_temporary(io::ErrorKind::ConnectionRefused));
        assert!(is_temporary(io::ErrorKind::HostUnreachable));
        assert!(!is_temporary(io::ErrorKind::NotConnected));
        assert!(!is_temporary(io::ErrorKind::InvalidInput));
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn only_a_closed_port_is_the_absence_of_a_server() {
        use rustix::io::Errno;
        let reasons = [
            (Errno::CONNREFUSED, Unreachable::ClosedPort),
            (Errno::CONNRESET, Unreachable::ClosedPort),
            (Errno::HOSTUNREACH, Unreachable::Host),
            (Errno::NETUNREACH, Unreachable::Network),
            (Errno::NETDOWN, Unreachable::Network),
            (Errno::PERM, Unreachable::Forbidden),
            (Errno::ACCESS, Unreachable::Forbidden),
            (Errno::NOPROTOOPT, Unreachable::Other),
            (Errno::HOSTDOWN, Unreachable::Other),
            (Errno::PROTO, Unreachable::Other),
        ];
        for (errno, reason) in reasons {
            let error = errno.into();
            assert_eq!(unreachable(&error), Some(reason), "{errno}");
            assert!(is_temporary(&error), "{errno}");
            assert_eq!(reason.is_absence(), reason == Unreachable::ClosedPort);
        }
        assert_eq!(unreachable(&Errno::BADF.into()), None);
    }
}

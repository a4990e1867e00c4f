//! Reports of the network that nothing can be reached at an address, by the error queue of Linux (`IP_RECVERR`, `IPV6_RECVERR`; man
//! page ip(7)). A socket without them that is connected to no peer is not notified of ICMP messages. Other systems have nothing alike
//! for such sockets.
//!
//! While a socket hears of errors, the next call to send or receive fails by each of them, whatever its own address is. Such a call
//! has done nothing, and is repeated ([`past_pending`]).

use std::io;
use std::net::SocketAddr;

/// Calls that are repeated because an error about an earlier datagram was pending. More errors than these arrive between the calls
/// only if somebody floods the socket with them; then the datagram is lost as if the network had dropped it.
const REPETITIONS: usize = 8;

/// Repeats a call to send or receive that an error about an earlier datagram has ended, as long as the socket hears of errors.
pub(crate) fn past_pending<T>(
    hears_errors: impl Fn() -> bool,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut result = call();
    for _ in 0..REPETITIONS {
        let is_pending = |error: &io::Error| error.kind() != io::ErrorKind::WouldBlock && hears_errors();
        if !result.as_ref().is_err_and(is_pending) {
            return result;
        }
        result = call();
    }
    result
}

/// Whether the system refused to send a datagram because no route leads to its address.
pub(crate) fn has_no_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::AddrNotAvailable
    )
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::linux::{hear_errors, read_errors};

/// Has a socket hear of errors, or hear of them no more. Other systems do not tell a socket without a peer.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const fn hear_errors<S>(_socket: &S, _hears: bool) {}

/// Takes the addresses at which nothing can be reached. Other systems do not report them.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const fn read_errors<S>(_socket: &S) -> Vec<SocketAddr> {
    Vec::new()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::io::IoSliceMut;
    use std::net::{SocketAddrV4, SocketAddrV6};
    use std::os::fd::{AsFd, AsRawFd};

    use nix::errno::Errno;
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, setsockopt, sockopt,
    };
    use socket2::SockRef;

    use super::SocketAddr;

    /// Errors that are read at once. The queue holds what fits the receive buffer, and forged messages fill it.
    const MOST: usize = 256;
    /// Space for an error and the address of the machine that reported it, whichever of the families these are of.
    const CONTROL: usize = 128;

    /// Has a socket hear of errors, or hear of them no more: then those that wait are forgotten.
    pub(crate) fn hear_errors(socket: &impl AsFd, hears: bool) {
        // A socket has the options of its family. Where they are missing, an attempt ends by its timeout.
        let _ = setsockopt(socket, sockopt::Ipv4RecvErr, &hears);
        let _ = setsockopt(socket, sockopt::Ipv6RecvErr, &hears);
        if !hears {
            let _ = SockRef::from(socket).take_error();
        }
    }

    /// Takes the errors that wait, and returns the addresses at which nothing can be reached.
    pub(crate) fn read_errors(socket: &(impl AsFd + AsRawFd)) -> Vec<SocketAddr> {
        (0..MOST).map_while(|_| read_error(socket.as_raw_fd())).flatten().collect()
    }

    /// Takes an error; nothing if none waits. It has no address if it is about something else.
    fn read_error(socket: i32) -> Option<Option<SocketAddr>> {
        // The datagram that caused the error is not read.
        let (mut bytes, mut control) = ([0; 1], nix::cmsg_space!([u8; CONTROL]));
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(socket, &mut slices, Some(&mut control), flags).ok()?;
        Some(if is_unreachable(&message) { destination(&message) } else { None })
    }

    fn is_unreachable(message: &RecvMsg<'_, '_, SockaddrStorage>) -> bool {
        let Ok(mut controls) = message.cmsgs() else { return false };
        controls.any(|control| {
            let (ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)) =
                control
            else {
                return false;
            };
            // A closed port, and hosts and networks to which no router knows the way or that a filter keeps apart.
            let errno = Errno::from_raw(i32::try_from(error.ee_errno).unwrap_or_default());
            matches!(
                errno,
                Errno::ECONNREFUSED
                    | Errno::EHOSTUNREACH
                    | Errno::ENETUNREACH
                    | Errno::EHOSTDOWN
                    | Errno::EACCES
            )
        })
    }

    /// Where the datagram was to go that caused an error.
    fn destination(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<SocketAddr> {
        let address = message.address?;
        let ipv4 = address.as_sockaddr_in().map(|ipv4| SocketAddrV4::from(*ipv4).into());
        let ipv6 = || address.as_sockaddr_in6().map(|ipv6| SocketAddrV6::from(*ipv6).into());
        ipv4.or_else(ipv6)
    }
}

//! Reports of unreachable addresses, read from the error queue of Linux sockets (`IP_RECVERR`, `IPV6_RECVERR`; man page
//! ip(7)). Without these options, a socket that is not connected to a peer is not notified of ICMP messages. Other
//! systems have no equivalent for such sockets.
//!
//! While error reports are enabled, each pending report makes the next send or receive call fail, whatever the address
//! of that call is. The call has had no effect, and is repeated ([`receive_past_reports`], [`send_past_reports`]). Only
//! the error code decides, so that calls are repeated even if error reports were disabled while they ran.

use std::io;
use std::net::SocketAddr;

/// Maximum number of repetitions for pending errors about earlier datagrams. More errors arrive between two calls only
/// if the socket is flooded with them; the datagram is then lost as if the network had dropped it.
const REPETITIONS: usize = 8;

/// Repeats a receive call that failed because of an error about an earlier datagram.
pub(crate) fn receive_past_reports<T>(call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    repeat_while(is_report, call)
}

/// Number of consecutive errors of one kind after which the error is attributed to the current datagram. Reports about
/// earlier datagrams come one at a time. While another task takes them from the queue, each sets the error of the next
/// call again.
const OWN: usize = 4;

/// Repeats a send call that failed because of an error about an earlier datagram.
///
/// Only reports of closed ports always come from the network. With the other errors the system may refuse the current
/// datagram itself, and does so again when the call is repeated.
pub(crate) fn send_past_reports<T>(call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut last = (None, 0);
    let may_pass = |error: &io::Error| {
        let code = error.raw_os_error();
        last = if last.0 == code { (code, last.1 + 1) } else { (code, 1) };
        let is_own = error.kind() != io::ErrorKind::ConnectionRefused && last.1 >= OWN;
        is_report(error) && !is_own
    };
    repeat_while(may_pass, call)
}

fn repeat_while<T>(
    mut may_pass: impl FnMut(&io::Error) -> bool,
    mut call: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut result = call();
    for _ in 0..REPETITIONS {
        if !result.as_ref().is_err_and(&mut may_pass) {
            return result;
        }
        result = call();
    }
    result
}

/// Returns true if the system refused to send a datagram because it has no route to the address.
pub(crate) fn has_no_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable | io::ErrorKind::AddrNotAvailable
    )
}

#[cfg(any(target_os = "linux", target_os = "android"))]
use self::linux::is_report;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::linux::{read_errors, set_error_reports};

/// Unreachable addresses from pending error reports.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) addresses: Vec<SocketAddr>,
    /// True if no other reports are pending.
    pub(crate) are_all: bool,
}

/// Returns true if an error may concern an earlier datagram. Windows reports closed ports with these two.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_report(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset)
}

/// Does nothing: other systems do not notify a socket without a peer.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const fn set_error_reports<S>(_socket: &S, _enabled: bool) {}

/// Returns no addresses: other systems do not report them.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const fn read_errors<S>(_socket: &S) -> Reported {
    Reported { addresses: Vec::new(), are_all: true }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddrV4, SocketAddrV6};
    use std::os::fd::{AsFd, AsRawFd};

    use nix::errno::Errno;
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, recvmsg, setsockopt, sockopt,
    };
    use socket2::SockRef;

    use super::{Reported, SocketAddr};

    /// Maximum number of reports read at a time. The queue is limited by the receive buffer, and forged messages can
    /// fill it.
    const MOST: usize = 256;
    /// Space for an error and the address of the reporting machine, in either address family.
    const CONTROL: usize = 128;

    /// Enables or disables error reports. Disabling them discards those that are pending.
    pub(crate) fn set_error_reports(socket: &impl AsFd, enabled: bool) {
        // A socket supports only the options of its family. If they are missing, an attempt fails by its timeout.
        let _ = setsockopt(socket, sockopt::Ipv4RecvErr, &enabled);
        let _ = setsockopt(socket, sockopt::Ipv6RecvErr, &enabled);
        if !enabled {
            let _ = SockRef::from(socket).take_error();
        }
    }

    /// Returns true if an error may concern an earlier datagram: the kernel derives it from ICMP messages
    /// (`icmp_err_convert`, `icmpv6_err_convert`).
    pub(super) fn is_report(error: &io::Error) -> bool {
        error.raw_os_error().map(Errno::from_raw).is_some_and(|errno| {
            let is_other_error = matches!(
                errno,
                Errno::EMSGSIZE | Errno::ENONET | Errno::ENOPROTOOPT | Errno::EOPNOTSUPP | Errno::EPROTO
            );
            is_unreachable_errno(errno) || is_other_error
        })
    }

    /// Returns true if an error is about a closed port, or about a host or network that is filtered or has no route.
    const fn is_unreachable_errno(errno: Errno) -> bool {
        matches!(
            errno,
            Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EHOSTDOWN | Errno::EACCES
        )
    }

    /// Takes pending reports and returns the unreachable addresses.
    pub(crate) fn read_errors(socket: &(impl AsFd + AsRawFd)) -> Reported {
        let mut reported = Reported { addresses: Vec::new(), are_all: false };
        for _ in 0..MOST {
            let Some(address) = read_error(socket.as_raw_fd()) else {
                reported.are_all = true;
                break;
            };
            reported.addresses.extend(address);
        }
        reported
    }

    /// Takes one report, or returns `None` if none is pending. The inner value is `None` if the report is about
    /// something else.
    fn read_error(socket: i32) -> Option<Option<SocketAddr>> {
        // The payload of the datagram that caused the error is not read.
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
            is_unreachable_errno(Errno::from_raw(i32::try_from(error.ee_errno).unwrap_or_default()))
        })
    }

    /// Returns the destination of the datagram that caused the error.
    fn destination(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<SocketAddr> {
        let address = message.address?;
        let ipv4 = address.as_sockaddr_in().map(|ipv4| SocketAddrV4::from(*ipv4).into());
        let ipv6 = || address.as_sockaddr_in6().map(|ipv6| SocketAddrV6::from(*ipv6).into());
        ipv4.or_else(ipv6)
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use nix::errno::Errno;

    use super::*;

    type Repeat = fn(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

    /// Returns how often a call is made that fails with these errors and then succeeds, and its last result.
    fn calls(repeat: Repeat, errors: &[Errno]) -> (usize, Result<(), Option<i32>>) {
        let mut calls = 0;
        let result = repeat(&mut || {
            calls += 1;
            errors.get(calls - 1).map_or(Ok(()), |errno| Err((*errno).into()))
        });
        (calls, result.map_err(|error| error.raw_os_error()))
    }

    #[test]
    fn refused_datagrams_are_retried_a_few_times_at_most() {
        let send: Repeat = |call| send_past_reports(call);
        for errno in [Errno::EMSGSIZE, Errno::ENETUNREACH, Errno::EHOSTUNREACH, Errno::EACCES] {
            assert_eq!(calls(send, &[errno; 20]), (OWN, Err(Some(errno as i32))), "{errno}");
        }
        for errno in [Errno::EPERM, Errno::EINVAL, Errno::EIO, Errno::ENOBUFS, Errno::EAGAIN] {
            assert_eq!(calls(send, &[errno; 20]), (1, Err(Some(errno as i32))), "{errno}");
        }
    }

    #[test]
    fn reports_about_earlier_datagrams_do_not_block_calls() {
        let send: Repeat = |call| send_past_reports(call);
        let receive: Repeat = |call| receive_past_reports(call);
        for repeat in [send, receive] {
            assert_eq!(calls(repeat, &[Errno::ECONNREFUSED; 8]), (9, Ok(())));
            assert_eq!(calls(repeat, &[Errno::EHOSTUNREACH, Errno::EACCES, Errno::ENETUNREACH]), (4, Ok(())));
        }
        assert_eq!(calls(receive, &[Errno::EHOSTUNREACH; 8]), (9, Ok(())));
        // Several machines are unreachable, and another task takes their reports meanwhile.
        assert_eq!(calls(send, &[Errno::EHOSTUNREACH; 3]), (4, Ok(())));
        assert_eq!(calls(receive, &[Errno::EBADF; 8]), (1, Err(Some(Errno::EBADF as i32))));
    }
}

//! Probes of the MTU that the relay passes on (docs/raknet.md#path-mtu).

use std::io;
use std::net::SocketAddr;

use rakwire::wire::offline::is_mtu_probe;
use rakwire_udp::{Descriptor, is_too_large};

/// Bytes that a probe is cut to where it is larger than the path: those of the MTUs that clients try.
const PROBES: [usize; 4] = [1_372, 1_232, 1_172, 548];

/// Sends a datagram. A probe of the MTU may not be fragmented, and is cut to the next smaller size that clients try while it is
/// known to be too large for the path.
pub(super) fn send_datagram(
    socket: &impl Descriptor,
    to: SocketAddr,
    datagram: &[u8],
    mut send: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    rakwire_udp::send_datagram(socket, to, datagram, || {
        let mut sent = send(datagram);
        if !is_mtu_probe(datagram) {
            return sent;
        }
        for length in PROBES {
            match datagram.get(..length) {
                Some(shorter) if sent.as_ref().is_err_and(is_too_large) => sent = send(shorter),
                Some(_) | None => {}
            }
        }
        sent
    })
}

//! What joins a machine to a link.

use core::net::SocketAddr;

use super::Link;
use crate::machine::Machine;
use crate::time::Instant;

/// Datagrams for anywhere else are lost, as on a real path.
pub(super) fn transmit(
    now: Instant,
    machine: &mut impl Machine,
    link: &mut Link,
    flow: usize,
    peer: SocketAddr,
) {
    let mut buffer = [0; 2048];
    while let Some(transmit) = machine.poll_transmit(now, &mut buffer) {
        if transmit.to == peer {
            link.send_of(now, flow, transmit.payload);
        }
    }
}

pub(super) fn wake(now: Instant, machine: &mut impl Machine) {
    if machine.poll_timeout().is_some_and(|at| at <= now) {
        machine.handle_timeout(now);
    }
}

//! A plain UDP echo without rakwire, as the baseline for the sizes of the other programs.

use embassy_net::Stack;
use embassy_net::udp::{PacketMetadata, UdpSocket};

use crate::heartbeat::Heartbeat;
use crate::network;

/// The port of the echo service (RFC 862).
const PORT: u16 = 7;
/// The maximum length of a datagram in bytes.
const LONGEST: usize = 1_472;

/// Echoes every datagram.
pub async fn run(stack: Stack<'_>, heartbeat: &Heartbeat) -> ! {
    heartbeat.while_waiting(network::wait_for_address(stack)).await;
    let (mut in_metadata, mut in_bytes) = ([PacketMetadata::EMPTY; 4], [0; LONGEST]);
    let (mut out_metadata, mut out_bytes) = ([PacketMetadata::EMPTY; 4], [0; LONGEST]);
    let mut socket =
        UdpSocket::new(stack, &mut in_metadata, &mut in_bytes, &mut out_metadata, &mut out_bytes);
    // This cannot fail: a new socket is not bound.
    let _ = socket.bind(PORT);
    let mut datagram = [0; LONGEST];
    loop {
        if let Ok((length, from)) = heartbeat.while_waiting(socket.recv_from(&mut datagram)).await {
            // A datagram that cannot be sent counts as lost.
            let _ = socket.send_to(&datagram[..length], from).await;
        }
    }
}

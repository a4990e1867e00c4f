//! What a board does without any protocol of ours: it sends every datagram back. The sizes of the others are measured
//! beside this one.

use embassy_net::Stack;
use embassy_net::udp::{PacketMetadata, UdpSocket};

use crate::network;
use crate::pulse::Pulse;

/// The port of the echo.
const PORT: u16 = 7;
/// Bytes of the longest datagram.
const LONGEST: usize = 1_472;

/// Sends everything back for ever.
pub async fn run(stack: Stack<'_>, pulse: &Pulse) -> ! {
    pulse.while_waiting(network::wait_for_address(stack)).await;
    let (mut in_places, mut in_bytes) = ([PacketMetadata::EMPTY; 4], [0; LONGEST]);
    let (mut out_places, mut out_bytes) = ([PacketMetadata::EMPTY; 4], [0; LONGEST]);
    let mut socket = UdpSocket::new(stack, &mut in_places, &mut in_bytes, &mut out_places, &mut out_bytes);
    // A new socket is not bound.
    let _ = socket.bind(PORT);
    let mut datagram = [0; LONGEST];
    loop {
        if let Ok((length, from)) = pulse.while_waiting(socket.recv_from(&mut datagram)).await {
            // What cannot be sent is lost, as on any network.
            let _ = socket.send_to(&datagram[..length], from).await;
        }
    }
}

//! An echo server on a plain `std::net::UdpSocket`: a minimal driver without an async runtime.
//!
//! `cargo run -p rakwire --example udp_echo` listens on UDP port 19132 of the loopback address. Any RakNet client may
//! connect.

use std::net::UdpSocket;
use std::time::{Duration, Instant as SystemInstant};

use rakwire::Instant;
use rakwire::raknet::{Capacity, Config, Event, Peer};
use rakwire::wire::MAX_DATAGRAM;

/// Echoes all received messages. Events borrow their data from the peer, so the reply is copied before it is sent.
fn echo(peer: &mut Peer<'_>, now: Instant) {
    let mut answers = Vec::new();
    while let Some(event) = peer.poll_event() {
        if let Event::Message { id, delivery, message } = event {
            answers.push((id, delivery, message.to_vec()));
        }
    }
    for (id, delivery, bytes) in answers {
        if let Err(error) = peer.send(now, id, &bytes, delivery) {
            println!("no echo for {id}: {error}");
        }
    }
}

fn main() -> std::io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:19132")?;
    // A real server takes 32 bytes from the operating system's random number generator.
    let mut config = Config::new([7; 32]);
    config.max_incoming = 32;
    let mut peer = Peer::with_capacity(Capacity::default(), config);
    let start = SystemInstant::now();
    let now = || Instant::from_micros(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
    let mut buffer = [0; 2048];
    loop {
        echo(&mut peer, now());
        while let Some(transmit) = peer.poll_transmit(now(), &mut buffer[..MAX_DATAGRAM]) {
            socket.send_to(transmit.payload, transmit.to)?;
        }
        let sleep = peer.poll_timeout().map(|at| at.saturating_since(now()));
        socket
            .set_read_timeout(Some(sleep.unwrap_or(Duration::from_secs(1)).max(Duration::from_millis(1))))?;
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            peer.handle_datagram(now(), from, &buffer[..length]);
        }
        peer.handle_timeout(now());
    }
}

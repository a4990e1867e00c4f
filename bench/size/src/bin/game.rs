//! A minimal client of the Game Protocol: connects, sends, receives, and connects again after a disconnect.

#![no_std]
#![no_main]

use rakwire::game_protocol::wire::MAX_PACKET;
use rakwire::game_protocol::{Config, Event, Peer, Reliability, Resources};
use rakwire_size::{address, entropy, now, receive, send};

static mut MEMORY: Resources<1, 24, 64> = Resources::new();
static mut BUFFER: [u8; MAX_PACKET] = [0; MAX_PACKET];

/// The entry point.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> ! {
    let (memory, buffer) = (&raw mut MEMORY, &raw mut BUFFER);
    // SAFETY: this function runs once, and nothing else accesses the statics.
    let (memory, buffer) = unsafe { (&mut *memory, &mut *buffer) };
    let mut peer = Peer::new(memory, Config::new(entropy()));
    let mut connection = peer.connect(now(), address()).ok();
    loop {
        peer.handle_datagram(now(), address(), receive(buffer));
        peer.handle_timeout(now());
        while let Some(event) = peer.poll_event() {
            match event {
                Event::Message { message, .. } => message.chunks().for_each(send),
                Event::ConnectFailed { .. } | Event::Disconnected { .. } => connection = None,
                _ => {}
            }
        }
        match connection {
            Some(id) => {
                let _ = peer.send(now(), id, receive(buffer), Reliability::Reliable);
            }
            None => connection = peer.connect(now(), address()).ok(),
        }
        while let Some(transmit) = peer.poll_transmit(now(), buffer) {
            send(transmit.payload);
        }
        if peer.poll_timeout().is_none() {
            send(&[]);
        }
    }
}

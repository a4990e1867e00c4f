//! A minimal RakNet client: connects, sends, receives, and connects again after a disconnect.
//!
//! The feature `secure` makes the connection secure. Without the feature `full` the program uses the small profile and
//! less memory, which suffices for a few short messages.

#![no_std]
#![no_main]

use rakwire::raknet::{Config, ConnectOptions, Delivery, Event, Peer, Resources};
use rakwire::wire::MAX_DATAGRAM;
use rakwire_size::{address, entropy, now, receive, send};

/// The number of memory blocks, and the length of the longest datagram in bytes.
const SIZES: (usize, usize) =
    if cfg!(feature = "full") { (24, MAX_DATAGRAM) } else { (16, SHORT_MTU as usize - 28) };
/// The MTU of a client with little memory.
const SHORT_MTU: u16 = 576;

static mut MEMORY: Resources<1, { SIZES.0 }, 64> = Resources::new();
static mut BUFFER: [u8; SIZES.1] = [0; SIZES.1];

/// The entry point.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> ! {
    let (memory, buffer) = (&raw mut MEMORY, &raw mut BUFFER);
    // SAFETY: this function runs once, and nothing else accesses the statics.
    let (memory, buffer) = unsafe { (&mut *memory, &mut *buffer) };
    let mut peer = Peer::new(memory, config());
    let mut connection = peer.connect_with(now(), address(), &options()).ok();
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
                let _ = peer.send(now(), id, receive(buffer), Delivery::RELIABLE_ORDERED);
            }
            None => connection = peer.connect_with(now(), address(), &options()).ok(),
        }
        while let Some(transmit) = peer.poll_transmit(now(), buffer) {
            send(transmit.payload);
        }
        if peer.poll_timeout().is_none() {
            send(&[]);
        }
    }
}

#[cfg(not(feature = "secure"))]
fn config() -> Config {
    let mut config = Config::new(entropy());
    if cfg!(not(feature = "full")) {
        config.mtu = SHORT_MTU;
    }
    config
}

#[cfg(not(feature = "secure"))]
fn options() -> ConnectOptions<'static> {
    ConnectOptions::default()
}

#[cfg(feature = "secure")]
fn config() -> Config {
    let mut config = Config::new(entropy());
    config.security = Some(rakwire::raknet::Security::new(entropy()));
    config
}

#[cfg(feature = "secure")]
fn options() -> ConnectOptions<'static> {
    let trust = rakwire::secure::ServerTrust::Key(rakwire::secure::PublicKey(entropy()));
    ConnectOptions { trust: Some(trust), ..ConnectOptions::default() }
}

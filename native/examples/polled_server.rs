//! A server without a runtime: at 60 frames per second, it sends the messages of each client to all of them.
//!
//! `cargo run -p rakwire-native --example polled_server -- 127.0.0.1:19132`

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use rakwire::endpoint::Event;
use rakwire_native::polled::Endpoint;
use rakwire_native::raknet::{Delivery, Options, RakNet};

const FRAME: Duration = Duration::from_micros(16_667);

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:19132".into());
    let mut server = Endpoint::<RakNet>::bind(address, Options::server(64)?)?;
    println!("listening on {}", server.local_addr());
    let mut clients = Vec::new();
    loop {
        server.update();
        let mut said = Vec::new();
        while let Some(event) = server.poll_event() {
            match event {
                Event::Connected { id, remote, .. } => {
                    println!("{remote} has come");
                    clients.push(id);
                }
                Event::Disconnected { id, remote, reason } => {
                    println!("{remote} has gone: {reason}");
                    clients.retain(|client| *client != id);
                }
                Event::Message { message, .. } => said.push(message.to_vec()),
                Event::ConnectFailed { .. }
                | Event::Receipt { .. }
                | Event::Progress { .. }
                | Event::MtuChanged { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => {}
            }
        }
        for message in &said {
            for client in &clients {
                if let Err(error) = server.send(*client, message, Delivery::RELIABLE_ORDERED) {
                    println!("message to {client} not sent: {error}");
                }
            }
        }
        server.flush();
        sleep(FRAME);
    }
}

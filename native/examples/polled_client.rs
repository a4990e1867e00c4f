//! A client without a runtime: sends a message to the server of `polled_server`, prints the first reply, and leaves.
//!
//! `cargo run -p rakwire-native --example polled_client -- 127.0.0.1:19132`

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use rakwire::endpoint::Event;
use rakwire_native::polled::Endpoint;
use rakwire_native::raknet::{Delivery, Options, RakNet};

const FRAME: Duration = Duration::from_micros(16_667);

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:19132".into());
    let mut client = Endpoint::<RakNet>::bind("0.0.0.0:0", Options::client()?)?;
    let connection = client.connect(address.parse()?)?;
    while client.connections() > 0 {
        client.update();
        let (mut is_open, mut is_done) = (false, false);
        while let Some(event) = client.poll_event() {
            match event {
                Event::Connected { .. } => is_open = true,
                Event::ConnectFailed { reason, .. } => return Err(reason.into()),
                Event::Disconnected { reason, .. } => println!("the end: {reason}"),
                Event::Message { message, .. } => {
                    println!("{}", String::from_utf8_lossy(message.to_vec().get(1..).unwrap_or_default()));
                    is_done = true;
                }
                Event::Receipt { .. }
                | Event::Progress { .. }
                | Event::MtuChanged { .. }
                | Event::Pong { .. }
                | Event::OutOfBand { .. }
                | Event::Advertisement { .. }
                | _ => {}
            }
        }
        if is_open {
            client.send(connection, b"\x86hello", Delivery::RELIABLE_ORDERED)?;
        }
        if is_done {
            client.disconnect(connection);
        }
        client.flush();
        sleep(FRAME);
    }
    Ok(())
}

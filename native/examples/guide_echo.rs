//! Step 1 of the guide: a server that sends every message back, and a client that sends one.
//!
//! ```sh
//! cargo run -p rakwire-native --example guide_echo -- server 127.0.0.1:19132
//! cargo run -p rakwire-native --example guide_echo -- client 127.0.0.1:19132 hello
//! ```

use std::error::Error;

use rakwire_native::{Delivery, Endpoint, Options, id};

/// The first byte of our messages. Applications may use 0x86 to 0xFF.
const ECHO: u8 = id::USER;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, address] if role == "server" => {
            let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
            println!("listening on {}", endpoint.local_addr());
            serve(endpoint).await;
        }
        [role, address, text] if role == "client" => println!("{}", ask(address, text).await?),
        _ => return Err("usage: guide_echo server ADDRESS | client ADDRESS TEXT".into()),
    }
    Ok(())
}

/// Sends every message back to its sender until the endpoint is closed.
pub(crate) async fn serve(endpoint: Endpoint) {
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Some(message) = connection.recv().await {
                // Waits while the send queue is full; fails once the client has left.
                if connection.send(&message.bytes, message.delivery).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// Sends a text to a server and returns its echo.
pub(crate) async fn ask(server: &str, text: &str) -> Result<String, Box<dyn Error>> {
    let endpoint = Endpoint::bind("0.0.0.0:0", Options::client()?).await?;
    let connection = endpoint.connect(server.parse()?).await?;
    connection.send(&[&[ECHO], text.as_bytes()].concat(), Delivery::RELIABLE_ORDERED).await?;
    let echo = connection.recv().await.ok_or("the server has left")?;
    connection.disconnect().await;
    Ok(String::from_utf8_lossy(echo.bytes.get(1..).unwrap_or_default()).into_owned())
}

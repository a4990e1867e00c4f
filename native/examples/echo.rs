//! A server that sends every message back, with RakNet and with the Game Protocol.

use rakwire_native::endpoint::{Endpoint, Options, Protocol};
use rakwire_native::game_protocol::GameProtocol;
use rakwire_native::raknet::RakNet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut addresses = std::env::args().skip(1);
    let mut address = |default: &str| addresses.next().unwrap_or_else(|| default.to_owned());
    let raknet = Endpoint::<RakNet>::bind(address("127.0.0.1:19132"), Options::server(64)?).await?;
    let game = Endpoint::<GameProtocol>::bind(address("127.0.0.1:8999"), Options::server(64)?).await?;
    raknet.set_advertisement(b"my first server")?;
    println!("listening on {} and, with the Game Protocol, on {}", raknet.local_addr(), game.local_addr());
    tokio::join!(serve(raknet), serve(game));
    Ok(())
}

async fn serve<P: Protocol>(endpoint: Endpoint<P>) {
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Some(message) = connection.recv().await {
                // Waits while the send queue is full; fails once the client has left.
                let _ = connection.send(&message.bytes, message.delivery).await;
            }
            println!("{} has left: {:?}", connection.remote(), connection.closed_reason());
        });
    }
}

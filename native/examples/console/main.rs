//! A server with a console that lists, measures, disconnects and bans players.
//!
//! ```sh
//! cargo run -p rakwire-native --example console -- 127.0.0.1:19132
//! ```

mod server;

use std::sync::Arc;

use rakwire_native::{Endpoint, Options};

use server::Server;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:19132".to_owned());
    let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
    println!("listening on {}; type help for a list of commands", endpoint.local_addr());
    let server = Arc::new(Server::new(endpoint));
    let playing = tokio::spawn(Arc::clone(&server).run());
    // Reading lines blocks, so it has its own thread.
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        match server.command(&line).await {
            Some(answer) => println!("{answer}"),
            None => break,
        }
    }
    server.close().await;
    playing.await?;
    Ok(())
}

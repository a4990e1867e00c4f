//! Step 4 of the guide: a game of tag on a grid. The server decides everything; clients say where they want to go.
//!
//! ```sh
//! cargo run -p rakwire-native --example guide_tag -- server 127.0.0.1:19132
//! cargo run -p rakwire-native --example guide_tag -- bot 127.0.0.1:19132 robin
//! ```

pub(crate) mod bot;
pub(crate) mod game;
pub(crate) mod messages;
pub(crate) mod server;
pub(crate) mod world;

use std::error::Error;

use rakwire_native::{Endpoint, Options};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [role, address] if role == "server" => {
            let endpoint = Endpoint::bind(address, Options::server(64)?).await?;
            println!("listening on {}", endpoint.local_addr());
            server::run(endpoint, server::Limits::default()).await;
        }
        [role, address, name] if role == "bot" => {
            let connection = bot::join(address, name).await?;
            println!("the end: {}", bot::play(connection, |news| println!("{news:?}")).await);
        }
        _ => return Err("usage: guide_tag server ADDRESS | bot ADDRESS NAME".into()),
    }
    Ok(())
}

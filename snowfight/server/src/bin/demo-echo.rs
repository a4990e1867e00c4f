//! The echo server of the demo: a minimal `rakwire echo` that is built together with the game server.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use rakwire::wire::id;
use rakwire_native::{Options, raknet};
use snowfight_server::program::{self, Failure, print};

const CLIENTS: u16 = 1_000;
const ADVERTISEMENT: &[u8] = b"rakwire echo";
/// The RakNet protocol versions that the echo page offers.
const VERSIONS: [u8; 3] = [6, 10, 11];

/// Sends every user message (first byte 0x86 and above) back unchanged.
#[derive(Debug, Parser)]
struct Arguments {
    /// The address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:19132")]
    listen: SocketAddr,
}

fn main() -> ExitCode {
    let result = program::parse().and_then(|arguments| program::block_on(serve(arguments)));
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

async fn serve(arguments: Arguments) -> Result<(), Failure> {
    let mut options = Options::server(CLIENTS).map_err(Failure::runtime)?;
    options.config.accepted_versions.clear();
    options
        .config
        .accepted_versions
        .extend_from_slice(&VERSIONS)
        .map_err(|_| Failure::runtime("the configuration has no capacity for all versions"))?;
    let endpoint = raknet::Endpoint::bind(arguments.listen, options).await.map_err(Failure::usage)?;
    endpoint.set_advertisement(ADVERTISEMENT).map_err(Failure::runtime)?;
    let stop = program::stop_signal()?;
    print(format_args!("listening on {}", endpoint.local_addr()))?;
    let accept = async {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(echo(connection));
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    endpoint.close().await;
    Ok(())
}

async fn echo(connection: raknet::Connection) {
    while let Some(message) = connection.recv().await {
        if message.bytes.first().is_some_and(|first| *first >= id::USER) {
            // This fails only if the client has disconnected, and then no further message arrives.
            let _ = connection.send(&message.bytes, message.delivery).await;
        }
    }
}

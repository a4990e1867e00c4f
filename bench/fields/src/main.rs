//! Plays the roles of a benchmark with network libraries for games other than RakNet.
//!
//! Usage: `fields-peer LIBRARY ROLE …`. The libraries are `quinn`, `enet`, `kcp` and `renet`. `interop/README.md` and
//! `flood.rs` describe the roles and their output.

#![forbid(unsafe_code)]

mod driven;
mod enet;
#[path = "../../src/flood.rs"]
mod flood;
mod kcp;
mod library;
mod netcode;
mod quic;
#[path = "../../../interop/shared/bench.rs"]
mod role;

use std::process::ExitCode;

use flood::Flood;
use library::{Delivery, Library, Server};
use role::{Command, Role};

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(|error| error.to_string()).and_then(|runtime| {
        let result = runtime.block_on(play());
        // Does not wait for the blocking task that may still be reading standard input.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn play() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let library = args.next().unwrap_or_default();
    let line: Vec<String> = args.collect();
    match library.as_str() {
        "quinn" => play_with::<quic::Quinn>(line).await,
        "enet" => play_with::<enet::Enet>(line).await,
        "kcp" => play_with::<kcp::Kcp>(line).await,
        "renet" => play_with::<netcode::Renet>(line).await,
        other => Err(format!("unknown library {other:?}, known: quinn enet kcp renet")),
    }
}

async fn play_with<L: Library>(line: Vec<String>) -> Result<(), String> {
    if let Some(flood) = Flood::parse(line.iter().cloned()) {
        return match flood {
            Flood::Count { port } => {
                let mut server = L::serve(([127, 0, 0, 1], port).into(), Delivery::Unreliable).await?;
                role::print_ready(server.port())?;
                flood::count(server.accept().await?).await
            }
            Flood::Send { address, size, time } => {
                flood::send(L::connect(address, Delivery::Unreliable).await?, size, time).await
            }
        };
    }
    let command = Command::parse(line.into_iter()).ok_or("not the command line of a role")?;
    match command.role {
        Role::Echo | Role::Sink(_) => serve::<L>(command).await,
        role @ (Role::Blast(_) | Role::PingPong(_)) => {
            role::client(L::connect(command.address, Delivery::ReliableOrdered).await?, role).await
        }
    }
}

async fn serve<L: Library>(command: Command) -> Result<(), String> {
    let mut server = L::serve(command.address, Delivery::ReliableOrdered).await?;
    role::print_ready(server.port())?;
    let serve = async {
        let connection = server.accept().await?;
        match command.role {
            Role::Sink(traffic) => role::sink(connection, traffic).await,
            _ => {
                role::echo(connection).await;
                Ok(())
            }
        }
    };
    role::until_stdin_line(serve).await
}

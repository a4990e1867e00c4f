//! A bot that plays over the network.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use snowfight::bot;
use snowfight::message::{GameOver, Scope};
use snowfight_server::program::{self, Failure, print};
use snowfight_server::{Player, Protocol};

/// Plays one game of the snowball fight as a bot, and prints the result.
///
/// The exit status is 0 when the game was won or lost, 1 on failure, and 2 for invalid arguments.
#[derive(Debug, Parser)]
#[command(name = "snowfight-client", version)]
struct Arguments {
    /// The address of the server
    #[arg(default_value = "127.0.0.1:8999")]
    server: SocketAddr,
    /// The protocol: game or raknet
    #[arg(long, default_value = "game")]
    protocol: Protocol,
    /// Request snapshots that contain only changes
    #[arg(long)]
    changes: bool,
    /// Request replication instead of snapshots; requires RakNet
    #[arg(long, conflicts_with = "changes")]
    replication: bool,
}

fn main() -> ExitCode {
    let result = program::parse().and_then(|arguments| program::block_on(play(arguments)));
    result.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}

async fn play(arguments: Arguments) -> Result<(), Failure> {
    let mut stop = std::pin::pin!(program::stop_signal()?);
    let scope = match arguments {
        Arguments { replication: true, .. } => Scope::Replicated,
        Arguments { changes: true, .. } => Scope::Changes,
        Arguments { .. } => Scope::Whole,
    };
    let mut player = tokio::select! {
        player = Player::join(arguments.server, arguments.protocol, scope) => player.map_err(Failure::runtime)?,
        () = &mut stop => return Ok(()),
    };
    print(format_args!("joined as player {}", player.id().0))?;
    let game = async {
        loop {
            let input = bot::decide(player.view().entities(), player.id());
            if let Some(result) = player.frame(input).await.map_err(Failure::runtime)? {
                return Ok(result);
            }
        }
    };
    let result = tokio::select! {
        result = game => Some(result?),
        () = stop => None,
    };
    match result {
        Some(GameOver::Winner) => print("won"),
        Some(GameOver::Loser) => print("lost"),
        None => {
            player.leave().await;
            Ok(())
        }
    }
}

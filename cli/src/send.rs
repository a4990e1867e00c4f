//! `rakwire send`: sends messages to an echo server and checks the echoes.

mod arguments;
mod exchange;
mod game_protocol;
mod over_tcp;
mod raknet;

use crate::failure::Failure;
use crate::protocol::ProtocolArgument;

pub(crate) use self::arguments::Arguments;

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.tcp {
        return over_tcp::run(&arguments).await;
    }
    match arguments.protocol {
        Some(ProtocolArgument::GameProtocol) => game_protocol::run(&arguments).await,
        Some(ProtocolArgument::RakNet(version)) => raknet::run(&arguments, Some(version)).await,
        None => raknet::run(&arguments, None).await,
    }
}

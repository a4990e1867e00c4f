//! `rakwire meet`: opens a connection between two machines behind routers.

mod mapped;
mod player;

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use clap::Args;
use rakwire_extras::port_mapping::PortMappingOptions;
use rakwire_native::raknet::{Connection, Delivery, Guid};

use self::player::{FacilitatorAddress, Player};
use crate::failure::{Failure, print};
use crate::host;
use crate::keys::TrustArgument;
use crate::password::PasswordArguments;

/// The message that is sent and echoed.
const HELLO: &[u8] = b"\x86hello";

/// Meets another machine that runs this command, through a facilitator that both can reach.
///
/// Without the GUID of a peer it prints its own, waits, and echoes messages.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The facilitator, such as 203.0.113.1:61111
    #[arg(value_name = "FACILITATOR")]
    facilitator: String,
    /// The other machine, by the 16 hex digits that its command printed
    #[arg(value_name = "GUID", value_parser = guid)]
    peer: Option<Guid>,
    #[command(flatten)]
    password: PasswordArguments,
    /// Require a secure connection to the facilitator, with this public key or key hash; or "any", which protects
    /// against passive eavesdroppers only
    #[arg(long, value_name = "KEY")]
    server_key: Option<TrustArgument>,
    /// The address to send from; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:0")]
    listen: String,
    /// Do not attempt direct connections; let the facilitator forward everything
    #[arg(long)]
    forwarded: bool,
    /// Ask the router to open a port, so that peers behind any other router can reach this machine
    #[arg(long, conflicts_with = "forwarded")]
    map_port: bool,
    /// The router to ask for a port, if it is not that of the default route
    #[arg(long, value_name = "IP", requires = "map_port")]
    gateway: Option<Ipv4Addr>,
    /// Time limit for each of: the facilitator, the other machine, and its echo
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = host::seconds)]
    timeout: Duration,
}

fn guid(text: &str) -> Result<Guid, &'static str> {
    let is_hex = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(text, 16).ok().filter(|_| is_hex);
    number.map(Guid).ok_or("not the 16 hex digits that the other machine printed")
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let password = arguments.password.text()?;
    let facilitator = FacilitatorAddress {
        address: host::resolve(&arguments.facilitator).await?,
        password: &password,
        trust: arguments.server_key.map(|argument| argument.0),
    };
    let Arguments { listen, timeout, forwarded, .. } = &arguments;
    let mapping = arguments.map_port.then(|| {
        let mut options = PortMappingOptions::default();
        options.gateway = arguments.gateway;
        options
    });
    let player = Player::start(listen, &facilitator, *timeout, *forwarded, mapping).await?;
    match arguments.peer {
        Some(peer) => reach(player, peer, *timeout).await,
        None => wait(player).await,
    }
}

async fn reach(mut player: Player, peer: Guid, timeout: Duration) -> Result<(), Failure> {
    let begin = Instant::now();
    let (connection, is_forwarded) = player.reach(peer, timeout).await?;
    let how = if is_forwarded { "through the facilitator" } else { "directly" };
    print(format_args!(
        "connected with {} {how} in {}\n",
        connection.remote(),
        host::millis(begin.elapsed())
    ))?;
    let begin = Instant::now();
    let sent = connection.send(HELLO, Delivery::RELIABLE_ORDERED).await;
    sent.map_err(|error| Failure::runtime(format!("cannot send the message: {error}")))?;
    let echo = tokio::time::timeout(timeout, connection.recv()).await;
    let echo = echo.map_err(|_| Failure::runtime("no echo in time; allow more time with --timeout"))?;
    let echo = echo.ok_or_else(|| Failure::runtime("the connection was closed before the echo"))?;
    if echo.bytes != HELLO {
        return Err(Failure::runtime("the echo differs from the message; is `rakwire meet` running there?"));
    }
    print(format_args!("echo in {}\n", host::millis(begin.elapsed())))?;
    connection.disconnect().await;
    player.close().await;
    Ok(())
}

async fn wait(mut player: Player) -> Result<(), Failure> {
    let stop = host::stop_signal()?;
    print(format_args!("this machine is {:016x}\n", player.guid().0))?;
    let echoes = async {
        loop {
            let connection = player.next_visitor().await?;
            print(format_args!("connected with {}\n", connection.remote()))?;
            tokio::spawn(echo(connection));
        }
    };
    let ended = tokio::select! {
        ended = echoes => ended,
        () = stop => Ok(()),
    };
    player.close().await;
    ended
}

async fn echo(connection: Connection) {
    while let Some(message) = connection.recv().await {
        // Sending fails if the peer has disconnected, and then no echo is needed.
        let _ = connection.send(&message.bytes, message.delivery).await;
    }
}

//! The roles of a benchmark, played by the native driver of this repository.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rakwire_native::{Capacity, Connection, CookiePolicy, Delivery, Endpoint, Message, Options};

use crate::role::{self, BenchConnection, Command, Role, Traffic};

/// The protocol version that all peers of a benchmark speak.
const PROTOCOL: u8 = 11;

/// Play one role of a benchmark, on the command line that `interop/README.md` describes.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    line: Vec<String>,
}

struct Ours(Connection);

/// The bytes of a message.
struct Bytes(Message);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl BenchConnection for Ours {
    type Message = Bytes;

    async fn send(&self, message: &[u8]) -> Result<(), String> {
        let sent = self.0.send(message, Delivery::RELIABLE_ORDERED).await;
        sent.map(drop).map_err(|error| error.to_string())
    }

    async fn recv(&mut self) -> Result<Bytes, String> {
        self.0.recv().await.map(Bytes).ok_or_else(|| "the connection has ended".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let command = Command::parse(arguments.line.iter().cloned()).context("not the command line of a role")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        match command.role {
            Role::Echo | Role::Sink(_) => serve(command).await,
            Role::Blast(traffic) | Role::PingPong(traffic) => connect(command, traffic).await,
        }
    });
    // A task may still wait for standard input.
    runtime.shutdown_background();
    result
}

/// The default memory, or enough for a large message: of several connections one may use a quarter of it for each
/// direction, and parts do not fill their blocks.
fn capacity(size: usize, connections: u16) -> Capacity {
    let default = Capacity::for_connections(connections.into());
    if size <= default.blocks * default.block_size / 8 {
        return default;
    }
    Capacity { blocks: 8 * size.div_ceil(1_024), block_size: 1_024, ..default }
}

async fn serve(command: Command) -> Result<()> {
    let mut options = Options::server(command.connections)?;
    // Two of the peers do not support cookies.
    options.config.cookies = CookiePolicy::Off;
    options.config.max_half_open_per_network = u16::MAX;
    if let Role::Sink(traffic) = command.role {
        options.capacity = capacity(traffic.size, command.connections);
    }
    let endpoint = Endpoint::bind(command.address, options).await?;
    role::print_ready(endpoint.local_addr().port()).map_err(anyhow::Error::msg)?;
    let serve = async {
        if let Role::Sink(traffic) = command.role {
            let connection = endpoint.accept().await.ok_or("the endpoint has ended")?;
            return role::sink(Ours(connection), traffic).await;
        }
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(role::echo(Ours(connection)));
        }
        Ok(())
    };
    role::until_stdin_line(serve).await.map_err(anyhow::Error::msg)
}

async fn connect(command: Command, traffic: Traffic) -> Result<()> {
    let mut options = Options::client()?;
    options.config.protocol_version = PROTOCOL;
    options.capacity = capacity(traffic.size, 1);
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await?;
    let connection = endpoint.connect(command.address).await?;
    role::client(Ours(connection), command.role).await.map_err(|error| anyhow!(error))
}

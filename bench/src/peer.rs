//! A benchmark's sender and receiver made of this repository's own driver.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rakwire_native::{Capacity, Connection, CookiePolicy, Delivery, Endpoint, Incoming, Options};

use crate::part::{self, Command, Link, Part, Plan};

/// The protocol version that all peers of a benchmark speak.
const PROTOCOL: u8 = 11;

/// Play one part of a benchmark, on the command line that `interop/README.md` describes.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    line: Vec<String>,
}

struct Ours(Connection);

/// A message, as its bytes.
struct Bytes(Incoming);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl Link for Ours {
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
    let command = Command::parse(arguments.line.iter().cloned()).context("not the command line of a part")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        match command.part {
            Part::Echo | Part::Sink(_) => serve(command).await,
            Part::Blast(plan) | Part::PingPong(plan) => connect(command, plan).await,
        }
    });
    // Somebody may still wait for the standard input.
    runtime.shutdown_background();
    result
}

/// The default memory, or what a large message needs: one connection may use half of it for each direction.
fn capacity(size: usize, connections: u16) -> Capacity {
    let default = Capacity { connections: connections.into(), ..Capacity::default() };
    if size <= default.blocks * default.block_size / 4 {
        return default;
    }
    Capacity { blocks: 4 * size.div_ceil(1_024), block_size: 1_024, ..default }
}

async fn serve(command: Command) -> Result<()> {
    let mut options = Options::server(command.connections)?;
    // Two of the peers cannot answer with a cookie.
    options.config.cookies = CookiePolicy::Off;
    options.config.max_half_open_per_network = u16::MAX;
    if let Part::Sink(plan) = command.part {
        options.capacity = capacity(plan.size, command.connections);
    }
    let endpoint = Endpoint::bind(command.address, options).await?;
    part::say_ready(endpoint.local_addr().port()).map_err(anyhow::Error::msg)?;
    let play = async {
        if let Part::Sink(plan) = command.part {
            let connection = endpoint.accept().await.ok_or("the endpoint has ended")?;
            return part::sink(Ours(connection), plan).await;
        }
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(part::echo(Ours(connection)));
        }
        Ok(())
    };
    part::until_heard(play).await.map_err(anyhow::Error::msg)
}

async fn connect(command: Command, plan: Plan) -> Result<()> {
    let mut options = Options::client()?;
    options.config.protocol_version = PROTOCOL;
    options.capacity = capacity(plan.size, 1);
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await?;
    let connection = endpoint.connect(command.address).await?;
    part::client(Ours(connection), command.part).await.map_err(|error| anyhow!(error))
}

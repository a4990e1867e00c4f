//! The benchmark roles, implemented with the native driver of this repository.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rakwire_native::secure::{ServerIdentity, ServerTrust, StaticKey};
use rakwire_native::{
    Capacity, ConnectOptions, Connection, CookiePolicy, Delivery, Endpoint, Message, Options,
};

use crate::flood::{self, Flood};
use crate::role::{self, BenchConnection, Command, Role};

/// The protocol version that all peers of a benchmark use.
const PROTOCOL: u8 = 11;

/// Play one role of a benchmark, with the command line that `interop/README.md` and `flood.rs` describe.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Use secure connections, and accept any server key
    #[arg(long)]
    secure: bool,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    line: Vec<String>,
}

struct Ours {
    connection: Connection,
    delivery: Delivery,
}

impl Ours {
    const fn reliable(connection: Connection) -> Self {
        Self { connection, delivery: Delivery::RELIABLE_ORDERED }
    }

    const fn unreliable(connection: Connection) -> Self {
        Self { connection, delivery: Delivery::UNRELIABLE }
    }
}

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
        let sent = self.connection.send(message, self.delivery).await;
        sent.map(drop).map_err(|error| error.to_string())
    }

    async fn send_vec(&self, message: Vec<u8>) -> Result<(), String> {
        let sent = self.connection.send_vec(message, self.delivery).await;
        sent.map(drop).map_err(|error| error.to_string())
    }

    async fn recv(&mut self) -> Result<Bytes, String> {
        self.connection.recv().await.map(Bytes).ok_or_else(|| "the connection is closed".to_owned())
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let secure = arguments.secure;
        if let Some(flood) = Flood::parse(arguments.line.iter().cloned()) {
            return play_flood(flood, secure).await;
        }
        let command = Command::parse(arguments.line.iter().cloned())
            .context("not the command line of a role; see interop/README.md")?;
        match command.role {
            Role::Echo | Role::Sink(_) => serve(command, secure).await,
            Role::Blast(traffic) | Role::PingPong(traffic) => {
                let (_endpoint, connection) = connect(command.address, traffic.size, secure).await?;
                role::client(Ours::reliable(connection), command.role).await.map_err(|error| anyhow!(error))
            }
        }
    });
    // Does not wait for the blocking task that may still be reading standard input.
    runtime.shutdown_background();
    result
}

async fn play_flood(flood: Flood, secure: bool) -> Result<()> {
    let result = match flood {
        Flood::Count { port } => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let endpoint = Endpoint::bind(address, server_options(1, secure)?).await?;
            role::print_ready(endpoint.local_addr().port()).map_err(anyhow::Error::msg)?;
            let connection = endpoint.accept().await.context("the endpoint is closed")?;
            flood::count(Ours::unreliable(connection)).await
        }
        Flood::Send { address, size, time } => {
            let (_endpoint, connection) = connect(address, size, secure).await?;
            flood::send(Ours::unreliable(connection), size, time).await
        }
    };
    result.map_err(anyhow::Error::msg)
}

/// The size of a block for any part of a message: a datagram of 1,492 bytes without the headers of IP, UDP and RakNet.
const PART: usize = 1_460;

/// Returns the default capacity, or a larger one for messages that need more memory.
///
/// If there are several connections, each may use only a quarter of the memory per direction. Some implementations send
/// parts that are shorter than a block.
fn capacity(size: usize, connections: u16) -> Capacity {
    let default = Capacity::for_connections(connections.into());
    if size <= default.blocks * default.block_size / 8 {
        return default;
    }
    Capacity { blocks: 6 * size.div_ceil(PART), block_size: PART, ..default }
}

/// Returns the options of a server for peers of any implementation.
pub(crate) fn server_options(connections: u16, secure: bool) -> Result<Options> {
    let mut options = Options::server(connections)?;
    // Two of the measured implementations do not support cookies. Secure connections require them.
    options.config.cookies = if secure { CookiePolicy::Required } else { CookiePolicy::Off };
    options.config.max_half_open_per_network = u16::MAX;
    options.config.max_message_len = u32::MAX;
    if secure {
        options.secure()?.server = Some(ServerIdentity::new(StaticKey::from_bytes([5; 32])));
    }
    Ok(options)
}

async fn serve(command: Command, secure: bool) -> Result<()> {
    let mut options = server_options(command.connections, secure)?;
    if let Role::Sink(traffic) = command.role {
        options.capacity = capacity(traffic.size, command.connections);
    }
    let endpoint = Endpoint::bind(command.address, options).await?;
    role::print_ready(endpoint.local_addr().port()).map_err(anyhow::Error::msg)?;
    let serve = async {
        if let Role::Sink(traffic) = command.role {
            let connection = endpoint.accept().await.ok_or("the endpoint is closed")?;
            return role::sink(Ours::reliable(connection), traffic).await;
        }
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(role::echo(Ours::reliable(connection)));
        }
        Ok(())
    };
    role::until_stdin_line(serve).await.map_err(anyhow::Error::msg)
}

async fn connect(address: SocketAddr, size: usize, secure: bool) -> Result<(Endpoint, Connection)> {
    let mut options = Options::client()?;
    options.config.protocol_version = PROTOCOL;
    options.capacity = capacity(size, 1);
    options.config.max_message_len = u32::MAX;
    let mut connect = ConnectOptions::default();
    if secure {
        options.secure()?;
        connect.trust = Some(ServerTrust::Any);
    }
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await?;
    let connection = endpoint.connect_with(address, &connect).await?;
    Ok((endpoint, connection))
}

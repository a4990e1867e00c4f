//! Many clients of one server in one process, each with its own socket, that connect and stay idle.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rakwire::raknet::{Capacity, Config, Event, Guid, Peer};
use rakwire::wire::MAX_DATAGRAM;
use tokio::net::UdpSocket;
use tokio::sync::{Semaphore, mpsc};

use crate::role;

/// The number of clients that connect at the same time.
const AT_A_TIME: usize = 16;

/// Hold many idle connections to one server.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    server: SocketAddr,
    #[arg(long)]
    connections: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    allow_sockets(u64::from(arguments.connections) + 64)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(hold(arguments));
    runtime.shutdown_background();
    result
}

/// Raises the soft limit of open files to `count` if it is lower. Fails if the hard limit is lower.
pub(crate) fn allow_sockets(count: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < count {
        setrlimit(Resource::RLIMIT_NOFILE, count.min(hard), hard)?;
    }
    if hard < count {
        bail!(
            "the system allows {hard} open files, but {count} are needed: raise the hard limit (`ulimit -Hn`)"
        );
    }
    Ok(())
}

async fn hold(arguments: &Arguments) -> Result<()> {
    let permits = Arc::new(Semaphore::new(AT_A_TIME));
    let (connected, mut notifications) = mpsc::unbounded_channel();
    for number in 0..arguments.connections {
        let (permits, connected, server) = (Arc::clone(&permits), connected.clone(), arguments.server);
        tokio::spawn(async move {
            // A client that fails drops its sender, so the loop below ends before all clients have connected.
            let _ = client(number, server, &permits, connected).await;
        });
    }
    drop(connected);
    for number in 0..arguments.connections {
        notifications.recv().await.with_context(|| format!("only {number} of the clients connected"))?;
    }
    role::print_line("connected").map_err(anyhow::Error::msg)?;
    role::wait_for_line().await.map_err(anyhow::Error::msg)
}

async fn client(
    number: u32,
    server: SocketAddr,
    permits: &Semaphore,
    connected: mpsc::UnboundedSender<()>,
) -> Result<()> {
    let mut permit = Some(permits.acquire().await?);
    let mut connected = Some(connected);
    let mut config = Config::new([5; 32]);
    config.guid = Guid(u64::from(number) + 1_000_000);
    config.protocol_version = 11;
    let capacity = Capacity { connections: 1, blocks: 16, block_size: 256 };
    let mut peer = Peer::with_capacity(capacity, config);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    socket.connect(server).await?;
    let start = Instant::now();
    let now = || rakwire::Instant::from_micros(u64::try_from(start.elapsed().as_micros()).unwrap_or(0));
    peer.connect(now(), server)?;
    loop {
        while let Some(event) = peer.poll_event() {
            if matches!(event, Event::ConnectFailed { .. } | Event::Disconnected { .. }) {
                bail!("the connection is closed");
            }
            if matches!(event, Event::Connected { .. }) {
                drop(permit.take());
                if let Some(connected) = connected.take() {
                    connected.send(())?;
                }
            }
        }
        let mut buffer = [0; MAX_DATAGRAM];
        while let Some(transmit) = peer.poll_transmit(now(), &mut buffer) {
            socket.send(transmit.payload).await?;
        }
        let due = peer.poll_timeout().map(|due| Duration::from_micros(due.as_micros()));
        let due = start + due.unwrap_or(Duration::from_secs(3_600));
        let mut buffer = [0; 2_048];
        tokio::select! {
            received = socket.recv(&mut buffer) => {
                let length = received?;
                peer.handle_datagram(now(), server, buffer.get(..length).unwrap_or_default());
            }
            () = tokio::time::sleep_until(due.into()) => peer.handle_timeout(now()),
        }
    }
}

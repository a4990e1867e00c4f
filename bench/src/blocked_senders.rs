//! Measures how much blocked senders slow down the other connections of a server.
//!
//! One connection measures round trips while many others have senders that wait for acknowledgements which never
//! arrive.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use rakwire_native::{Connection, Delivery, Endpoint, Options};
use tokio::sync::oneshot;

use crate::many_connections::allow_sockets;

/// The number of rounds. Each measures first without and then with blocked senders, so that a change in the machine's
/// load affects both results.
const ROUNDS: usize = 10;
/// The message of the blocked senders.
const WAITING: &[u8] = &[0x86; 400];

/// Measure round trips of one connection while the senders of many others are blocked.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of connections with blocked senders
    #[arg(long, default_value_t = 1_000)]
    senders: u16,
    /// The number of round trips with and without blocked senders, each
    #[arg(long, default_value_t = 20_000)]
    round_trips: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    allow_sockets(u64::from(arguments.senders) + 64)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(compare(arguments));
    runtime.shutdown_background();
    result
}

async fn compare(arguments: &Arguments) -> Result<()> {
    let idle = Subject::new(0).await?;
    let beside = Subject::new(arguments.senders).await?;
    let before = beside.server.stats().sender_wakes;
    let mut medians = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (subject, times) in [&idle, &beside].into_iter().zip(&mut medians) {
            subject.ping_pong(arguments.round_trips / ROUNDS, times).await?;
        }
    }
    let [idle, blocked] = medians.map(|mut times| median(&mut times));
    let wakes = beside.server.stats().sender_wakes - before;
    println!("round trip without blocked senders: {:.1} µs", idle.as_secs_f64() * 1e6);
    println!("round trip with {} blocked senders: {:.1} µs", arguments.senders, blocked.as_secs_f64() * 1e6);
    println!("ratio: {:.2}", blocked.as_secs_f64() / idle.as_secs_f64());
    println!("blocked senders that were woken during the measurement: {wakes}");
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A server with blocked senders on its other connections, and the client that measures round trips to it.
struct Subject {
    server: Endpoint,
    _client: Endpoint,
    here: Connection,
}

impl Subject {
    async fn new(senders: u16) -> Result<Self> {
        let mut options = Options::server(senders + 1)?;
        // The clients are gone; their connections must not time out during the measurement.
        options.config.timeout = Duration::from_secs(3_600);
        let server = Endpoint::bind("127.0.0.1:0", options).await?;
        for connection in vanished(&server, senders).await? {
            tokio::spawn(async move { while connection.send(WAITING, Delivery::RELIABLE).await.is_ok() {} });
        }
        let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
        let (here, there) = tokio::join!(client.connect(server.local_addr()), server.accept());
        let there = there.ok_or_else(|| anyhow!("the server endpoint is closed"))?;
        tokio::spawn(async move {
            while let Some(message) = there.recv().await {
                if there.send(&message.bytes, message.delivery).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self { server, _client: client, here: here? })
    }

    async fn ping_pong(&self, count: usize, times: &mut Vec<Duration>) -> Result<()> {
        for _ in 0..count {
            let start = Instant::now();
            self.here.send(&[0x86; 32], Delivery::RELIABLE).await?;
            self.here.recv().await.context("the connection is closed")?;
            times.push(start.elapsed());
        }
        Ok(())
    }
}

/// Connects clients that then stop sending, and returns the server's connections to them.
async fn vanished(server: &Endpoint, count: u16) -> Result<Vec<Connection>> {
    let address = server.local_addr();
    let (ready, is_ready) = oneshot::channel();
    let (go, may_go) = mpsc::channel();
    let thread = std::thread::spawn(move || connect_and_vanish(address, count, ready, &may_go));
    let mut accepted = Vec::new();
    while accepted.len() < usize::from(count) {
        accepted.push(server.accept().await.context("the server endpoint is closed")?);
    }
    is_ready.await.context("the clients did not connect")?;
    go.send(())?;
    let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
    joined.map_err(|_| anyhow!("the clients panicked"))??;
    Ok(accepted)
}

fn connect_and_vanish(
    address: SocketAddr,
    count: u16,
    ready: oneshot::Sender<()>,
    may_go: &mpsc::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let clients = runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..count {
            let endpoint = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
            let connection = endpoint.connect(address).await?;
            clients.push((endpoint, connection));
        }
        // The endpoints still have to send the last datagrams of their handshakes.
        tokio::time::sleep(Duration::from_millis(50)).await;
        ready.send(()).map_err(|()| anyhow!("the server side has failed"))?;
        anyhow::Ok(clients)
    })?;
    may_go.recv()?;
    // Stops the tasks and their sockets first, so that the clients do not send a disconnect.
    drop(runtime);
    drop(clients);
    Ok(())
}

//! A benchmark's sender and receiver made of this repository's own driver. Programs around other RakNets have the same
//! command line and the same output, which `interop/README.md` describes.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rakwire_native::{Capacity, Connection, Delivery, Endpoint, Options};
use tokio::io::AsyncReadExt;

use crate::message::{self, DONE, MIN_SIZE, Stamps, Stream};

/// The protocol version that all peers of the benchmark speak.
const PROTOCOL: u8 = 11;

/// Plays one part of a benchmark.
#[derive(Debug, Subcommand)]
pub(crate) enum Part {
    /// Echo every message.
    Server(Listen),
    /// Take a stream of messages, confirm the last one and print how it was.
    Sink(Listen),
    /// Connect, wait for a line on the standard input, send a stream of messages as fast as it goes.
    Blast(Connect),
    /// Connect, wait for a line, send messages of which each waits for the echo of the one before.
    Pingpong(Connect),
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    #[arg(long)]
    port: u16,
    /// Connections to have room for
    #[arg(long, default_value_t = 16)]
    connections: u16,
    #[arg(long)]
    protocol: Option<u8>,
    #[command(flatten)]
    messages: Messages,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    server: SocketAddr,
    #[arg(long)]
    protocol: Option<u8>,
    #[command(flatten)]
    messages: Messages,
}

#[derive(Clone, Copy, Debug, Args)]
struct Messages {
    #[arg(long, default_value_t = 1_000)]
    count: u32,
    #[arg(long, default_value_t = 100)]
    size: usize,
    /// Let each message carry its time, and tell how long they took
    #[arg(long)]
    timed: bool,
}

impl Messages {
    const fn stamps(self) -> Stamps {
        if self.timed { Stamps::On } else { Stamps::Off }
    }

    /// The default memory, or what a large message needs: one connection may use half of it for each direction.
    fn capacity(self, connections: usize) -> Capacity {
        let default = Capacity { connections, ..Capacity::default() };
        if self.size <= default.blocks * default.block_size / 4 {
            return default;
        }
        Capacity { connections, blocks: 4 * self.size.div_ceil(1_024), block_size: 1_024 }
    }
}

pub(crate) fn run(part: &Part) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        match part {
            Part::Server(listen) => serve(listen).await,
            Part::Sink(listen) => sink(listen).await,
            Part::Blast(connect) => blast(connect).await,
            Part::Pingpong(connect) => pingpong(connect).await,
        }
    });
    // Somebody may still wait for the standard input.
    runtime.shutdown_background();
    result
}

pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Waits for a line on the standard input, or its end.
pub(crate) async fn heard() -> Result<()> {
    let mut byte = [0];
    let mut input = tokio::io::stdin();
    while input.read(&mut byte).await? == 1 && byte != *b"\n" {}
    Ok(())
}

async fn listen(listen: &Listen) -> Result<Endpoint> {
    let mut options = Options::server(listen.connections)?;
    options.capacity = listen.messages.capacity(listen.connections.into());
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port)), options).await?;
    say(&format!("ready {}", endpoint.local_addr().port()))?;
    Ok(endpoint)
}

async fn serve(options: &Listen) -> Result<()> {
    let endpoint = listen(options).await?;
    let accept = async {
        while let Some(connection) = endpoint.accept().await {
            tokio::spawn(async move {
                while let Some(message) = connection.recv().await {
                    if connection.send(&message.bytes, message.delivery).await.is_err() {
                        break;
                    }
                }
            });
        }
    };
    tokio::select! {
        () = accept => Ok(()),
        heard = heard() => heard,
    }
}

async fn sink(options: &Listen) -> Result<()> {
    let endpoint = listen(options).await?;
    let messages = options.messages;
    let take = async {
        let connection = endpoint.accept().await.context("the endpoint has ended")?;
        let mut stream = Stream::default();
        while stream.count() < messages.count {
            let message = connection.recv().await.context("the connection has ended")?;
            stream.take(&message.bytes, messages.size, messages.stamps())?;
        }
        connection.send(DONE, Delivery::RELIABLE_ORDERED).await?;
        let (p50, p99) = (stream.percentile(0.5), stream.percentile(0.99));
        let line = serde_json::json!({ "messages": stream.count(), "p50_us": p50, "p99_us": p99 });
        say(&line.to_string())?;
        std::future::pending::<Result<()>>().await
    };
    tokio::select! {
        taken = take => taken,
        heard = heard() => heard,
    }
}

async fn connect(options: &Connect) -> Result<(Endpoint, Connection)> {
    if options.messages.size < MIN_SIZE {
        bail!("a message has at least {MIN_SIZE} bytes");
    }
    let mut client = Options::client()?;
    client.config.protocol_version = options.protocol.unwrap_or(PROTOCOL);
    client.capacity = options.messages.capacity(1);
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), client).await?;
    let connection = endpoint.connect(options.server).await?;
    say("connected")?;
    heard().await?;
    Ok((endpoint, connection))
}

async fn blast(options: &Connect) -> Result<()> {
    let (_endpoint, connection) = connect(options).await?;
    let messages = options.messages;
    let mut message = vec![0; messages.size];
    let began = Instant::now();
    for number in 0..messages.count {
        message::fill(&mut message, number, messages.stamps());
        connection.send(&message, Delivery::RELIABLE_ORDERED).await?;
    }
    let done = connection.recv().await.context("the connection has ended")?;
    let seconds = began.elapsed().as_secs_f64();
    if done.bytes != DONE {
        bail!("the receiver said something else");
    }
    say(&serde_json::json!({ "messages": messages.count, "seconds": seconds }).to_string())?;
    heard().await
}

async fn pingpong(options: &Connect) -> Result<()> {
    let (_endpoint, connection) = connect(options).await?;
    let messages = options.messages;
    let mut message = vec![0; messages.size];
    let mut nanos = Vec::with_capacity(messages.count as usize);
    let began = Instant::now();
    for number in 0..messages.count {
        message::fill(&mut message, number, Stamps::Off);
        let sent = Instant::now();
        connection.send(&message, Delivery::RELIABLE_ORDERED).await?;
        let echo = connection.recv().await.context("the connection has ended")?;
        nanos.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if echo.bytes != message {
            bail!("a wrong echo");
        }
    }
    tell_round_trips(&mut nanos, began)?;
    heard().await
}

pub(crate) fn tell_round_trips(nanos: &mut [u64], began: Instant) -> Result<()> {
    let seconds = began.elapsed().as_secs_f64();
    let (p50, p99) = (message::percentile(nanos, 0.5), message::percentile(nanos, 0.99));
    let line = serde_json::json!({
        "messages": nanos.len(), "seconds": seconds, "p50_us": p50, "p99_us": p99
    });
    say(&line.to_string())
}

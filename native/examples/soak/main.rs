//! Runs a server and clients in real time, and fails if memory, files or tasks grow.
//!
//! ```sh
//! cargo xtask soak --minutes 60
//! ```
//!
//! Clients connect over a lossy network, send messages of all sizes, compare the echoes, and leave with or without a
//! disconnect. New clients replace them until the time is over.

mod client;
mod resources;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rakwire_native::{Endpoint, Options};

use client::SessionError;
use resources::{Sample, Samples};

/// The number of clients at a time.
const CLIENTS: u64 = 24;

/// The number of samples in a run.
const SAMPLES: u32 = 60;

/// The maximum time until the server has removed all clients: several times its timeout for vanished clients.
const SETTLE: Duration = Duration::from_secs(120);

/// The counters of all clients.
#[derive(Default)]
struct Totals {
    sessions: AtomicU64,
    echoes: AtomicU64,
    broken: AtomicU64,
    is_over: AtomicBool,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let Some(minutes) = std::env::args().nth(1).and_then(|minutes| minutes.parse::<u32>().ok()) else {
        eprintln!("usage: soak MINUTES");
        return ExitCode::from(2);
    };
    match run(Duration::from_secs(60) * minutes.max(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(length: Duration) -> Result<(), SessionError> {
    let mut options = Options::server(64)?;
    options.simulate = Some("loss=2%,latency=10ms".parse()?);
    options.config.timeout = Duration::from_secs(10);
    let server = Arc::new(Endpoint::bind("127.0.0.1:0", options).await?);
    let address = server.local_addr();
    let serving = tokio::spawn(serve(Arc::clone(&server)));
    let totals = Arc::new(Totals::default());
    // The driver starts some of its tasks with the first connection, so the baseline is taken after one session.
    client::session(address, &mut client::Random::new(0)).await?;
    let forgotten = async {
        while server.stats().connections > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(SETTLE, forgotten).await.map_err(|_elapsed| "the first connection stays")?;
    let at_start = Sample::take()?;

    let clients: Vec<_> =
        (0..CLIENTS).map(|seed| tokio::spawn(client::run(address, seed, Arc::clone(&totals)))).collect();
    let mut samples = Samples::default();
    let begun = Instant::now();
    for count in 1..=SAMPLES {
        tokio::time::sleep_until((begun + length * count / SAMPLES).into()).await;
        let sample = Sample::take()?;
        println!(
            "{:>5} s: {sample}, {} connections, {} sessions, {} echoes",
            begun.elapsed().as_secs(),
            server.stats().connections,
            totals.sessions.load(Ordering::Relaxed),
            totals.echoes.load(Ordering::Relaxed),
        );
        samples.add(sample);
    }
    totals.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await?;
    }
    settle(&server, at_start).await?;
    server.close().await;
    serving.await?;
    match totals.broken.load(Ordering::Relaxed) {
        0 => samples.check().map_err(Into::into),
        broken => Err(format!("{broken} sessions broke a promise").into()),
    }
}

/// Waits until the server has removed all clients and the process uses no more files and tasks than in the baseline.
async fn settle(server: &Endpoint, before: Sample) -> Result<(), SessionError> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let sample = Sample::take()?;
        let connections = server.stats().connections;
        if connections == 0 && sample.files <= before.files && sample.tasks <= before.tasks {
            println!("at the end: {sample}; after the first client: {before}");
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{connections} connections and {sample} stay; {before} after the first client"
            )
            .into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Sends every message back until the endpoint is closed.
async fn serve(server: Arc<Endpoint>) {
    while let Some(connection) = server.accept().await {
        tokio::spawn(async move {
            while let Some(message) = connection.recv().await {
                if connection.send(&message.bytes, message.delivery).await.is_err() {
                    break;
                }
            }
        });
    }
}

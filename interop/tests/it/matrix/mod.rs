//! The interop matrix: every foreign peer with ours, in both directions, with every reliability.
//!
//! The results are written to a page in cargo's folder for tests, and `cargo xtask test --only interop` compares
//! `docs/interop.md` with it. `README.md` of this folder describes the command line and the quirks of the programs.

mod cases;
mod exchange;
mod foreign;
mod proxy;
mod table;

use std::sync::Arc;
use std::time::Instant;

use cases::{Case, Cell, Expected, ROLES, Role};
use foreign::PEERS;
use tokio::sync::Semaphore;

/// The number of cells that run at the same time.
const AT_ONCE: usize = 3;
/// The maximum number of attempts for a peer to show its known limit, because a garbled message may be mistaken for
/// another one.
const TRIES: u64 = 3;

async fn run(cell: Cell, seed: u64) -> Result<(), String> {
    let run = async {
        match cell.role {
            Role::Server => exchange::with_server(cell, seed).await,
            Role::Client => exchange::with_client(cell, seed).await,
        }
    };
    tokio::time::timeout(cell.time_limit(), run).await.unwrap_or_else(|_| Err("not done in time".to_owned()))
}

/// Runs a cell and returns the text of its result.
async fn outcome(cell: Cell, number: u64) -> Result<String, String> {
    let (why, symptom, always) = match cell.expected() {
        Expected::Impossible(why) => return Ok(format!("limit: {why}")),
        Expected::Pass => return run(cell, number).await.map(|()| "pass".to_owned()),
        Expected::Limit { why, symptom, always } => (why, symptom, always),
    };
    let mut seen = Vec::new();
    for attempt in 0..TRIES {
        match run(cell, number + 1_000 * attempt).await {
            Ok(()) if always => seen.push("it passed".to_owned()),
            Ok(()) => return Ok(format!("limit: {why}")),
            Err(error) if error.contains(symptom) => return Ok(format!("limit: {why}")),
            Err(error) => seen.push(error),
        }
    }
    Err(format!("the expected failure {symptom:?} did not occur, but {}", seen.join("; ")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pairing_gives_its_documented_result() {
    let start = Instant::now();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = Vec::new();
    for case in Case::all() {
        for peer in PEERS {
            for role in ROLES {
                let (places, number) = (Arc::clone(&places), tasks.len() as u64);
                let cell = Cell { peer, role, case };
                let task = tokio::spawn(async move {
                    let _place = places.acquire().await;
                    let start = Instant::now();
                    let result = outcome(cell, number).await;
                    println!("{cell}: {result:?} in {:.2?}", start.elapsed());
                    result
                });
                tasks.push((cell, task));
            }
        }
    }
    let mut results = Vec::new();
    for (cell, task) in tasks {
        results.push((cell, task.await.unwrap_or_else(|error| Err(error.to_string()))));
    }
    println!("{} cells in {:.1?}", results.len(), start.elapsed());
    table::write(&results);
}

//! The measured server. In each tick it receives the messages of all clients and sends one message to every client.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use anyhow::{Context, Result};
use rakwire_native::{Delivery, Endpoint};
use tokio::runtime::{Builder, Runtime};
use tokio::time::MissedTickBehavior;

use super::size::{MESSAGE, TICK};
use super::window::{Record, print_line};
use crate::peer;

pub(super) fn run(clients: u16, shards: usize) -> Result<()> {
    let (runtimes, endpoints) = bind(clients, shards)?;
    let port = endpoints.first().context("there must be at least one shard")?.local_addr().port();
    let record = Record::begin();
    for (runtime, endpoint) in runtimes.into_iter().zip(endpoints) {
        let record = record.clone();
        std::thread::spawn(move || runtime.block_on(serve(endpoint, record)));
    }
    print_line(&format!("ready {port}"))?;
    record.print_at_each_line()
}

/// Binds endpoints to one address, each with a single-threaded runtime.
pub(super) fn bind(clients: u16, shards: usize) -> Result<(Vec<Runtime>, Vec<Endpoint>)> {
    let runtime = |_| Builder::new_current_thread().enable_all().build();
    let runtimes = (0..shards).map(runtime).collect::<io::Result<Vec<Runtime>>>()?;
    let handles: Vec<_> = runtimes.iter().map(|runtime| runtime.handle().clone()).collect();
    let first = runtimes.first().context("there must be at least one shard")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // The system does not distribute the clients evenly, so each shard accepts up to all of them.
    let options = peer::server_options(clients, false)?;
    let endpoints = first.block_on(Endpoint::bind_shards_on(address, &options, &handles))?;
    Ok((runtimes, endpoints))
}

async fn serve(endpoint: Endpoint, record: Record) {
    let mut connections = Vec::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let message = [0x86; MESSAGE];
    loop {
        let due = ticks.tick().await.into_std();
        let began = Instant::now();
        while let Ok(connection) = endpoint.try_accept() {
            connections.push(connection);
        }
        let mut received = 0;
        for connection in &connections {
            while connection.try_recv().is_ok() {
                received += 1;
            }
            // If the send queue of a client is full, its message is skipped in this tick.
            let _ = connection.try_send(&message, Delivery::UNRELIABLE);
        }
        record.tick(due, began);
        record.received(received);
    }
}

//! A server and its clients that alternate, so that each shard has a core to itself while it works.

use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rakwire_native::{Connection, Delivery, Endpoint};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout;

use super::load::Load;
use super::server;
use super::size::{MESSAGE, TICK};
use super::window::{Record, print_line};
use crate::process::{self, on_core};

/// The time between ticks. It includes the work of the server and then that of the clients, which takes about as long.
const INTERVAL: Duration = TICK.saturating_mul(2);
/// The number of ticks before the first measured one.
const WARM_UP: u32 = 15;
/// The time after which a shard considers a client's message of this tick lost.
const LONGEST: Duration = Duration::from_millis(200);

/// The server's work in all measured ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ticks {
    pub(super) ticks: u32,
    /// The working time of the slowest shard of each tick, summed over all ticks.
    pub(super) seconds: f64,
    /// The number of messages from clients that did not arrive.
    pub(super) lost: u64,
}

pub(super) fn run(clients: u16, shards: usize, seconds: f64) -> Result<()> {
    let (runtimes, endpoints) = server::bind(clients, shards)?;
    let address = endpoints.first().map(Endpoint::local_addr).context("there must be at least one shard")?;
    let cores = process::allowed_cores()?.into_iter().cycle();
    let (connected, all_are_connected) = watch::channel(false);
    let meeting = Arc::new(Meeting::new(shards));
    for ((runtime, endpoint), core) in runtimes.into_iter().zip(endpoints).zip(cores) {
        let shard = Shard { endpoint, connections: Vec::new(), meeting: meeting.clone() };
        let all_are_connected = all_are_connected.clone();
        std::thread::spawn(move || on_core(core, || shard.run(&runtime, all_are_connected)));
    }
    let mut load = Load::new(address, clients, false, Record::begin())?;
    load.connect()?;
    connected.send(true)?;
    for _ in 0..WARM_UP {
        tick(&mut load, &meeting)?;
    }
    let (end, mut ticks) = (Instant::now() + Duration::from_secs_f64(seconds), Ticks::default());
    while Instant::now() < end {
        ticks.add(clients, &tick(&mut load, &meeting)?);
    }
    print_line(&serde_json::to_string(&ticks)?)
}

/// Runs a tick: every client sends a message, the server receives them and sends a message to every client, and the
/// clients receive theirs.
fn tick(load: &mut Load, meeting: &Meeting) -> Result<Vec<Work>> {
    let next = Instant::now() + INTERVAL;
    load.send_all();
    meeting.barrier.wait();
    meeting.barrier.wait();
    load.receive()?;
    std::thread::sleep(next.saturating_duration_since(Instant::now()));
    Ok(meeting.take())
}

impl Ticks {
    fn add(&mut self, clients: u16, shards: &[Work]) {
        let received = shards.iter().map(|work| work.received).sum();
        self.ticks += 1;
        self.seconds += shards.iter().map(|work| work.time).max().unwrap_or_default().as_secs_f64();
        self.lost += u64::from(clients).saturating_sub(received);
    }
}

/// The work of a shard in a tick.
#[derive(Clone, Copy, Debug)]
struct Work {
    time: Duration,
    received: u64,
}

/// The barrier at which the shards and the clients wait for each other, and the work that the shards have reported.
struct Meeting {
    barrier: Barrier,
    work: Mutex<Vec<Work>>,
}

impl Meeting {
    fn new(shards: usize) -> Self {
        Self { barrier: Barrier::new(shards + 1), work: Mutex::default() }
    }

    fn report(&self, work: Work) {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }

    fn take(&self) -> Vec<Work> {
        std::mem::take(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Shard {
    endpoint: Endpoint,
    connections: Vec<Connection>,
    meeting: Arc<Meeting>,
}

impl Shard {
    /// Accepts clients until all are connected, and then runs a tick whenever the clients pause, forever.
    ///
    /// The runtime has one thread, so the endpoint does nothing between ticks.
    fn run(mut self, runtime: &Runtime, all_are_connected: watch::Receiver<bool>) {
        runtime.block_on(self.accept(all_are_connected));
        loop {
            self.meeting.barrier.wait();
            let began = Instant::now();
            let received = runtime.block_on(self.tick());
            self.meeting.report(Work { time: began.elapsed(), received });
            self.meeting.barrier.wait();
        }
    }

    async fn accept(&mut self, mut all_are_connected: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                Some(connection) = self.endpoint.accept() => self.connections.push(connection),
                _ = all_are_connected.wait_for(|all| *all) => return,
            }
        }
    }

    /// Receives a message from every client and sends one to every client. Returns the number of received messages.
    async fn tick(&mut self) -> u64 {
        // The last clients may not have been accepted yet when all clients were connected.
        while let Ok(connection) = self.endpoint.try_accept() {
            self.connections.push(connection);
        }
        let mut received = 0;
        for connection in &self.connections {
            received += u64::from(matches!(timeout(LONGEST, connection.recv()).await, Ok(Some(_))));
        }
        for connection in &self.connections {
            // If the send queue of a client is full, its message is skipped in this tick.
            let _ = connection.try_send(&[0x86; MESSAGE], Delivery::UNRELIABLE);
        }
        // Lets the driver's task send the queued messages.
        tokio::task::yield_now().await;
        received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_takes_as_long_as_its_slowest_shard() {
        let work = |millis, received| Work { time: Duration::from_millis(millis), received };
        let mut ticks = Ticks::default();
        ticks.add(10, &[work(250, 4), work(500, 6)]);
        ticks.add(10, &[work(250, 4), work(125, 5)]);
        assert_eq!(ticks, Ticks { ticks: 2, seconds: 0.75, lost: 1 });
    }
}

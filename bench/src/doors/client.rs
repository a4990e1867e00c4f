//! The native client: the same work as `capi/benches/door.c`, with the polled endpoint or with the endpoint of tasks.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rakwire::endpoint::{ConnectionId, Event};
use rakwire_native::{Delivery, Endpoint, Options, RakNet, polled};

use super::work::LENGTH;

const MESSAGE: [u8; LENGTH] = [0x86; LENGTH];
/// The client that connects. Any free port is used.
const LOCAL: &str = "127.0.0.1:0";
/// The longest time for which a polled client waits for a datagram, in milliseconds.
const LONGEST_WAIT: u16 = 100;

/// Keep messages in flight to an echo server, for doors.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    address: SocketAddr,
    /// The number of messages in flight
    window: usize,
    seconds: f64,
    /// Use the endpoint of tasks instead of the polled one
    #[arg(long)]
    tasks: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let (window, time) = (arguments.window, Duration::from_secs_f64(arguments.seconds));
    if arguments.tasks {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(with_tasks(arguments.address, window, time));
    }
    let mut client = Client::connect(arguments.address)?;
    client.play(window, time / 2)?;
    wait_for_line("connected")?;
    let (echoes, elapsed) = client.play(window, time)?;
    wait_for_line(&result_line(echoes, elapsed))
}

fn result_line(echoes: usize, elapsed: Duration) -> String {
    format!("{echoes} {}", elapsed.as_secs_f64())
}

/// Prints a line, and waits for one.
fn wait_for_line(line: &str) -> Result<()> {
    println!("{line}");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// A polled endpoint and its connection.
struct Client {
    endpoint: polled::Endpoint<RakNet>,
    server: ConnectionId,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Self> {
        let mut endpoint = polled::Endpoint::bind(LOCAL, Options::client()?)?;
        let server = endpoint.connect(address)?;
        let mut client = Self { endpoint, server };
        while client.receive(|event| matches!(event, Event::Connected { .. })) == 0 {
            client.wait()?;
        }
        Ok(client)
    }

    /// Handles received datagrams. Returns the number of events of a kind.
    fn receive(&mut self, is_it: impl Fn(&Event<'_, RakNet>) -> bool) -> usize {
        let mut found = 0;
        self.endpoint.update();
        while let Some(event) = self.endpoint.poll_event() {
            found += usize::from(is_it(&event));
        }
        found
    }

    fn echoes(&mut self) -> usize {
        self.receive(|event| matches!(event, Event::Message { .. }))
    }

    fn send(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.endpoint.send(self.server, &MESSAGE, Delivery::RELIABLE_ORDERED)?;
        }
        self.endpoint.flush();
        Ok(())
    }

    /// Waits for a datagram or a timer.
    fn wait(&self) -> Result<()> {
        let timer = self.endpoint.timeout().map_or(u128::MAX, |timer| timer.as_millis());
        let limit = u16::try_from(timer).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        let mut sockets = [PollFd::new(self.endpoint.socket().as_fd(), PollFlags::POLLIN)];
        poll(&mut sockets, PollTimeout::from(limit))?;
        Ok(())
    }

    /// Keeps messages in flight for a time, and then waits for the last echoes. Returns the number of echoes within
    /// the time, and the time.
    fn play(&mut self, window: usize, time: Duration) -> Result<(usize, Duration)> {
        let begin = Instant::now();
        let (mut echoes, mut elapsed) = (0, Duration::ZERO);
        self.send(window)?;
        while elapsed < time {
            let arrived = self.echoes();
            echoes += arrived;
            if arrived > 0 {
                self.send(arrived)?;
            } else if window > 1 {
                self.wait()?;
            }
            elapsed = begin.elapsed();
        }
        let mut in_flight = window;
        while in_flight > 0 {
            in_flight = in_flight.saturating_sub(self.echoes());
        }
        Ok((echoes, elapsed))
    }
}

async fn with_tasks(address: SocketAddr, window: usize, time: Duration) -> Result<()> {
    let endpoint = Endpoint::bind(LOCAL, Options::client()?).await?;
    let connection = endpoint.connect(address).await?;
    let play = async |time: Duration| {
        let begin = Instant::now();
        let (mut echoes, mut elapsed) = (0, Duration::ZERO);
        for _ in 0..window {
            connection.send(&MESSAGE, Delivery::RELIABLE_ORDERED).await?;
        }
        while elapsed < time {
            connection.recv().await.context("the connection is closed")?;
            connection.send(&MESSAGE, Delivery::RELIABLE_ORDERED).await?;
            echoes += 1;
            elapsed = begin.elapsed();
        }
        for _ in 0..window {
            connection.recv().await.context("the connection is closed")?;
        }
        anyhow::Ok((echoes, elapsed))
    };
    play(time / 2).await?;
    wait_for_line("connected")?;
    let (echoes, elapsed) = play(time).await?;
    wait_for_line(&result_line(echoes, elapsed))
}

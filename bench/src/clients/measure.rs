//! Runs one measurement of a server with many clients.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::alternate::Ticks;
use super::size::Size;
use super::window::Window;
use crate::pairing::itself;
use crate::process::{self, Program};

/// The pause between the last handshake and the measurement.
const REST: Duration = Duration::from_millis(500);

/// The server under measurement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// A socket set up by quinn-udp.
    Udp,
    /// A socket without control messages, like that of the native driver.
    PlainUdp,
    /// rakwire with this many shards (endpoints at one address).
    Shards(u32),
}

/// The cores of the server and the clients.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cores {
    /// The server on one core and the clients on the other.
    Apart(process::Cores),
    /// Both programs on any core.
    Shared,
}

/// The measured load of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Messages per second, the sum of both directions.
    pub(super) per_second: f64,
    /// CPU time of the server per message, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) tick_p99_us: f64,
    pub(super) late_p99_us: f64,
}

impl Measured {
    fn of(server: Window, load: Window, cpu: Duration) -> Self {
        let messages = (server.received + load.received) as f64;
        Self {
            per_second: server.received as f64 / server.seconds + load.received as f64 / load.seconds,
            cpu_us: cpu.as_secs_f64() * 1e6 / messages.max(1.0),
            tick_p99_us: server.tick_p99_us,
            late_p99_us: server.late_p99_us,
        }
    }
}

/// Starts a server and its clients, and measures them for `size.seconds`.
pub(super) fn once(subject: Subject, cores: Cores, size: Size, limit: Duration) -> Result<Measured> {
    let mut server = start(cores, |cores| cores.receiver, &server_role(subject, size), limit)?;
    let address = format!("127.0.0.1:{}", server.port()?);
    let clients = size.clients.to_string();
    let mut role = vec!["load", &address, "--clients", &clients];
    role.extend(matches!(subject, Subject::Udp | Subject::PlainUdp).then_some("--udp"));
    let role: Vec<String> = role.into_iter().map(str::to_owned).collect();
    let mut load = start(cores, |cores| cores.sender, &role, limit)?;
    load.connected().context("the clients did not connect")?;
    std::thread::sleep(REST);
    windows(&mut server, &mut load)?;
    let before = server.cpu()?;
    std::thread::sleep(Duration::from_secs_f64(size.seconds));
    let cpu = server.cpu()? - before;
    let (served, loaded) = windows(&mut server, &mut load)?;
    ensure!(
        served.received > 0 && loaded.received > 0,
        "no message arrived at the server, or none at the clients"
    );
    Ok(Measured::of(served, loaded, cpu))
}

/// Measures how long the server takes for a tick while the clients pause. Returns the mean in milliseconds.
pub(super) fn tick_ms(shards: u32, size: Size, limit: Duration) -> Result<f64> {
    let seconds = size.seconds / 2.0;
    let numbers = [size.clients.to_string(), shards.to_string(), seconds.to_string()];
    let [clients, shards, seconds] = &numbers;
    let mut command = itself()?;
    command.args(["clients", "alternate", "--clients", clients, "--shards", shards, "--seconds", seconds]);
    let ticks: Ticks = serde_json::from_str(&Program::start_on_any_core(command, limit)?.line()?)?;
    ensure!(
        ticks.lost == 0,
        "{} messages to the server were lost, so the tick times are not comparable",
        ticks.lost
    );
    Ok(ticks.seconds * 1e3 / f64::from(ticks.ticks))
}

fn server_role(subject: Subject, size: Size) -> Vec<String> {
    let clients = size.clients.to_string();
    match subject {
        Subject::Udp => ["udp", "--clients", &clients].map(str::to_owned).to_vec(),
        Subject::PlainUdp => {
            ["udp", "--without-control-messages", "--clients", &clients].map(str::to_owned).to_vec()
        }
        Subject::Shards(shards) => {
            ["server", "--clients", &clients, "--shards", &shards.to_string()].map(str::to_owned).to_vec()
        }
    }
}

fn start(
    cores: Cores,
    core: fn(process::Cores) -> usize,
    role: &[String],
    limit: Duration,
) -> Result<Program> {
    let mut command = itself()?;
    command.arg("clients").args(role);
    match cores {
        Cores::Apart(cores) => Program::start(command, core(cores), limit),
        Cores::Shared => Program::start_on_any_core(command, limit),
    }
}

/// Returns the work of the server and of the clients since the last call.
fn windows(server: &mut Program, load: &mut Program) -> Result<(Window, Window)> {
    server.go()?;
    load.go()?;
    Ok((serde_json::from_str(&server.line()?)?, serde_json::from_str(&load.line()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_the_sum_of_both_directions() {
        let window = |received| Window { seconds: 2.0, received, tick_p99_us: 1.0, late_p99_us: 3.0 };
        let measured = Measured::of(window(100), window(300), Duration::from_millis(4));
        let expected = Measured { per_second: 200.0, cpu_us: 10.0, tick_p99_us: 1.0, late_p99_us: 3.0 };
        assert_eq!(measured, expected);
    }
}

//! Measures the memory and CPU time of idle connections.

use std::time::Duration;

use anyhow::Result;

use crate::core_only::Effort;
use crate::pairing::{Bench, Peer, itself};
use crate::process::Program;
use crate::report::{Best, Better, Row};

/// The number of connections to a server of another implementation.
const OTHERS: u32 = 500;
/// The number of connections to a rakwire server.
const OURS: u32 = 10_000;

/// The measured cost of idle connections on a server.
struct Idle {
    connections: u32,
    /// The memory per connection in bytes.
    bytes: f64,
    /// Microseconds of CPU time per second and connection.
    cpu_us: f64,
}

pub(crate) fn rows(bench: &Bench, effort: Effort) -> Result<Vec<Row>> {
    let divisor = if effort == Effort::Quick { 50 } else { 1 };
    let ours = measure(bench, Peer::Rakwire, OURS / divisor, effort)?;
    let others = [Peer::Cpp, Peer::RustRaknet, Peer::TokioRaknet];
    let mut memory: Option<Best> = None;
    let mut cpu: Option<Best> = None;
    for peer in others.into_iter().filter(|peer| effort == Effort::Full || peer.is_quick()) {
        match measure(bench, peer, OTHERS / divisor, effort) {
            Ok(idle) => {
                eprintln!("idle: {}: {:.0} bytes, {:.1} µs/s", peer.name(), idle.bytes, idle.cpu_us);
                keep_lower(&mut memory, peer, idle.bytes);
                keep_lower(&mut cpu, peer, idle.cpu_us);
            }
            Err(error) => eprintln!("idle: {}: {error:#}", peer.name()),
        }
    }
    let connections = f64::from(ours.connections);
    Ok(vec![
        Row::new("idle_memory", ours.bytes, "bytes/connection", Better::Lower).compared_with_peer(memory),
        Row::new("idle_cpu", ours.cpu_us, "µs/s/connection", Better::Lower).compared_with_peer(cpu),
        Row::new("idle_connections", connections, "connections", Better::Higher),
    ])
}

fn keep_lower(best: &mut Option<Best>, peer: Peer, value: f64) {
    if best.as_ref().is_none_or(|best| value < best.value) {
        *best = Some(Best { name: peer.name().to_owned(), value });
    }
}

/// Starts a server for up to `connections` connections.
fn server(bench: &Bench, peer: Peer, connections: u32) -> Result<Program> {
    let mut command = peer.command(&bench.peers)?;
    command.args(["echo", "--port", "0", "--connections", &connections.to_string()]);
    Program::start(command, bench.cores.receiver, bench.limit)
}

/// Measures the memory and CPU time of `connections` idle connections.
///
/// The memory is the difference to an empty server that is configured for one connection.
fn measure(bench: &Bench, peer: Peer, connections: u32, effort: Effort) -> Result<Idle> {
    let empty = server(bench, peer, 1)?;
    empty.port()?;
    let before = empty.memory()?;
    drop(empty);
    let server = server(bench, peer, connections)?;
    let address = format!("127.0.0.1:{}", server.port()?);
    let mut command = itself()?;
    command.args(["many-connections", &address, "--connections", &connections.to_string()]);
    let clients = Program::start(command, bench.cores.sender, bench.limit)?;
    clients.connected()?;
    let watch = Duration::from_millis(if effort == Effort::Quick { 200 } else { 10_000 });
    // Excludes the remaining work of the handshakes from the measured CPU time.
    std::thread::sleep(watch / 5);
    let cpu = server.cpu()?;
    std::thread::sleep(watch);
    let cpu = server.cpu()? - cpu;
    let count = f64::from(connections);
    Ok(Idle {
        connections,
        bytes: server.memory()?.saturating_sub(before) as f64 / count,
        cpu_us: cpu.as_secs_f64() * 1e6 / watch.as_secs_f64() / count,
    })
}

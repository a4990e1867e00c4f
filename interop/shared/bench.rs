//! The benchmark roles, shared by all RakNet implementations in Rust. `interop/README.md` describes the command line
//! and the output.

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::io::AsyncReadExt;

/// The first byte: a user message, which every peer passes to its application.
const ID: u8 = 0xFE;
/// The length of the id, the number (u32 BE) and the send time (u64 BE, nanoseconds of the system clock).
const HEADER: usize = 13;
/// The receiver's confirmation that every message has arrived.
const DONE: &[u8] = b"\xFEdone";

/// A connection for reliable, ordered messages.
pub trait BenchConnection: Send + Sync + 'static {
    /// A received message.
    type Message: AsRef<[u8]> + Send;
    /// Sends a message.
    fn send(&self, message: &[u8]) -> impl Future<Output = Result<(), String>> + Send;
    /// Sends a message that the sender no longer needs, without a copy if the library allows that.
    fn send_vec(&self, message: Vec<u8>) -> impl Future<Output = Result<(), String>> + Send {
        async move { self.send(&message).await }
    }
    /// Waits for the next message.
    fn recv(&mut self) -> impl Future<Output = Result<Self::Message, String>> + Send;
}

/// Selects whether messages contain the time at which they were passed to `send`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timestamps {
    Off,
    On,
}

/// The messages to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub count: u32,
    pub size: usize,
    pub timestamps: Timestamps,
}

/// The role of a program in a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Echo every message of every connection.
    Echo,
    /// Receive the messages of one connection.
    Sink(Traffic),
    /// Send messages without waiting for echoes.
    Blast(Traffic),
    /// Send each message after the echo of the previous one has arrived.
    PingPong(Traffic),
}

/// A command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub role: Role,
    /// The address to listen on or to connect to.
    pub address: SocketAddr,
    /// The maximum number of connections.
    pub connections: u16,
}

impl Command {
    /// Parses `echo|sink --port PORT …` or `blast|pingpong HOST:PORT …`. Returns `None` for anything else.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let role = args.next()?;
        let mut address: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mut traffic = Traffic { count: 1_000, size: 100, timestamps: Timestamps::Off };
        let mut connections = 16;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--port" => address.set_port(args.next()?.parse().ok()?),
                "--count" => traffic.count = args.next()?.parse().ok()?,
                "--size" => traffic.size = args.next()?.parse().ok()?,
                "--connections" => connections = args.next()?.parse().ok()?,
                "--timed" => traffic.timestamps = Timestamps::On,
                other => address = other.parse().ok()?,
            }
        }
        let role = match role.as_str() {
            "echo" => Role::Echo,
            "sink" => Role::Sink(traffic),
            "blast" => Role::Blast(traffic),
            "pingpong" => Role::PingPong(traffic),
            _ => return None,
        };
        (traffic.size >= HEADER).then_some(Self { role, address, connections })
    }
}

pub fn print_line(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

pub fn print_ready(port: u16) -> Result<(), String> {
    print_line(&format!("ready {port}"))
}

/// Waits for a line on standard input, or for its end of file.
pub async fn wait_for_line() -> Result<(), String> {
    let mut byte = [0];
    let mut input = tokio::io::stdin();
    while input.read(&mut byte).await.map_err(|error| error.to_string())? == 1 && byte != *b"\n" {}
    Ok(())
}

/// Runs a role until it is complete, or until standard input has a line or closes.
pub async fn until_stdin_line(role: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    tokio::select! {
        result = role => result,
        ended = wait_for_line() => ended,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Fills `message` with the content for this number.
fn fill(message: &mut [u8], number: u32, timestamps: Timestamps) {
    let time = if timestamps == Timestamps::On { now() } else { 0 };
    let Some((head, rest)) = message.split_first_chunk_mut::<HEADER>() else { return };
    let [a, b, c, d] = number.to_be_bytes();
    let [s, t, u, v, w, x, y, z] = time.to_be_bytes();
    *head = [ID, a, b, c, d, s, t, u, v, w, x, y, z];
    if let Some(last) = rest.last_mut() {
        *last = d;
    }
}

/// Checks that `message` has this number, and returns its send time.
fn check(message: &[u8], number: u32, size: usize) -> Result<u64, String> {
    let head = message.split_first_chunk::<HEADER>();
    let Some((&[_, a, b, c, d, time @ ..], rest)) = head else {
        return Err(format!("a message of {} bytes", message.len()));
    };
    let found = u32::from_be_bytes([a, b, c, d]);
    if message.len() != size || found != number || rest.last().is_some_and(|last| *last != d) {
        return Err(format!("message {found} of {} bytes instead of {number}", message.len()));
    }
    Ok(u64::from_be_bytes(time))
}

/// Formats a percentile in microseconds as JSON.
fn percentile(nanos: &mut [u64], share: f64) -> String {
    nanos.sort_unstable();
    let rank = (nanos.len() as f64 * share).ceil() as usize;
    let value = nanos.get(rank.max(1) - 1).map(|nanos| *nanos as f64 / 1e3);
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// Prints the result as one line of JSON.
pub fn print_report(count: u32, seconds: f64, nanos: &mut [u64]) -> Result<(), String> {
    let (p50, p99) = (percentile(nanos, 0.5), percentile(nanos, 0.99));
    print_line(&format!(r#"{{"messages":{count},"seconds":{seconds},"p50_us":{p50},"p99_us":{p99}}}"#))
}

/// Sends every message back until the connection is closed.
#[allow(
    clippy::manual_async_fn,
    reason = "the future of an async function has room for the connection twice"
)]
pub fn echo(mut connection: impl BenchConnection) -> impl Future<Output = ()> {
    async move {
        loop {
            let Ok(message) = connection.recv().await else { return };
            if connection.send(message.as_ref()).await.is_err() {
                return;
            }
        }
    }
}

/// Receives all messages, confirms the last one, prints the result, and waits until standard input closes.
pub async fn sink(mut connection: impl BenchConnection, traffic: Traffic) -> Result<(), String> {
    let mut nanos =
        Vec::with_capacity(if traffic.timestamps == Timestamps::On { traffic.count as usize } else { 0 });
    let mut began = None;
    for number in 0..traffic.count {
        let message = connection.recv().await?;
        let sent = check(message.as_ref(), number, traffic.size)?;
        began.get_or_insert_with(Instant::now);
        if traffic.timestamps == Timestamps::On {
            nanos.push(now().saturating_sub(sent));
        }
    }
    let seconds = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
    connection.send(DONE).await?;
    print_report(traffic.count, seconds, &mut nanos)?;
    std::future::pending().await
}

/// Runs a client role: prints `connected`, waits for a line, sends the messages, prints the result, and waits until
/// standard input closes.
///
/// The role runs as a task, because most runtimes poll for events before they continue the future of `block_on`.
pub async fn client(connection: impl BenchConnection, role: Role) -> Result<(), String> {
    tokio::spawn(play(connection, role)).await.map_err(|error| error.to_string())?
}

async fn play(mut connection: impl BenchConnection, role: Role) -> Result<(), String> {
    print_line("connected")?;
    wait_for_line().await?;
    match role {
        Role::Blast(traffic) => blast(&mut connection, traffic).await?,
        Role::PingPong(traffic) => ping_pong(&mut connection, traffic).await?,
        Role::Echo | Role::Sink(_) => return Err("not the role of a client".to_owned()),
    }
    wait_for_line().await
}

async fn blast(connection: &mut impl BenchConnection, traffic: Traffic) -> Result<(), String> {
    // Filled with a value other than zero, so that the memory is allocated before the clock starts.
    let mut message = vec![ID; traffic.size];
    let began = Instant::now();
    for number in 0..traffic.count.saturating_sub(1) {
        fill(&mut message, number, traffic.timestamps);
        connection.send(&message).await?;
    }
    if let Some(last) = traffic.count.checked_sub(1) {
        fill(&mut message, last, traffic.timestamps);
        connection.send_vec(message).await?;
    }
    let done = connection.recv().await?;
    let seconds = began.elapsed().as_secs_f64();
    if done.as_ref() != DONE {
        return Err("the receiver did not confirm".to_owned());
    }
    print_report(traffic.count, seconds, &mut [])
}

async fn ping_pong(connection: &mut impl BenchConnection, traffic: Traffic) -> Result<(), String> {
    let mut message = vec![0; traffic.size];
    let mut nanos = Vec::with_capacity(traffic.count as usize);
    let began = Instant::now();
    for number in 0..traffic.count {
        fill(&mut message, number, Timestamps::Off);
        let sent = Instant::now();
        connection.send(&message).await?;
        let echo = connection.recv().await?;
        nanos.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
        check(echo.as_ref(), number, traffic.size)?;
    }
    print_report(traffic.count, began.elapsed().as_secs_f64(), &mut nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_accepts_only_the_output_of_fill() {
        let mut message = [0; 20];
        fill(&mut message, 7, Timestamps::On);
        assert!(check(&message, 7, 20).is_ok_and(|time| time > 0));
        assert!(check(&message, 8, 20).is_err());
        assert!(check(&message, 7, 21).is_err());
        message[19] ^= 1;
        assert!(check(&message, 7, 20).is_err());
        assert!(check(&[], 0, 0).is_err());
    }

    #[test]
    fn percentiles_are_observed_values() {
        let mut nanos: Vec<u64> = (1..=100).rev().map(|value| value * 1_000).collect();
        assert_eq!(percentile(&mut nanos, 0.5), "50");
        assert_eq!(percentile(&mut nanos, 0.99), "99");
        assert_eq!(percentile(&mut [], 0.5), "null");
    }

    #[test]
    fn command_lines_are_parsed() {
        let parse = |line: &str| Command::parse(line.split(' ').map(str::to_owned));
        let sink = parse("sink --port 7 --count 5 --size 64 --timed").unwrap();
        assert_eq!(sink.role, Role::Sink(Traffic { count: 5, size: 64, timestamps: Timestamps::On }));
        assert_eq!(sink.address.port(), 7);
        assert!(matches!(parse("blast 127.0.0.1:9").unwrap().role, Role::Blast(_)));
        assert!(parse("server --port 7").is_none() && parse("blast --size 5").is_none());
    }
}

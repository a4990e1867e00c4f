//! The parts of a benchmark, the same for every RakNet that is written in Rust. `interop/README.md` describes the
//! command line and the output.

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::io::AsyncReadExt;

/// The first byte: a user message that every peer passes on.
const ID: u8 = 0xFE;
/// The id, the number (u32 BE) and the time of sending (u64 BE, nanoseconds of the system's clock).
const HEAD: usize = 13;
/// What the receiver says when it has everything.
const DONE: &[u8] = b"\xFEdone";

/// A connection whose messages are reliable and ordered.
pub trait Link {
    /// What a message arrives as.
    type Message: AsRef<[u8]>;
    /// Sends a message.
    fn send(&self, message: &[u8]) -> impl Future<Output = Result<(), String>> + Send;
    /// Waits for the next message.
    fn recv(&mut self) -> impl Future<Output = Result<Self::Message, String>> + Send;
}

/// Whether messages carry the time at which they were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    Off,
    On,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub count: u32,
    pub size: usize,
    pub stamps: Stamps,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Echo every message of every connection.
    Echo,
    /// Take the stream of one connection.
    Sink(Plan),
    /// Send a stream.
    Blast(Plan),
    /// Send messages of which each waits for the echo of the one before.
    PingPong(Plan),
}

/// A command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub part: Part,
    /// Where to listen, or whom to connect to.
    pub address: SocketAddr,
    /// Connections to have room for.
    pub connections: u16,
}

impl Command {
    /// Reads `echo|sink --port PORT …` or `blast|pingpong HOST:PORT …`; nothing when it is none of these.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let part = args.next()?;
        let mut address: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mut plan = Plan { count: 1_000, size: 100, stamps: Stamps::Off };
        let mut connections = 16;
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--port" => address.set_port(args.next()?.parse().ok()?),
                "--count" => plan.count = args.next()?.parse().ok()?,
                "--size" => plan.size = args.next()?.parse().ok()?,
                "--connections" => connections = args.next()?.parse().ok()?,
                "--timed" => plan.stamps = Stamps::On,
                other => address = other.parse().ok()?,
            }
        }
        let part = match part.as_str() {
            "echo" => Part::Echo,
            "sink" => Part::Sink(plan),
            "blast" => Part::Blast(plan),
            "pingpong" => Part::PingPong(plan),
            _ => return None,
        };
        (plan.size >= HEAD).then_some(Self { part, address, connections })
    }
}

pub fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

pub fn say_ready(port: u16) -> Result<(), String> {
    say(&format!("ready {port}"))
}

/// Waits for a line on the standard input, or its end.
pub async fn heard() -> Result<(), String> {
    let mut byte = [0];
    let mut input = tokio::io::stdin();
    while input.read(&mut byte).await.map_err(|error| error.to_string())? == 1 && byte != *b"\n" {}
    Ok(())
}

/// Runs until the part is played, or until the standard input says the end where the part has none.
pub async fn until_heard(part: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    tokio::select! {
        result = part => result,
        heard = heard() => heard,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Makes `message` the one with this number.
fn fill(message: &mut [u8], number: u32, stamps: Stamps) {
    let time = if stamps == Stamps::On { now() } else { 0 };
    let Some((head, rest)) = message.split_first_chunk_mut::<HEAD>() else { return };
    let [a, b, c, d] = number.to_be_bytes();
    let [s, t, u, v, w, x, y, z] = time.to_be_bytes();
    *head = [ID, a, b, c, d, s, t, u, v, w, x, y, z];
    if let Some(last) = rest.last_mut() {
        *last = d;
    }
}

/// Checks that `message` is the one with this number, and returns its time.
fn check(message: &[u8], number: u32, size: usize) -> Result<u64, String> {
    let head = message.split_first_chunk::<HEAD>();
    let Some((&[_, a, b, c, d, time @ ..], rest)) = head else {
        return Err(format!("a message of {} bytes", message.len()));
    };
    let found = u32::from_be_bytes([a, b, c, d]);
    if message.len() != size || found != number || rest.last().is_some_and(|last| *last != d) {
        return Err(format!("message {found} of {} bytes instead of {number}", message.len()));
    }
    Ok(u64::from_be_bytes(time))
}

/// The value in microseconds that this share of the nanoseconds does not exceed, as JSON.
fn percentile(nanos: &mut [u64], share: f64) -> String {
    nanos.sort_unstable();
    let place = (nanos.len() as f64 * share).ceil() as usize;
    let value = nanos.get(place.max(1) - 1).map(|nanos| *nanos as f64 / 1e3);
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

/// Tells how it was.
pub fn verdict(count: u32, seconds: f64, nanos: &mut [u64]) -> Result<(), String> {
    let (p50, p99) = (percentile(nanos, 0.5), percentile(nanos, 0.99));
    say(&format!(r#"{{"messages":{count},"seconds":{seconds},"p50_us":{p50},"p99_us":{p99}}}"#))
}

/// Sends every message back until the connection ends.
#[allow(
    clippy::manual_async_fn,
    reason = "the future of an async function has room for the connection twice"
)]
pub fn echo(mut link: impl Link) -> impl Future<Output = ()> {
    async move {
        loop {
            let Ok(message) = link.recv().await else { return };
            if link.send(message.as_ref()).await.is_err() {
                return;
            }
        }
    }
}

/// Takes a stream, confirms the last message, tells how it was, and waits.
pub async fn sink(mut link: impl Link, plan: Plan) -> Result<(), String> {
    let mut nanos = Vec::with_capacity(if plan.stamps == Stamps::On { plan.count as usize } else { 0 });
    let mut began = None;
    for number in 0..plan.count {
        let message = link.recv().await?;
        let sent = check(message.as_ref(), number, plan.size)?;
        began.get_or_insert_with(Instant::now);
        if plan.stamps == Stamps::On {
            nanos.push(now().saturating_sub(sent));
        }
    }
    let seconds = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
    link.send(DONE).await?;
    verdict(plan.count, seconds, &mut nanos)?;
    std::future::pending().await
}

/// Plays the part of a client: says that it is connected, waits for a line, does its part, tells how it was and waits
/// for the end of the input.
pub async fn client(mut link: impl Link, part: Part) -> Result<(), String> {
    say("connected")?;
    heard().await?;
    match part {
        Part::Blast(plan) => blast(&mut link, plan).await?,
        Part::PingPong(plan) => ping_pong(&mut link, plan).await?,
        Part::Echo | Part::Sink(_) => return Err("no part of a client".to_owned()),
    }
    heard().await
}

async fn blast(link: &mut impl Link, plan: Plan) -> Result<(), String> {
    let mut message = vec![0; plan.size];
    let began = Instant::now();
    for number in 0..plan.count {
        fill(&mut message, number, plan.stamps);
        link.send(&message).await?;
    }
    let done = link.recv().await?;
    let seconds = began.elapsed().as_secs_f64();
    if done.as_ref() != DONE {
        return Err("the receiver said something else".to_owned());
    }
    verdict(plan.count, seconds, &mut [])
}

async fn ping_pong(link: &mut impl Link, plan: Plan) -> Result<(), String> {
    let mut message = vec![0; plan.size];
    let mut nanos = Vec::with_capacity(plan.count as usize);
    let began = Instant::now();
    for number in 0..plan.count {
        fill(&mut message, number, Stamps::Off);
        let sent = Instant::now();
        link.send(&message).await?;
        let echo = link.recv().await?;
        nanos.push(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
        check(echo.as_ref(), number, plan.size)?;
    }
    verdict(plan.count, began.elapsed().as_secs_f64(), &mut nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_is_checked() {
        let mut message = [0; 20];
        fill(&mut message, 7, Stamps::On);
        assert!(check(&message, 7, 20).is_ok_and(|time| time > 0));
        assert!(check(&message, 8, 20).is_err());
        assert!(check(&message, 7, 21).is_err());
        message[19] ^= 1;
        assert!(check(&message, 7, 20).is_err());
        assert!(check(&[], 0, 0).is_err());
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let mut nanos: Vec<u64> = (1..=100).rev().map(|value| value * 1_000).collect();
        assert_eq!(percentile(&mut nanos, 0.5), "50");
        assert_eq!(percentile(&mut nanos, 0.99), "99");
        assert_eq!(percentile(&mut [], 0.5), "null");
    }

    #[test]
    fn command_lines_are_read() {
        let parse = |line: &str| Command::parse(line.split(' ').map(str::to_owned));
        let sink = parse("sink --port 7 --count 5 --size 64 --timed").unwrap();
        assert_eq!(sink.part, Part::Sink(Plan { count: 5, size: 64, stamps: Stamps::On }));
        assert_eq!(sink.address.port(), 7);
        assert!(matches!(parse("blast 127.0.0.1:9").unwrap().part, Part::Blast(_)));
        assert!(parse("server --port 7").is_none() && parse("blast --size 5").is_none());
    }
}

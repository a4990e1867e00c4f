//! The roles of a benchmark of unreliable messages: one end sends as many as its library accepts, the other counts
//! those that arrive.
//!
//! `flood HOST:PORT --size BYTES --seconds N` prints `connected`, waits for a line, sends, and prints the number of
//! sent messages as `{"messages":N,"seconds":S,…}`. `count --port PORT` prints `ready PORT`. Once no more arrive, it
//! prints the number of messages and the time between the first and the last.

use std::future::pending;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::role::{BenchConnection, print_line, print_report, wait_for_line};

/// The content of a message; its first byte makes it a user message, which every peer passes to its application.
const COUNTED: u8 = 0xfe;
/// The time without messages after which no more are expected.
const QUIET: Duration = Duration::from_millis(500);

/// The role of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    Send { address: SocketAddr, size: usize, time: Duration },
    Count { port: u16 },
}

impl Flood {
    /// Parses a command line. Returns `None` for anything else.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Option<Self> {
        match args.next()?.as_str() {
            "count" => match (args.next()?.as_str(), args.next()?) {
                ("--port", port) => Some(Self::Count { port: port.parse().ok()? }),
                _ => None,
            },
            "flood" => {
                let address = args.next()?.parse().ok()?;
                let (mut size, mut time) = (100, Duration::from_secs(1));
                while let Some(arg) = args.next() {
                    match arg.as_str() {
                        "--size" => size = args.next()?.parse().ok()?,
                        "--seconds" => time = Duration::try_from_secs_f64(args.next()?.parse().ok()?).ok()?,
                        _ => return None,
                    }
                }
                (size > 0).then_some(Self::Send { address, size, time })
            }
            _ => None,
        }
    }
}

/// Sends for this time, and waits for the end of the input.
pub async fn send(connection: impl BenchConnection, size: usize, time: Duration) -> Result<(), String> {
    print_line("connected")?;
    wait_for_line().await?;
    let message = vec![COUNTED; size];
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < time {
        connection.send(&message).await?;
        sent += 1;
    }
    print_report(sent, began.elapsed().as_secs_f64(), &mut [])?;
    wait_for_line().await
}

/// Counts until no more messages arrive.
pub async fn count(mut connection: impl BenchConnection) -> Result<(), String> {
    connection.recv().await?;
    let (began, mut last, mut counted) = (Instant::now(), Instant::now(), 1);
    while let Ok(message) = tokio::time::timeout(QUIET, connection.recv()).await {
        message?;
        last = Instant::now();
        counted += 1;
    }
    print_report(counted, last.duration_since(began).as_secs_f64(), &mut [])?;
    pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_parsed() {
        let parse = |line: &str| Flood::parse(line.split(' ').map(str::to_owned));
        assert_eq!(parse("count --port 7"), Some(Flood::Count { port: 7 }));
        let time = Duration::from_millis(500);
        let address = ([127, 0, 0, 1], 9).into();
        assert_eq!(parse("flood 127.0.0.1:9 --seconds 0.5"), Some(Flood::Send { address, size: 100, time }));
        assert!(parse("count").is_none() && parse("flood 127.0.0.1:9 --size 0").is_none());
        assert!(parse("blast 127.0.0.1:9").is_none());
    }
}

//! The two roles of a benchmark for unreliable messages: a sender that sends as many as its library accepts, and a
//! receiver that counts those that arrive.
//!
//! - The sender, `flood HOST:PORT --size BYTES --seconds N`, prints `connected`, waits for a line on standard input,
//!   sends, and prints the number of sent messages as `{"messages":N,"seconds":S,…}`.
//! - The receiver, `count --port PORT`, prints `ready PORT`. After 500 ms without a message, it prints the number of
//!   received messages and the time between the first and the last in the same format.

use std::future::pending;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::role::{BenchConnection, print_line, print_report, wait_for_line};

/// The content of a message; its first byte makes it a user message, which every peer passes to its application.
const COUNTED: u8 = 0xfe;
/// The receiver stops counting after this much time without a message.
const QUIET: Duration = Duration::from_millis(500);

/// The role and its options, as parsed from a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    Send { address: SocketAddr, size: usize, time: Duration },
    Count { port: u16 },
}

impl Flood {
    /// Parses a command line. Returns `None` if it is not one of the two roles with valid options.
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

/// Waits for a line on standard input, sends messages for `time`, prints the report and waits for another line.
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

/// Counts messages until none has arrived for 500 ms, and prints the report.
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

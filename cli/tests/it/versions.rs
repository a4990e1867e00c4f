//! Servers with a version other than the first that is tried, and the framing of their pongs.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::support::{self, Server, text};

const UNCONNECTED_PING: u8 = 0x01;
const INCOMPATIBLE_PROTOCOL_VERSION: u8 = 0x19;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_rakwire"))
}

fn echo(arguments: &[&str]) -> Server {
    let listen = ["echo", "--listen", "127.0.0.1:0"];
    Server::start(program(), &[&listen[..], arguments].concat(), "listening on ")
}

fn rakwire(arguments: &[&str]) -> Output {
    support::run(program(), arguments, "")
}

/// A proxy that imitates go-raknet in front of one of our servers. After a reply that names another version it drops a
/// number of datagrams; go-raknet drops all of them for 10 s or more.
struct BlockingServer {
    address: String,
}

impl BlockingServer {
    fn start(server: &Server, blocked: usize, answers_pings: bool) -> Self {
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let (front, back) = (bind(), bind());
        back.connect(&server.announced).expect("an address");
        let address = front.local_addr().expect("a bound socket").to_string();
        // The threads end with the tests.
        thread::spawn(move || {
            let (to_drop, client) = (AtomicUsize::new(0), Mutex::new(None::<SocketAddr>));
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut buffer = [0; 2_048];
                    while let Ok((length, from)) = front.recv_from(&mut buffer) {
                        *client.lock().expect("no panic") = Some(from);
                        let is_blocked = to_drop
                            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                            .is_ok();
                        if !is_blocked && (answers_pings || buffer[0] != UNCONNECTED_PING) {
                            // The server may have ended already.
                            let _ = back.send(&buffer[..length]);
                        }
                    }
                });
                let mut buffer = [0; 2_048];
                while let Ok(length) = back.recv(&mut buffer) {
                    if buffer[0] == INCOMPATIBLE_PROTOCOL_VERSION {
                        to_drop.store(blocked, Ordering::SeqCst);
                    }
                    let client = client.lock().expect("no panic").expect("a client");
                    front.send_to(&buffer[..length], client).expect("a datagram over loopback");
                }
            });
        });
        Self { address }
    }
}

/// The pong names the version, so the server has no reason to block. On a busy machine the pong may be late.
#[test]
fn send_starts_with_the_version_in_the_pong() {
    let server = echo(&["--protocol", "11"]);
    let passes = || {
        let blocking = BlockingServer::start(&server, usize::MAX, true);
        rakwire(&["send", &blocking.address, "x"]).status.code() == Some(0)
    };
    assert!((0..5).any(|_| passes()), "send does not begin with the version in the pong");
}

/// Fifteen requests take longer than the 6.5 s that an attempt takes by default.
#[test]
fn send_retries_after_a_server_blocks_its_address() {
    let server = echo(&["--protocol", "11"]);
    let blocking = BlockingServer::start(&server, 15, false);
    let outcome = rakwire(&["send", &blocking.address, "x", "--timeout", "60"]);
    assert_eq!(outcome.status.code(), Some(0), "{}", text(&outcome.stderr));
}

#[test]
fn send_reports_the_version_of_a_server_that_stops_answering() {
    let server = echo(&["--protocol", "11"]);
    // On a busy machine the answer may miss a short timeout.
    let is_reported = |seconds: &str| {
        let blocking = BlockingServer::start(&server, usize::MAX, false);
        let outcome = rakwire(&["send", &blocking.address, "x", "--timeout", seconds]);
        let error = text(&outcome.stderr);
        assert_eq!((outcome.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        let more_time = format!("--timeout above {seconds} s");
        [&blocking.address, "protocol version 11", "--protocol 11", &more_time]
            .into_iter()
            .all(|part| error.contains(part))
    };
    assert!(["1", "10", "60"].into_iter().any(is_reported), "the error does not name the version");
}

fn data_of_ping(address: &str, arguments: &[&str]) -> String {
    let outcome = rakwire(&[&["ping", address, "--json"], arguments].concat());
    let json: Value = serde_json::from_slice(&outcome.stdout).expect("one JSON object");
    json["data_hex"].as_str().expect("text").replace(' ', "")
}

#[test]
fn pongs_are_length_prefixed_when_clients_expect_it() {
    let (raw, prefixed) = ("676f", "0002676f");
    for (options, wire) in [
        (&[][..], raw),
        (&["--protocol", "6"], raw),
        (&["--protocol", "11"], prefixed),
        (&["--protocol", "10,11"], prefixed),
        (&["--protocol", "11", "--pong-framing", "raw"], raw),
        (&["--protocol", "6", "--pong-framing", "prefixed"], prefixed),
    ] {
        let server = echo(&[&["--advertise", "go"], options].concat());
        assert_eq!(data_of_ping(&server.announced, &["--pong-framing", "raw"]), wire, "{options:?}");
        assert_eq!(data_of_ping(&server.announced, &[]), raw, "{options:?}");
        assert_eq!(data_of_ping(&server.announced, &["--pong-framing", "prefixed"]), raw, "{options:?}");
    }
}

#[test]
fn a_length_prefix_counts_toward_the_pong_size() {
    let long = "x".repeat(398);
    let outcome = rakwire(&["echo", "--listen", "127.0.0.1:0", "--protocol", "11", "--advertise", &long]);
    let error = text(&outcome.stderr);
    assert_eq!((outcome.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.contains("--advertise"), "{error}");
}

//! Relays that were suspended, for example by a closed lid, a paused machine or a debugger. A resumed relay reads
//! queued input before its timers fire.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use quinn::ConnectionError;
use rakwire_native::raknet::Delivery;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::front;
use crate::program::Program;
use crate::support::{Client, Server, within};
use crate::webtransport::Session;

/// Longer than a client may be silent (three pings of a second each), and longer than the idle timeout of a session.
const STOP: Duration = Duration::from_secs(5);

/// Starts a relay for UDP, WebSocket and WebTransport, and returns the address of its front.
async fn start(ping_interval: &str) -> (Program, SocketAddr) {
    let game = format!("udp={},kind=raknet", front::echo().await);
    let limits = ["--ping-interval", ping_interval, "--idle-timeout", "4s"];
    let fronted = ["--target", &game, "--udp-listen", "127.0.0.1:0", "--udp-target", "udp"];
    let others = ["--webtransport-listen", "127.0.0.1:0", "--log-format", "json"];
    let more = [&limits[..], &fronted, &others].concat();
    let mut relay = Program::start_with(Server::echo().await, &more, Stdio::piped());
    let mut lines = BufReader::new(relay.child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let udp = lines.find_map(|line| {
        let line: Value = serde_json::from_str(&line).unwrap();
        let is_front = line["message"].as_str().unwrap().contains("native UDP clients");
        line["udp"].as_str().filter(|_| is_front).map(|address| address.parse().unwrap())
    });
    // The output of the relay is read, so that it never blocks.
    std::thread::spawn(move || lines.for_each(drop));
    (relay, udp.unwrap())
}

/// The WebTransport page uses a relay with a longer ping interval. Both sides of QUIC time out after the same silence.
/// The relay's queued input saves its own side, but not the client's.
#[tokio::test]
async fn clients_stay_connected_while_the_relay_is_paused() {
    let (relay, udp) = start("1s").await;
    let (patient, _) = start("2s").await;
    let endpoint = front::client().await;
    let (mut page, player, session, silenced) = tokio::join!(
        Client::connect(relay.address, "/ws?target=game"),
        within(endpoint.connect(udp)),
        Session::game(patient.address),
        Session::game(relay.address),
    );
    let player = player.unwrap();
    page.send(b"before").await;
    assert_eq!(page.datagram().await, b"before");
    tokio::join!(front::echoes(&player), session.echoes(), silenced.echoes());

    for relay in [&relay, &patient] {
        relay.signal("-STOP");
    }
    let stopped = Instant::now();
    while stopped.elapsed() < STOP {
        page.send(b"hello").await;
        session.send(b"hello");
        // Sending fails while the queue is full.
        let _ = player.try_send(b"\xFEhello", Delivery::UNRELIABLE);
        sleep(STOP / 20).await;
    }
    for relay in [&relay, &patient] {
        relay.signal("-CONT");
    }
    page.send(b"after").await;
    while page.datagram().await != b"after" {}
    player.send(b"\xFEafter", Delivery::RELIABLE_ORDERED).await.unwrap();
    while within(player.recv()).await.unwrap().bytes != b"\xFEafter" {}
    session.send(b"after");
    while *session.receive().await != *b"after" {
        session.send(b"after");
    }
    assert_eq!(
        silenced.lost().await,
        ConnectionError::TimedOut,
        "the pause exceeds the idle timeout of QUIC, three pings"
    );
}

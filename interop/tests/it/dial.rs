//! Our endpoint and the C++ RakNet connect to each other at the same time. One connection results, in whichever order
//! their datagrams cross.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};
use rakwire_native::{Connection, Delivery, Endpoint, Options};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::support::{Server, TIME_LIMIT};

/// Enough seeds to see each way in which two handshakes can cross.
const SEEDS: u64 = 36;
/// The maximum number of attempts until two handshakes cross, on a busy machine.
const MAX_SEEDS: u64 = 10 * SEEDS;
/// The lines that the C++ peer prints when a connection opens.
const OPEN: [&str; 2] = ["accepted", "incoming"];
/// The time after which no further events are expected, longer than the rest of two handshakes.
const REST: Duration = Duration::from_millis(400);

/// Returns the events that a C++ peer has reported about its connections with a port, waiting until one is open.
fn reported(original: &Server, port: u16) -> Vec<String> {
    let mut events: Vec<String> = Vec::new();
    while !events.iter().any(|what| OPEN.contains(&what.as_str())) {
        let line = original.next_line().expect("an open connection");
        events.extend(of_port(&line, port));
    }
    events.extend(original.printed_lines().filter_map(|line| of_port(&line, port)));
    events
}

/// Returns the event in a line if it concerns this port, and not the port of an earlier attempt.
fn of_port(line: &str, port: u16) -> Option<String> {
    let (what, of) = line.rsplit_once(' ').unwrap_or((line, ""));
    match of.parse::<u16>() {
        Ok(of) => (of == port).then(|| what.to_owned()),
        Err(_) => Some(line.to_owned()),
    }
}

/// A path between two sockets that delays datagrams by different times, so that they are reordered. Each peer
/// connects to the proxy address of the other peer.
struct Path {
    /// The proxy addresses of the C++ peer and of our endpoint.
    faces: [SocketAddr; 2],
    task: JoinHandle<()>,
}

impl Path {
    async fn start(ends: [SocketAddr; 2], seed: u64) -> Self {
        let sockets = [
            UdpSocket::bind("127.0.0.1:0").await.expect("a free port"),
            UdpSocket::bind("127.0.0.1:0").await.expect("a free port"),
        ];
        let faces = sockets.each_ref().map(|socket| socket.local_addr().expect("the local address"));
        Self { faces, task: tokio::spawn(carry(sockets, ends, seed)) }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards datagrams. `faces[0]` represents the C++ peer to our endpoint, `faces[1]` our endpoint to the C++ peer.
async fn carry(faces: [UdpSocket; 2], [ours, original]: [SocketAddr; 2], seed: u64) {
    let conditions = Conditions {
        duplication: 0.1,
        latency: Duration::from_millis(1),
        jitter: Duration::from_millis([1, 8, 30][seed as usize % 3]),
        ..Conditions::default()
    };
    let (mut forth, mut back) = (Link::new(conditions, 2 * seed), Link::new(conditions, 2 * seed + 1));
    let began = tokio::time::Instant::now();
    let now = || Instant::ZERO + began.elapsed();
    let (mut from_ours, mut from_original) = ([0; 2_048], [0; 2_048]);
    loop {
        let next = forth.next_arrival().into_iter().chain(back.next_arrival()).min();
        let wait = next.map_or(TIME_LIMIT, |at| at.saturating_since(now()));
        tokio::select! {
            Ok((length, _)) = faces[0].recv_from(&mut from_ours) => forth.send(now(), &from_ours[..length]),
            Ok((length, _)) = faces[1].recv_from(&mut from_original) => back.send(now(), &from_original[..length]),
            () = tokio::time::sleep(wait) => {}
        }
        // A datagram that the system refuses is lost.
        while let Some(datagram) = forth.receive(now()) {
            let _ = faces[1].send_to(&datagram, original).await;
        }
        while let Some(datagram) = back.receive(now()) {
            let _ = faces[0].send_to(&datagram, ours).await;
        }
    }
}

/// Returns our connection, which results from one of the two attempts.
async fn dial(endpoint: &Endpoint, to: SocketAddr) -> Connection {
    match endpoint.connect(to).await {
        Ok(connection) => connection,
        // The attempt of the C++ peer had succeeded before our endpoint connected.
        Err(error) => match tokio::time::timeout(TIME_LIMIT, endpoint.accept()).await {
            Ok(Some(connection)) => connection,
            _ => panic!("neither attempt succeeded: {error}"),
        },
    }
}

async fn echo(connection: &Connection) {
    connection.send(b"\xFEhello", Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    let echo = tokio::time::timeout(TIME_LIMIT, connection.recv()).await.expect("an echo in time");
    assert_eq!(echo.expect("an open connection").bytes, b"\xFEhello");
}

/// Runs one attempt and returns the events of the C++ peer.
async fn cross(original: &mut Server, seed: u64) -> Vec<String> {
    let mut options = Options::server(4).expect("entropy");
    options.config.protocol_version = 6;
    let endpoint = Endpoint::bind("127.0.0.1:0", options).await.expect("a free port");
    let path = Path::start([endpoint.local_addr(), original.address], seed).await;
    let head_start = Duration::from_micros(seed / 3 * 997 % 13_000);
    let connection = if seed.is_multiple_of(2) {
        original.write_line(path.faces[1]);
        tokio::time::sleep(head_start).await;
        dial(&endpoint, path.faces[0]).await
    } else {
        let dials = dial(&endpoint, path.faces[0]);
        let follows = async {
            tokio::time::sleep(head_start).await;
            original.write_line(path.faces[1]);
        };
        tokio::join!(dials, follows).0
    };
    echo(&connection).await;
    let another = tokio::time::timeout(REST, endpoint.accept()).await;
    assert!(another.is_err(), "seed {seed}: a second connection opened");
    echo(&connection).await;
    let events = reported(original, path.faces[1].port());
    let allowed = [&OPEN[..], &["already connected", "refused"]].concat();
    assert!(events.iter().all(|what| allowed.contains(&what.as_str())), "seed {seed}: {events:?}");
    assert_eq!(connection.closed_reason(), None, "seed {seed}: {events:?}");
    endpoint.close().await;
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_dials_result_in_one_connection() {
    let mut original = Server::start("cpp", &["--protocol", "6"]).expect("the C++ peer");
    // The C++ peer starts to print events before the first attempt, because a handshake may be complete before it reads
    // the address to connect to.
    original.write_line("tell");
    assert_eq!(original.next_line().as_deref(), Ok("telling"));
    let mut has_crossed = false;
    for seed in 0..MAX_SEEDS {
        if has_crossed && seed >= SEEDS {
            return;
        }
        let events = cross(&mut original, seed).await;
        println!("{events:?}");
        has_crossed |= events.iter().any(|what| what == "already connected");
    }
    panic!("the handshakes did not cross in any attempt");
}

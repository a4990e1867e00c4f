//! Our endpoint and the C++ RakNet dial each other at once: one connection comes of it, whatever crosses on the way.

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::Instant;
use rakwire::sim::{Conditions, Link};
use rakwire_native::{Connection, Delivery, Endpoint, Options};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use crate::support::{Server, TIME_LIMIT};

/// Enough that each of the ways in which two handshakes can cross was seen.
const SEEDS: u64 = 36;
/// Tries at most, until one of them has crossed on a busy machine.
const MOST_SEEDS: u64 = 10 * SEEDS;
/// What the original is told of a connection that opens.
const OPEN: [&str; 2] = ["accepted", "incoming"];
/// Longer than what is left of two handshakes takes.
const REST: Duration = Duration::from_millis(400);

/// What a C++ peer was told until now of its connections with a port, of which one is open or will be.
fn told(original: &Server, port: u16) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    while !told.iter().any(|what| OPEN.contains(&what.as_str())) {
        let line = original.next_line().expect("an open connection");
        told.extend(of_port(&line, port));
    }
    told.extend(original.printed_lines().filter_map(|line| of_port(&line, port)));
    told
}

/// What a line says if it is about this port, and not about one of an earlier try.
fn of_port(line: &str, port: u16) -> Option<String> {
    let (what, of) = line.rsplit_once(' ').unwrap_or((line, ""));
    match of.parse::<u16>() {
        Ok(of) => (of == port).then(|| what.to_owned()),
        Err(_) => Some(line.to_owned()),
    }
}

/// A path between two sockets that holds each datagram back for a while, so that they overtake each other. Each end dials
/// the face that stands for the other end.
struct Path {
    /// What stands for the original, and for our endpoint.
    faces: [SocketAddr; 2],
    task: JoinHandle<()>,
}

impl Path {
    async fn start(ends: [SocketAddr; 2], seed: u64) -> Self {
        let sockets = [
            UdpSocket::bind("127.0.0.1:0").await.expect("a free port"),
            UdpSocket::bind("127.0.0.1:0").await.expect("a free port"),
        ];
        let faces = sockets.each_ref().map(|socket| socket.local_addr().expect("its address"));
        Self { faces, task: tokio::spawn(carry(sockets, ends, seed)) }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `faces[0]` stands for the original before our endpoint, `faces[1]` for our endpoint before the original.
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
        // What the system refuses is lost.
        while let Some(datagram) = forth.receive(now()) {
            let _ = faces[1].send_to(&datagram, original).await;
        }
        while let Some(datagram) = back.receive(now()) {
            let _ = faces[0].send_to(&datagram, ours).await;
        }
    }
}

/// Our connection, whichever of the two attempts it came of.
async fn dial(endpoint: &Endpoint, to: SocketAddr) -> Connection {
    match endpoint.connect(to).await {
        Ok(connection) => connection,
        // The attempt of the original had succeeded before this end dialled.
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

/// One try; what the original was told comes back.
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
    assert!(another.is_err(), "seed {seed}: a second connection");
    echo(&connection).await;
    let told = told(original, path.faces[1].port());
    let allowed = [&OPEN[..], &["already connected", "refused"]].concat();
    assert!(told.iter().all(|what| allowed.contains(&what.as_str())), "seed {seed}: {told:?}");
    assert_eq!(connection.closed_reason(), None, "seed {seed}: {told:?}");
    endpoint.close().await;
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_dial_at_once() {
    let mut original = Server::start("cpp", &["--protocol", "6"]).expect("the C++ peer");
    // A handshake may be over before it has read whom to dial.
    original.write_line("tell");
    assert_eq!(original.next_line().as_deref(), Ok("telling"));
    let mut has_crossed = false;
    for seed in 0..MOST_SEEDS {
        if has_crossed && seed >= SEEDS {
            return;
        }
        let told = cross(&mut original, seed).await;
        println!("{told:?}");
        has_crossed |= told.iter().any(|what| what == "already connected");
    }
    panic!("nothing crossed in any of the tries");
}

//! Times of arrival while the protocol is stalled. Holding the lock of the endpoint is the only way to stall it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rakwire::raknet::Guid;
use rakwire::wire::capsule::CapsuleHeader;
use rakwire::wire::datagram::DatagramHeader;
use rakwire::wire::offline::Offline;
use rakwire::wire::{Reader, Source, Wire, Writer, id};

use super::{Connection, Endpoint, Options};

/// The duration of a stall. A time that includes the stall is at least this long, always.
const STALL: Duration = Duration::from_millis(600);
/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Tries: on a busy machine a time may be that long without the stall, but not again and again.
const TRIES: usize = 30;

async fn client(ping_interval: Option<Duration>) -> Endpoint {
    let mut options = Options::client().expect("entropy");
    options.config.ping_interval = ping_interval;
    Endpoint::bind("127.0.0.1:0", options).await.expect("a free port")
}

/// Stalls the protocol of `endpoint`, and runs `meanwhile` during the stall.
fn stall(endpoint: &Endpoint, meanwhile: impl FnOnce()) {
    let start = Instant::now();
    let state = endpoint.shared.lock();
    meanwhile();
    std::thread::sleep(STALL);
    drop(state);
    assert!(start.elapsed() >= STALL);
}

/// Receives a ping, and returns a function that sends the pong.
fn answer(server: &UdpSocket) -> impl FnOnce() {
    let mut buffer = [0; 2_048];
    let (length, from) = server.recv_from(&mut buffer).expect("a ping");
    let ping = Offline::read(&mut Reader::new(&buffer[..length]));
    let Ok(Offline::Ping { time, .. }) = ping else {
        panic!("a ping, not {ping:?}");
    };
    move || {
        let pong = Offline::Pong { time, guid: Guid(1), data: b"late" };
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        pong.write(&mut writer).expect("room for a pong");
        server.send_to(writer.finish(), from).expect("loopback takes it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stall_does_not_lengthen_the_latency_of_a_ping() {
    let mut measured = Vec::new();
    while measured.len() < TRIES {
        measured.push(latency_with_a_stall().await);
        if measured.last().is_some_and(|latency| *latency < STALL) {
            return;
        }
    }
    panic!("each latency has the stall in it: {measured:?}");
}

async fn latency_with_a_stall() -> Duration {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("a bound socket");
    let client = Arc::new(client(None).await);
    let pinging = Arc::clone(&client);
    let ping = tokio::spawn(async move { pinging.ping(address, LIMIT).await });

    let answer = answer(&server);
    stall(&client, answer);

    let pong = ping.await.expect("no panic").expect("a pong");
    assert_eq!(pong.data, b"late");
    pong.latency
}

/// Whether a datagram carries a connected ping.
fn has_ping(datagram: &[u8]) -> bool {
    let mut reader = Reader::new(datagram);
    if !matches!(DatagramHeader::read(&mut reader), Ok(DatagramHeader::Data { .. })) {
        return false;
    }
    while let Ok(capsule) = CapsuleHeader::read(&mut reader) {
        match reader.bytes("payload", capsule.length()) {
            Ok([id::CONNECTED_PING, ..]) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

/// Starts a proxy between one client and `server`. While `is_armed`, it delays the next ping of the client: it reports the
/// ping to `delayed` and waits for `resume`.
fn proxy(
    server: SocketAddr,
    is_armed: Arc<AtomicBool>,
    delayed: mpsc::Sender<()>,
    resume: mpsc::Receiver<()>,
) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let back = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    back.connect(server).expect("a loopback address");
    let address = front.local_addr().expect("a bound socket");
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let (length, client) = front.recv_from(&mut buffer).expect("a request");
        back.send(&buffer[..length]).expect("loopback takes it");
        let answers = (front.try_clone().expect("a socket"), back.try_clone().expect("a socket"));
        std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok(length) = answers.1.recv(&mut buffer) {
                answers.0.send_to(&buffer[..length], client).expect("loopback takes it");
            }
        });
        while let Ok(length) = front.recv(&mut buffer) {
            if has_ping(&buffer[..length]) && is_armed.swap(false, Ordering::SeqCst) {
                delayed.send(()).expect("the test waits");
                resume.recv().expect("the test resumes");
            }
            back.send(&buffer[..length]).expect("loopback takes it");
        }
    });
    address
}

/// Waits until the last ping of a connection differs from `before`.
async fn next_ping(connection: &Connection, before: Duration) -> Duration {
    loop {
        let stats = connection.stats().expect("an open connection");
        if stats.last_ping != before {
            return stats.last_ping;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stall_does_not_lengthen_the_round_trip_of_a_connection() {
    let mut measured = Vec::new();
    while measured.len() < TRIES {
        let (ping, round_trip) = round_trip_with_a_stall().await;
        measured.push((ping, round_trip));
        if ping < STALL && round_trip < STALL / 2 {
            return;
        }
    }
    panic!("each of the times has the stall in it: {measured:?}");
}

/// The ping that was answered during a stall, and the round trip that was measured with it.
async fn round_trip_with_a_stall() -> (Duration, Duration) {
    let server =
        Endpoint::bind("127.0.0.1:0", Options::server(1).expect("entropy")).await.expect("a free port");
    let is_armed = Arc::new(AtomicBool::new(false));
    let (delayed, is_delayed) = mpsc::channel();
    let (resume, resumed) = mpsc::channel();
    let proxy = proxy(server.local_addr(), Arc::clone(&is_armed), delayed, resumed);
    let client = client(Some(Duration::from_secs(1))).await;
    let connection = client.connect(proxy).await.expect("a connection");
    let _other = server.accept().await.expect("the same connection");
    let before = next_ping(&connection, Duration::ZERO).await;

    is_armed.store(true, Ordering::SeqCst);
    is_delayed.recv().expect("a ping within a second");
    stall(&client, || resume.send(()).expect("the proxy waits"));

    let ping = next_ping(&connection, before).await;
    let round_trip = connection.stats().expect("an open connection").round_trip;
    (ping, round_trip)
}

//! The proxy between two sockets.

use rakwire_conformance::wire::{self, Capsule};
use rakwire_interop_runner::capture::{Capture, End, Fate, Record};
use rakwire_interop_runner::path::Kind;
use rakwire_interop_runner::proxy::Proxy;
use std::net::UdpSocket;
use std::time::Duration;

/// The time limit for a forwarded datagram, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// The maximum UDP payload over IPv4.
const LONGEST: usize = 65_507;

fn message(number: u32) -> Vec<u8> {
    wire::data(0x84, number, &[Capsule::reliable(number, vec![0xfe, number as u8])])
}

/// Sends messages through a proxy. Returns the datagrams that arrived, and the capture.
fn carried(kind: Kind, count: u32) -> (Vec<Vec<u8>>, Capture) {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    server.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let proxy = Proxy::start(server.local_addr().expect("a socket"), kind, 5).expect("a socket");
    if cfg!(target_os = "linux") {
        assert_eq!(proxy.address.port(), server.local_addr().expect("a socket").port());
    }
    let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    client.connect(proxy.address).expect("a socket");
    (0..count).for_each(|number| assert!(client.send(&message(number)).is_ok()));
    let mut arrived = Vec::new();
    let mut buffer = [0; 2048];
    while let Ok((len, _)) = server.recv_from(&mut buffer) {
        arrived.push(buffer[..len].to_vec());
    }
    (arrived, proxy.finish().expect("a capture"))
}

fn count(capture: &Capture, fate: Fate) -> usize {
    capture.of(End::Client).filter(|(_, record)| record.fate == fate).count()
}

#[test]
fn a_clean_path_forwards_both_directions_in_order() {
    let (arrived, capture) = carried(Kind::Clean, 50);
    assert_eq!(arrived, (0..50).map(message).collect::<Vec<_>>());
    assert!(capture.records.iter().all(|record| record.arrivals.len() == 1));

    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let proxy = Proxy::start(server.local_addr().expect("a socket"), Kind::Clean, 5).expect("a socket");
    let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    client.send_to(b"question", proxy.address).expect("a socket");
    let mut buffer = [0; 64];
    let (len, front) = server.recv_from(&mut buffer).expect("a socket");
    server.send_to(&buffer[..len], front).expect("a socket");
    assert_eq!(client.recv_from(&mut buffer).expect("a socket"), (len, proxy.address));
    let ends: Vec<End> =
        proxy.finish().expect("a capture").records.iter().map(|record| record.from).collect();
    assert_eq!(ends, [End::Client, End::Server]);
}

#[test]
fn datagrams_of_the_maximum_length_are_forwarded() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    server.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let proxy = Proxy::start(server.local_addr().expect("a socket"), Kind::Clean, 5).expect("a socket");
    let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let sent = vec![0xfe; LONGEST];
    client.send_to(&sent, proxy.address).expect("a socket");
    let mut buffer = vec![0; 65_536];
    assert_eq!(server.recv(&mut buffer).expect("a datagram"), LONGEST);
    let capture = proxy.finish().expect("a capture");
    assert_eq!(capture.records[0].bytes, sent);
    let mut file = Vec::new();
    capture.write_pcap(&mut file).expect("a file in memory");
    assert_eq!(file.len(), 24 + 16 + 28 + LONGEST);
}

#[test]
fn a_lossy_path_drops_the_datagrams_that_the_capture_marks() {
    let (arrived, capture) = carried(Kind::Loss, 100);
    let has_passed = |record: &&Record| record.fate == Fate::Passed;
    let passed: Vec<_> =
        capture.records.iter().filter(has_passed).map(|record| record.bytes.clone()).collect();
    assert!(count(&capture, Fate::Dropped) > 0);
    assert_eq!(arrived, passed);
}

#[test]
fn a_duplicating_path_delivers_some_datagrams_twice() {
    let (arrived, capture) = carried(Kind::Duplicate, 100);
    assert!(count(&capture, Fate::Doubled) > 0);
    assert_eq!(arrived.len(), 100 + count(&capture, Fate::Doubled));
}

#[test]
fn a_reordering_path_delivers_everything_once_out_of_order() {
    let (mut arrived, capture) = carried(Kind::Reorder, 100);
    assert!(count(&capture, Fate::Held) > 0);
    let in_order: Vec<_> = (0..100).map(message).collect();
    assert_ne!(arrived, in_order);
    arrived.sort_unstable();
    let mut sorted = in_order;
    sorted.sort_unstable();
    assert_eq!(arrived, sorted);
}

//! Datagrams from unknown addresses allocate no memory: a peer is flooded under a counting allocator (attacks A1, A7,
//! A9 and A10 of docs/attacks.md).

#[path = "it/support/allocator.rs"]
mod allocator;
#[path = "it/support/forged.rs"]
#[allow(dead_code, reason = "this test uses a part")]
mod forged;
#[path = "it/support/raknet.rs"]
#[allow(dead_code, reason = "this test uses a part")]
mod raknet;

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

use allocator::ALLOCATOR;
use forged::{bytes_out, capsule, data, request_2, written};
use raknet::{peer, server_config};
use rakwire::Instant;
use rakwire::raknet::{Guid, Peer, Reliability};
use rakwire::wire::datagram::{CapsuleHeader, Split};
use rakwire::wire::offline::{ClientSecurity, Offline, PingScope};
use stats_alloc::Region;

const FLOOD: u32 = 1_000_000;

/// Sends a million copies of a datagram, each from another address; returns the bytes received and sent.
fn flood(server: &mut Peer<'_>, datagram: &[u8]) -> (usize, usize) {
    let (mut bytes_in, mut out) = (0, 0);
    for number in 0..FLOOD {
        let now = Instant::from_micros(u64::from(number) * 10);
        let from = SocketAddr::from((number.to_be_bytes(), 1_000));
        server.handle_datagram(now, from, black_box(datagram));
        bytes_in += datagram.len();
        out += bytes_out(server, now);
    }
    (bytes_in, out)
}

/// Waits until the thread that started this test allocates no more memory.
fn wait_for_silence() {
    loop {
        let region = Region::new(ALLOCATOR);
        std::thread::sleep(Duration::from_millis(300));
        if region.change().allocations == 0 {
            return;
        }
    }
}

#[test]
fn a07_a_million_unknown_addresses_take_no_memory() {
    let split = Some(Split { count: u32::MAX, id: 1, index: 7 });
    let floods = [
        ("request 1", written(&Offline::Request1 { protocol: 6, mtu: 576 })),
        ("an unknown version", written(&Offline::Request1 { protocol: 99, mtu: 576 })),
        ("a guessed cookie", request_2(ClientSecurity::Cookie(7), 5)),
        ("no cookie", request_2(ClientSecurity::None, 5)),
        ("a ping", written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(Guid(1)) })),
        ("a ping without a GUID", written(&Offline::Ping { scope: PingScope::Any, time: 1, guid: None })),
        (
            "a part of 4,294,967,295",
            data(1, CapsuleHeader { split, ..capsule(Reliability::Reliable, 1, 0) }, b"x"),
        ),
        ("malformed bytes", vec![0x33; 40]),
    ];
    let mut server = peer(server_config());
    wait_for_silence();
    for (name, datagram) in &floods {
        let region = Region::new(ALLOCATOR);
        let (bytes_in, out) = flood(&mut server, datagram);
        let change = region.change();
        assert_eq!((change.allocations, change.reallocations), (0, 0), "{name}");
        assert!(out <= bytes_in, "{name}: {out} bytes sent for {bytes_in} received");
        assert_eq!(server.connections().count(), 0, "{name}");
        assert_eq!(server.blocks_available(), server.blocks(), "{name}");
    }
    let region = Region::new(ALLOCATOR);
    drop(black_box(Box::new(7)));
    assert_eq!(region.change().allocations, 1, "the allocator must count this allocation");
}

//! The MTU of a connection, and datagrams that are larger than the path.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{Guid, Peer, Reliability};
use rakwire::sim::Conditions;
use rakwire::wire::offline::{ClientSecurity, Offline, ServerSecurity};
use rakwire::wire::{MAX_MTU_IPV6, Reader, Wire};

use crate::support::forged::{answers, capsule, data, written};
use crate::support::raknet::{Net, client_config, messages, peer, server_config};

const GUID: Guid = Guid(7);

fn ipv4() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 19132))
}

fn ipv6() -> SocketAddr {
    SocketAddr::from(([0xFD71, 0, 0, 0, 0, 0, 0, 2], 19132))
}

/// A client that dials, and the lengths of the first requests that leave when the system refuses those that are longer than
/// `longest` bytes.
fn dial(server: SocketAddr, longest: usize) -> (Peer<'static>, Vec<usize>) {
    let (mut client, now) = (peer(client_config()), Instant::ZERO);
    client.connect(now, server).expect("a free slot");
    let mut lengths = Vec::new();
    loop {
        let requests = answers(&mut client, now);
        let Some((to, request)) = requests.first() else { return (client, lengths) };
        lengths.push(request.len());
        if request.len() > longest {
            client.handle_too_large(now, *to, request.len());
        }
    }
}

#[test]
fn a_request_that_is_too_large_for_the_interface_is_followed_by_smaller_ones_at_once() {
    for (server, longest, expected) in [
        (ipv4(), 1_464, &[1_464][..]),
        (ipv4(), 1_400, &[1_464, 1_172]),
        (ipv4(), 600, &[1_464, 1_172, 548]),
        (ipv6(), 1_452, &[1_444]),
        // Tunnels of 1,420 and 1,280 bytes.
        (ipv6(), 1_372, &[1_444, 1_372]),
        (ipv6(), 1_232, &[1_444, 1_372, 1_232]),
    ] {
        assert_eq!(dial(server, longest).1, expected, "{server} {longest}");
    }
}

#[test]
fn where_every_request_is_too_large_the_attempt_waits_for_its_interval() {
    let (client, lengths) = dial(ipv4(), 100);
    assert_eq!(lengths.len(), 3);
    let next = client.poll_timeout().expect("an attempt that goes on");
    assert_eq!(next.saturating_since(Instant::ZERO), Duration::from_millis(500));
}

fn mtu_of(datagram: &[u8]) -> Option<u16> {
    match Offline::read(&mut Reader::new(datagram)) {
        Ok(
            Offline::Request1 { mtu, .. }
            | Offline::Reply1 { mtu, .. }
            | Offline::Request2 { mtu, .. }
            | Offline::Reply2 { mtu, .. },
        ) => Some(mtu),
        _ => None,
    }
}

#[test]
fn a_reply_never_raises_the_mtu_above_the_last_request() {
    let (mut client, _) = dial(ipv4(), 1_400);
    let reply = Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: 1_492 };
    client.handle_datagram(Instant::ZERO, ipv4(), &written(&reply));
    let requests = answers(&mut client, Instant::ZERO);
    assert_eq!(requests.iter().filter_map(|(_, bytes)| mtu_of(bytes)).collect::<Vec<_>>(), [1_200]);
    let reply = Offline::Reply2 { guid: GUID, client: ipv4(), mtu: 1_492, answer: None };
    client.handle_datagram(Instant::ZERO, ipv4(), &written(&reply));
    let id = client.connection_at(ipv4()).expect("a connection");
    assert_eq!(client.connection_stats(id).map(|stats| stats.mtu), Some(1_200));
}

#[test]
fn over_ipv6_no_peer_offers_or_accepts_more_than_an_ethernet_frame_holds() {
    let (mut server, now) = (peer(server_config()), Instant::from_micros(1));
    server.handle_datagram(now, ipv6(), &written(&Offline::Request1 { protocol: 6, mtu: 1_492 }));
    let replies = answers(&mut server, now);
    assert_eq!(mtu_of(&replies[0].1), Some(MAX_MTU_IPV6));
    let Ok(Offline::Reply1 { security: ServerSecurity::Cookie(cookie), .. }) =
        Offline::read(&mut Reader::new(&replies[0].1))
    else {
        panic!("a reply with a cookie")
    };
    let security = ClientSecurity::Cookie(cookie);
    let request = Offline::Request2 { security, server: ipv6(), mtu: 1_492, guid: GUID };
    server.handle_datagram(now, ipv6(), &written(&request));
    let id = server.connection_at(ipv6()).expect("it is accepted");
    assert_eq!(server.connection_stats(id).map(|stats| stats.mtu), Some(MAX_MTU_IPV6));
}

/// The original reads up to 1,492 bytes, whatever the MTU; others send 1,480 and 1,482.
#[test]
fn datagrams_that_are_longer_than_what_is_sent_are_read() {
    let mut net = Net::new(Conditions::default(), 1);
    net.connect();
    net.run_for(Duration::from_millis(500));
    for (number, length) in (20..).zip([1_472, 1_473, 1_480, 1_482, 1_492, 2_048]) {
        let capsule = capsule(Reliability::Unreliable, 0, 0);
        let header = data(number, capsule, b"").len();
        let message = vec![0x86; length - header];
        let (now, from) = (net.now(), net.pair.a_address);
        net.pair.b.handle_datagram(now, from, &data(number, capsule, &message));
        net.poll();
        assert_eq!(messages(&net.server).last().map(|message| message.len()), Some(length - header));
    }
}

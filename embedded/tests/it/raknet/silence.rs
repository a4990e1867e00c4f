//! Receivers that do not answer requests for their hardware addresses.

use embassy_time::Duration;
use rakwire::raknet::{Delivery, PingScope, RakNet};
use rakwire::wire::offline::Offline;
use rakwire::wire::{Wire as _, Writer};
use rakwire_embassy::raknet::{Connection, PingError};

use crate::support::{Machine, Medium, Net, PORT, Wire, bytes, connect, ipv6, message, run};

/// A time limit longer than a socket may be blocked.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// The number of an address without a machine.
const ABSENT: u8 = 99;

/// Creates a client on any port and a server, which are machines 1 and 2.
fn ethernet() -> (Net, Machine<RakNet>, Machine<RakNet>) {
    let mut net = Net::with_medium(Wire::losing(0), Medium::Ethernet);
    let (client, server) = (net.client::<RakNet, 1, 48, 128, 4>(), net.server::<RakNet, 1, 48, 128, 4>());
    (net, client, server)
}

/// Sends one message and receives it.
async fn say(number: u32, from: &Connection<'static>, to: &Connection<'static>) {
    from.send(&message(number, 40), Delivery::RELIABLE_ORDERED).await.expect("an open connection");
    assert_eq!(bytes(&to.recv().await.expect("a message")), message(number, 40));
}

/// Returns a ping with the source address of `from`, as it arrives at machine `to`.
pub(crate) fn forged_ping(from: u8, to: u8) -> Vec<u8> {
    forged_udp(from, to, &ping())
}

/// Returns a salt, the first datagram of a Game Protocol client, with the source address of `from`.
pub(crate) fn forged_salt(from: u8, to: u8) -> Vec<u8> {
    forged_udp(from, to, &[0xF0, 1, 2, from])
}

fn forged_udp(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    // A UDP checksum of 0 means that there is none.
    [ipv4_header(from, to, 17, 8 + payload.len()), udp_header(payload, [0, 0]), payload.to_vec()].concat()
}

/// Returns the first segment of a TCP connection, with the source address of `from`.
pub(crate) fn forged_syn(from: u8, to: u8) -> Vec<u8> {
    let mut segment = [PORT.to_be_bytes(), PORT.to_be_bytes()].concat();
    segment.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 16, 0, 0, 0, 0, 0]);
    let pseudo = [&[10, 0, 0, from, 10, 0, 0, to, 0, 6, 0, 20], &segment[..]].concat();
    segment[16..18].copy_from_slice(&checksum(&pseudo));
    [ipv4_header(from, to, 6, segment.len()), segment].concat()
}

fn ipv4_header(from: u8, to: u8, protocol: u8, length: usize) -> Vec<u8> {
    let mut ip = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    ip[2..4].copy_from_slice(&((20 + length) as u16).to_be_bytes());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum);
    [&frame(from, to, [8, 0]), &ip[..]].concat()
}

/// Returns a forged ping over IPv6.
pub(crate) fn forged_ping_v6(from: u8, to: u8) -> Vec<u8> {
    forged_udp_v6(from, to, &ping())
}

/// Returns a forged salt over IPv6.
pub(crate) fn forged_salt_v6(from: u8, to: u8) -> Vec<u8> {
    forged_udp_v6(from, to, &[0xF0, 1, 2, from])
}

fn forged_udp_v6(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let length = ((8 + payload.len()) as u16).to_be_bytes();
    let addresses = [ipv6(from).octets(), ipv6(to).octets()].concat();
    let ip = [&[0x60, 0, 0, 0], &length[..], &[17, 64], &addresses].concat();
    let pseudo =
        [&addresses, &[0, 0][..], &length, &[0, 0, 0, 17], &udp_header(payload, [0, 0]), payload].concat();
    [&frame(from, to, [0x86, 0xDD]), &ip[..], &udp_header(payload, checksum(&pseudo)), payload].concat()
}

fn ping() -> Vec<u8> {
    let mut ping = [0; 64];
    let mut writer = Writer::new(&mut ping);
    Offline::Ping { scope: PingScope::Any, time: 1, guid: Some(rakwire::raknet::Guid(1)) }
        .write(&mut writer)
        .expect("enough space");
    writer.finish().to_vec()
}

fn frame(from: u8, to: u8, kind: [u8; 2]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from], &kind[..]].concat()
}

fn udp_header(payload: &[u8], checksum: [u8; 2]) -> Vec<u8> {
    [PORT.to_be_bytes(), PORT.to_be_bytes(), ((8 + payload.len()) as u16).to_be_bytes(), checksum].concat()
}

/// Computes the checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

#[test]
fn a_forged_request_blocks_a_server_only_briefly() {
    run(async {
        let (net, client, server) = ethernet();
        let (here, there) = connect(&client, &server).await;
        say(1, &there, &here).await;
        net.forge(2, forged_ping(ABSENT, 2));
        // Waits until the answer is in the socket.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        say(2, &there, &here).await;
        // Pings must be answered again, too.
        assert!(client.handle.ping(server.address, TIME_LIMIT).await.is_ok());
    });
}

#[test]
fn a_client_keeps_its_port_after_its_datagrams_were_lost() {
    run(async {
        let (_net, client, server) = ethernet();
        let (here, there) = connect(&client, &server).await;
        let absent = ([10, 0, 0, ABSENT], PORT).into();
        let error = client.handle.ping(absent, Duration::from_millis(50)).await;
        assert!(matches!(error, Err(PingError::NoAnswer)));
        // The server would not recognise a client with another port.
        say(1, &here, &there).await;
        say(2, &there, &here).await;
    });
}

#[test]
fn an_unroutable_receiver_does_not_block_other_receivers() {
    run(async {
        let (_net, client, server) = ethernet();
        let far = ([192, 0, 2, 1], PORT).into();
        let error = client.handle.ping(far, Duration::from_millis(50)).await;
        assert!(matches!(error, Err(PingError::NoAnswer)));
        let (here, there) = connect(&client, &server).await;
        say(1, &here, &there).await;
    });
}

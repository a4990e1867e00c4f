//! Offline messages: pings, discovery and out-of-band messages.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::{
    DropReason, Event, Guid, OutOfBand, OutOfBandError, Peer, PingError, PingScope, UnconnectedEvents,
};
use rakwire::wire::offline::Offline;
use rakwire::wire::{MAX_DATAGRAM, Wire, Writer};

use crate::support::raknet::{client_config, peer, server_config};

fn address(text: &str) -> SocketAddr {
    text.parse().expect("a literal address")
}

/// Delivers the pending datagrams of `from` to `to`, with the source address `source`.
fn carry(from: &mut Peer<'_>, to: &mut Peer<'_>, now: Instant, source: SocketAddr) -> usize {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut count = 0;
    while let Some(transmit) = from.poll_transmit(now, &mut buffer) {
        to.handle_datagram(now, source, transmit.payload);
        count += 1;
    }
    count
}

fn written(message: &Offline<'_>) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let mut writer = Writer::new(&mut buffer);
    message.write(&mut writer).expect("the buffer is large enough");
    writer.finish().to_vec()
}

/// Returns the pongs (`p`), out-of-band messages (`o`) and advertisements (`a`), each with its source and its data.
fn take_events(peer: &mut Peer<'_>) -> Vec<(char, SocketAddr, Vec<u8>)> {
    let mut events = Vec::new();
    while let Some(event) = peer.poll_event() {
        if let Event::Pong { from, data, .. } = event {
            events.push(('p', from, data.to_vec()));
        } else if let Event::OutOfBand { from, data, .. } = event {
            events.push(('o', from, data.to_vec()));
        } else if let Event::Advertisement { from, data, .. } = event {
            events.push(('a', from, data.to_vec()));
        }
    }
    events
}

#[test]
fn out_of_band_messages_reach_peers_that_accept_them() {
    let mut config = server_config();
    config.out_of_band = OutOfBand::Accept;
    let (mut sender, mut receiver) = (peer(client_config()), peer(config));
    let (now, to, source) = (Instant::ZERO, address("192.0.2.2:2"), address("192.0.2.1:1"));
    assert_eq!(sender.send_out_of_band(now, to, b"\x00hello"), Ok(()));
    assert_eq!(sender.send_out_of_band(now, to, &[7; 399]), Ok(()));
    assert_eq!(sender.advertise(now, to, b"a game"), Ok(()));
    assert_eq!(sender.advertise(now, to, b""), Ok(()));
    assert_eq!(carry(&mut sender, &mut receiver, now, source), 4);
    let expected = [
        ('o', source, b"\x00hello".to_vec()),
        ('o', source, vec![7; 399]),
        ('a', source, b"a game".to_vec()),
        ('a', source, Vec::new()),
    ];
    assert_eq!(take_events(&mut receiver), expected);
    for peer in [sender, receiver] {
        assert_eq!(peer.blocks_available(), peer.blocks());
    }
}

#[test]
fn refused_out_of_band_messages_take_no_memory() {
    let (mut sender, mut receiver) = (peer(client_config()), peer(server_config()));
    let (now, to) = (Instant::ZERO, address("192.0.2.2:2"));
    assert_eq!(sender.send_out_of_band(now, to, b"hello"), Ok(()));
    carry(&mut sender, &mut receiver, now, to);
    assert_eq!(receiver.stats().dropped(DropReason::Unexpected), 1);
    assert_eq!(receiver.blocks_available(), receiver.blocks());
    assert!(receiver.poll_event().is_none());
}

#[test]
fn out_of_band_messages_are_limited_in_length_and_number() {
    let mut config = server_config();
    config.out_of_band = OutOfBand::Accept;
    let (mut sender, mut receiver) = (peer(client_config()), peer(config));
    let (now, to) = (Instant::ZERO, address("192.0.2.2:2"));
    assert_eq!(sender.send_out_of_band(now, to, &[]), Err(OutOfBandError::BadLength));
    assert_eq!(sender.send_out_of_band(now, to, &[0; 400]), Err(OutOfBandError::BadLength));
    assert_eq!(sender.advertise(now, to, &[0; 399]), Err(OutOfBandError::BadLength));
    let accepted = (0..20).filter(|_| sender.send_out_of_band(now, to, b"x").is_ok()).count();
    assert_eq!(accepted, 8);
    let flood = written(&Offline::OutOfBand { guid: Guid(1), data: b"x" });
    (0..1_000).for_each(|_| receiver.handle_datagram(now, to, &flood));
    assert_eq!(receiver.stats().dropped(DropReason::AnswersFull), 992);
    assert_eq!(receiver.blocks() - receiver.blocks_available(), 8);
    assert_eq!(take_events(&mut receiver).len(), 8);
}

#[test]
fn every_server_that_receives_a_broadcast_ping_is_found() {
    let mut client = peer(client_config());
    let (mut first, mut second) = (peer(server_config()), peer(server_config()));
    assert_eq!((first.set_advertisement(b"first"), second.set_advertisement(b"second")), (Ok(()), Ok(())));
    let broadcast = address("255.255.255.255:19132");
    let (now, from) = (Instant::from_micros(1_000_000), address("192.0.2.1:1"));
    let later = now + Duration::from_millis(3);
    assert_eq!(client.discover(now, broadcast, PingScope::OpenConnections), Ok(()));
    let mut buffer = [0; MAX_DATAGRAM];
    let transmit = client.poll_transmit(now, &mut buffer).expect("a ping");
    assert_eq!((transmit.to, transmit.payload[0]), (broadcast, 2));
    first.handle_datagram(now, from, transmit.payload);
    second.handle_datagram(now, from, transmit.payload);
    carry(&mut first, &mut client, later, address("192.0.2.7:19132"));
    carry(&mut second, &mut client, later, address("192.0.2.8:19132"));
    let expected = [
        ('p', address("192.0.2.7:19132"), b"first".to_vec()),
        ('p', address("192.0.2.8:19132"), b"second".to_vec()),
    ];
    assert_eq!(take_events(&mut client), expected);
    let late = written(&Offline::Pong { time: 0, guid: Guid(1), data: b"late" });
    client.handle_datagram(now + Duration::from_secs(5), address("192.0.2.9:1"), &late);
    assert!(take_events(&mut client).is_empty(), "a pong after the expiry of its ping must be dropped");
}

#[test]
fn unsolicited_pongs_are_dropped_and_outstanding_pings_are_limited() {
    let mut client = peer(client_config());
    let (now, server) = (Instant::ZERO, address("192.0.2.2:2"));
    let pong = written(&Offline::Pong { time: 0, guid: Guid(1), data: b"x" });
    client.handle_datagram(now, server, &pong);
    assert_eq!(client.ping(now, server), Ok(()));
    client.handle_datagram(now, server, &pong);
    assert_eq!(
        client.stats().dropped(DropReason::Unexpected),
        2,
        "a pong before its ping was sent must be dropped"
    );
    let mut buffer = [0; MAX_DATAGRAM];
    assert!(client.poll_transmit(now, &mut buffer).is_some());
    client.handle_datagram(now, address("192.0.2.3:2"), &pong);
    client.handle_datagram(now, server, &pong);
    client.handle_datagram(now, server, &pong);
    assert_eq!(take_events(&mut client).len(), 1);
    for port in 0..8 {
        assert_eq!(client.ping(now, SocketAddr::from(([192, 0, 2, 9], port))), Ok(()));
    }
    assert_eq!(client.ping(now, server), Err(PingError::TooMany));
    client.forget_ping(SocketAddr::from(([192, 0, 2, 9], 3)));
    assert_eq!(client.ping(now, server), Ok(()));
}

#[test]
fn pongs_and_messages_can_be_polled_separately_in_order() {
    let mut config = client_config();
    config.out_of_band = OutOfBand::Accept;
    let (mut here, mut there) = (peer(config), peer(server_config()));
    let (now, to, source) = (Instant::ZERO, address("192.0.2.2:2"), address("192.0.2.1:1"));
    for number in 1..=3 {
        assert_eq!(there.send_out_of_band(now, source, &[number]), Ok(()));
        assert_eq!(there.set_advertisement(&[number + 100]), Ok(()));
        assert_eq!(here.ping(now, to), Ok(()));
        carry(&mut here, &mut there, now, source);
        carry(&mut there, &mut here, now, to);
    }
    let mut pongs = Vec::new();
    while let Some(Event::Pong { data, .. }) = here.poll_unconnected(UnconnectedEvents::Pongs) {
        pongs.push(data.to_vec());
    }
    assert_eq!(pongs, [[101], [102], [103]]);
    let mut messages = Vec::new();
    while let Some(Event::OutOfBand { data, .. }) = here.poll_unconnected(UnconnectedEvents::Messages) {
        messages.push(data.to_vec());
    }
    assert_eq!(messages, [[1], [2], [3]]);
    assert!(here.poll_unconnected(UnconnectedEvents::All).is_none());
    assert_eq!(here.blocks_available(), here.blocks());
}

//! When an acknowledgement leaves together with what the application sends.

use core::time::Duration;

use rakwire::raknet::{Delivery, Peer};
use rakwire::sim::Conditions;
use rakwire::wire::datagram::DatagramHeader;
use rakwire::wire::{MAX_DATAGRAM, Reader, Wire};
use rakwire::{Instant, Machine};

use crate::support::raknet::Net;

const MILLIS: Duration = Duration::from_millis(1);

/// What a peer sends now: whether each datagram is an acknowledgement.
fn sent(peer: &mut Peer<'_>, now: Instant) -> Vec<bool> {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut sent = Vec::new();
    while let Some(transmit) = Machine::poll_transmit(peer, now, &mut buffer) {
        let header = DatagramHeader::read(&mut Reader::new(transmit.payload)).expect("a header of our own");
        sent.push(matches!(header, DatagramHeader::Ack { .. }));
    }
    sent
}

/// A server that has sent before, has got a message that long ago and sends one: what leaves.
fn answer_after(time: Duration) -> Vec<bool> {
    let mut net = Net::new(Conditions::default(), 1);
    let (client, server) = net.connect();
    net.run_for(Duration::from_secs(1));
    let now = net.now();
    net.pair.a.send(now, client, &[0x86; 100], Delivery::UNRELIABLE).expect("room");
    let mut buffer = [0; MAX_DATAGRAM];
    let datagram = net.pair.a.poll_transmit(now, &mut buffer).expect("a message").payload.to_vec();
    let from = net.pair.a_address;
    net.pair.b.handle_datagram(now, from, &datagram);
    let now = now + time;
    net.pair.b.send(now, server, &[0x86; 100], Delivery::UNRELIABLE).expect("room");
    sent(&mut net.pair.b, now)
}

#[test]
fn an_acknowledgement_follows_what_the_application_sends() {
    assert_eq!(answer_after(2 * MILLIS), [false, true]);
}

#[test]
fn on_a_short_path_an_acknowledgement_waits_for_more() {
    assert_eq!(answer_after(MILLIS), [false]);
}

#[test]
fn an_acknowledgement_that_is_due_goes_first() {
    assert_eq!(answer_after(10 * MILLIS), [true, false]);
}

/// Datagrams of one connection leave one after the other, so that a system sends them with one call.
#[test]
fn what_a_connection_sends_is_not_interleaved() {
    let mut net = Net::new(Conditions::default(), 1);
    let (_, server) = net.connect();
    let other = net.pair.b.connect(net.now(), ([192, 0, 2, 9], 9).into()).expect("a free slot");
    let now = net.now();
    for _ in 0..3 {
        net.pair.b.send(now, server, &[0x86; 1_400], Delivery::UNRELIABLE).expect("room");
    }
    let there = [server, other].map(|id| net.pair.b.connection(id).expect("it exists").remote);
    let mut buffer = [0; MAX_DATAGRAM];
    let mut to = Vec::new();
    while let Some(transmit) = net.pair.b.poll_transmit(now, &mut buffer) {
        to.push(transmit.to);
    }
    to.dedup();
    assert!(to.len() == 2 && there.iter().all(|address| to.contains(address)), "{to:?}");
}

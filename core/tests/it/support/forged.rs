//! Forged datagrams, and the bytes that they make a peer send.

use core::net::SocketAddr;

use rakwire::raknet::{Guid, Peer, Reliability};
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record};
use rakwire::wire::offline::{ClientSecurity, Offline};
use rakwire::wire::{MAX_DATAGRAM, Wire, Writer};
use rakwire::{Instant, U24};

pub(crate) const UNKNOWN_SOURCE: ([u8; 4], u16) = ([203, 0, 113, 9], 4_000);

pub(crate) fn written<'a>(packet: &impl Wire<'a>) -> Vec<u8> {
    let mut buffer = [0; 2_048];
    let mut writer = Writer::new(&mut buffer);
    packet.write(&mut writer).expect("the buffer is large enough");
    writer.finish().to_vec()
}

/// Returns the capsule header of a message with this reliability, message number and ordering index.
pub(crate) fn capsule(reliability: Reliability, reliable: u32, order: u32) -> CapsuleHeader {
    CapsuleHeader {
        reliability,
        bits: 8,
        reliable: U24::new(reliable),
        sequence: U24::new(0),
        order: U24::new(order),
        channel: 0,
        split: None,
    }
}

/// Returns a data datagram with one capsule.
pub(crate) fn data(number: u32, capsule: CapsuleHeader, payload: &[u8]) -> Vec<u8> {
    let mut bytes = written(&DatagramHeader::Data { hints: 4, number: U24::new(number) });
    let bits = u16::try_from(payload.len() * 8).expect("a short payload");
    bytes.extend(written(&CapsuleHeader { bits, ..capsule }));
    bytes.extend(payload);
    bytes
}

/// Returns a negative acknowledgement with `times` records of the numbers from `first` to `last`.
pub(crate) fn missing(first: u32, last: u32, times: u16) -> Vec<u8> {
    let mut bytes = written(&DatagramHeader::Nack { records: times });
    let record = written(&Record { first: U24::new(first), last: U24::new(last) });
    (0..times).for_each(|_| bytes.extend(&record));
    bytes
}

pub(crate) fn request_2(security: ClientSecurity<'_>, guid: u64) -> Vec<u8> {
    let server = SocketAddr::from(([192, 0, 2, 2], 2));
    written(&Offline::Request2 { security, server, mtu: 1_492, guid: Guid(guid) })
}

/// Polls all datagrams from a peer, with their destinations.
pub(crate) fn answers(peer: &mut Peer<'_>, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut answers = Vec::new();
    while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
        answers.push((transmit.to, transmit.payload.to_vec()));
    }
    answers
}

/// Polls all datagrams from a peer; returns their total length.
pub(crate) fn bytes_out(peer: &mut Peer<'_>, now: Instant) -> usize {
    let mut buffer = [0; MAX_DATAGRAM];
    let mut bytes = 0;
    while let Some(transmit) = peer.poll_transmit(now, &mut buffer) {
        bytes += transmit.payload.len();
    }
    bytes
}

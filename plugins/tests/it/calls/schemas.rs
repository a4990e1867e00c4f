//! Peers with functions of the same names but different types.

use rakwire::Instant;
use rakwire::codec::rabbit::{List, Text, pack, unpack};
use rakwire::raknet::RakNet;
use rakwire_plugins::calls::{CallFailure, Function, Message, Mismatch, Refusal};

use super::{Add, Client, First, Moved, ORDERED, TIMEOUT, bytes, exchange, receive, server, transmit};
use crate::support::connections;
use serde_json::Value;

// The functions of another version of the game. Only the last one is unchanged.
function!(NewerAdd, "add", (u32, u32, bool), u32);
function!(NewerSum, "sum", List<'a, u32>, i64);
function!(NewerMoved, "moved", u16, ());
function!(NewerShout, "shout", Text<'a>, Text<'a>);

#[test]
fn calls_with_different_types_are_refused_and_reported() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    server.connect::<Moved, First>(0).expect("a free slot");
    let refused = Err(CallFailure::Refused(Refusal::SchemaMismatch));
    // One more argument.
    client.call::<NewerAdd>(id, &(2, 3, true), TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<NewerAdd>().map(drop), refused);
    let reported = Mismatch { peer: id, name: Some("add") };
    assert_eq!((server.poll_mismatch(), server.poll_mismatch()), (Some(reported), None));
    let reported = Mismatch { peer: id, name: None };
    assert_eq!((client.poll_mismatch(), client.poll_mismatch()), (Some(reported), None));
    // Another answer type.
    client.call::<NewerSum>(id, &List::new(&[1, 2]), TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<NewerSum>().map(drop), refused);
    // Another argument type of a signal.
    client.signal::<NewerMoved>(id, &7, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    assert_eq!(server.poll_mismatch(), Some(Mismatch { peer: id, name: Some("moved") }));
    assert_eq!((server.stats().mismatched, client.stats().mismatched), (3, 2));
    assert_eq!((server.context.log.len(), server.stats().calls), (0, 0));
    // Unchanged types.
    client.call::<NewerShout>(id, &Text::new("a"), TIMEOUT, ORDERED).expect("enough space");
    exchange(&mut client, &mut server, id);
    let finished = client.poll_finished().expect("the call has finished");
    assert_eq!(finished.answer::<NewerShout>().map(drop), Ok(()));
}

/// A peer with an earlier version of the plugin, or with another implementation, sends no fingerprints.
#[test]
fn peers_with_and_without_fingerprints_can_call_each_other() {
    let id = connections::<RakNet>(1)[0];
    let (mut client, mut server) = (Client::new(()), server());
    server.connect::<Moved, First>(0).expect("a free slot");
    // A message without a fingerprint.
    let (mut message, mut arguments) = ([0; 32], [0; 8]);
    let arguments = pack(&(8_u32, 12_u32), &mut arguments).expect("enough space");
    let call = Message::Call { number: 7, name: b"add", arguments };
    let length = call.encode(&mut message).expect("enough space");
    receive(&mut server, id, &message[..length]);
    let answers = transmit(&mut server, Instant::ZERO);
    assert_eq!(Message::decode(&answers[0]), Some(Message::Answer { number: 7, answer: &[20 << 2, 0] }));
    receive(&mut server, id, b"\x7F\x03\x05moved\x09");
    assert_eq!(
        (server.context.log.last().map(String::as_str), server.stats().mismatched),
        (Some("First 9"), 0)
    );
    // A peer without fingerprints ignores the bytes after the arguments.
    client.call::<Add>(id, &(2, 3), TIMEOUT, ORDERED).expect("enough space");
    client.signal::<Moved>(id, &9, ORDERED).expect("enough space");
    let requests = transmit(&mut client, Instant::ZERO);
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/calls.json")).expect("valid JSON");
    let expected =
        vectors[5..].iter().map(|vector| bytes(vector["hex"].as_str().expect("hexadecimal digits")));
    assert_eq!(requests, expected.collect::<Vec<_>>());
    let Some(Message::Call { arguments, .. }) = Message::decode(&requests[0]) else { panic!("not a call") };
    assert_eq!(unpack(arguments), Ok((2_u32, 3_u32)));
}

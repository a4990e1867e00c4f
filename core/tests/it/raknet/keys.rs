//! Messages from a server that requires keys: they make a client's attempt fail immediately, with a distinct reason
//! (docs/raknet.md#key-problems).

use rakwire::Instant;
use rakwire::raknet::{ConnectFailure, Event, Guid, Peer, Reliability};
use rakwire::wire::Reader;
use rakwire::wire::Wire;
use rakwire::wire::datagram::CapsuleHeader;
use rakwire::wire::offline::{Offline, ServerSecurity};

use crate::support::forged::{answers, capsule, data, written};
use crate::support::raknet::{client_config, peer};

const NOW: Instant = Instant::from_micros(1_000_000);
const SERVER: ([u8; 4], u16) = ([203, 0, 113, 1], 19_132);
const GUID: Guid = Guid(7);
const MTU: u16 = 1_200;

/// The progress of a client's attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client has sent its request 1.
    Asked,
    /// The client has sent its connection request.
    Requested,
}
use Stage::{Asked, Requested};

fn client(stage: Stage) -> Peer<'static> {
    let mut client = peer(client_config());
    client.connect(NOW, SERVER.into()).expect("a free slot");
    answers(&mut client, NOW);
    if stage == Requested {
        let reply_1 = Offline::Reply1 { guid: GUID, security: ServerSecurity::None, mtu: MTU };
        client.handle_datagram(NOW, SERVER.into(), &written(&reply_1));
        let reply_2 = Offline::Reply2 { guid: GUID, client: SERVER.into(), mtu: MTU, answer: None };
        client.handle_datagram(NOW, SERVER.into(), &written(&reply_2));
        answers(&mut client, NOW);
    }
    client
}

/// Returns the client's failure after it has received a datagram.
fn failure_after(client: &mut Peer<'_>, datagram: &[u8]) -> Option<ConnectFailure> {
    client.handle_datagram(NOW, SERVER.into(), datagram);
    match client.poll_event() {
        Some(Event::ConnectFailed { reason, .. }) => Some(reason),
        None => None,
        Some(other) => panic!("{other:?}"),
    }
}

/// The messages about keys, with the failure that each one causes.
const MESSAGES: [(&[u8], ConnectFailure); 7] = [
    (&[0x0A], ConnectFailure::SecurityRequired),
    (&[0x0A, 0], ConnectFailure::SecurityRequired),
    (&[0x0A, 1], ConnectFailure::IdentityRequired),
    (&[0x0A, 2], ConnectFailure::InvalidIdentity),
    (&[0x0B], ConnectFailure::SecurityRequired),
    (
        &[0x0B, 4, 0x80, 0xFF, 0xFF, 0xFE, 0x4A, 0xBC, 0, 0, 0, 0, 0, 0, 0, 7],
        ConnectFailure::SecurityRequired,
    ),
    (&[0x0C], ConnectFailure::PublicKeyMismatch),
];

#[test]
fn key_errors_inside_the_connection_fail_the_attempt() {
    for (message, failure) in MESSAGES {
        let datagram = data(0, capsule(Reliability::Reliable, 0, 0), message);
        assert_eq!(failure_after(&mut client(Requested), &datagram), Some(failure), "{message:02x?}");
    }
}

#[test]
fn offline_key_errors_fail_the_attempt() {
    for stage in [Asked, Requested] {
        for (message, failure) in MESSAGES {
            assert_eq!(failure_after(&mut client(stage), message), Some(failure), "{stage:?} {message:02x?}");
        }
    }
}

/// C++ RakNet declares the number of bytes as the number of bits, so it sends only two bits of a two-byte message.
#[test]
fn truncated_key_errors_of_cpp_raknet_are_parsed() {
    for left in [0x00, 0x0A] {
        let mut datagram = data(0, capsule(Reliability::Reliable, 0, 0), &[left]);
        datagram[5..7].copy_from_slice(&2_u16.to_be_bytes());
        let header = CapsuleHeader::read(&mut Reader::new(&datagram[4..])).expect("a capsule");
        assert_eq!((header.bits, header.length()), (2, 1));
        assert_eq!(failure_after(&mut client(Requested), &datagram), Some(ConnectFailure::SecurityRequired));
    }
}

/// An answer in reply 2 means that the server encrypts, although this client sent no challenge.
#[test]
fn an_unexpected_key_answer_fails_the_attempt_with_security_required() {
    let reply_2 = Offline::Reply2 { guid: GUID, client: SERVER.into(), mtu: MTU, answer: Some(&[9; 128]) };
    assert_eq!(failure_after(&mut client(Asked), &written(&reply_2)), Some(ConnectFailure::SecurityRequired));
}

#[test]
fn key_errors_from_other_addresses_are_ignored() {
    for (message, _) in MESSAGES {
        let mut waiting = client(Asked);
        waiting.handle_datagram(NOW, ([203, 0, 113, 2], 19_132).into(), message);
        assert!(waiting.poll_event().is_none(), "{message:02x?}");
    }
    assert_eq!(failure_after(&mut client(Asked), &[0]), None);
    assert_eq!(failure_after(&mut client(Requested), &[0]), None);
}

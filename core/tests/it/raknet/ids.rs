//! The message ids that an application may send and receive, as in the table of docs/raknet.md.

use rakwire::raknet::{Delivery, DropReason, Reliability, SendError};
use rakwire::sim::Conditions;
use rakwire::wire::id;

use crate::support::forged::{capsule, data};
use crate::support::raknet::{Net, messages};

/// A number that is greater than all datagram and message numbers of the handshake.
const NEXT: u32 = 20;

#[test]
fn applications_can_send_only_message_ids_from_0x1b() {
    let mut net = Net::new(Conditions::default(), 1);
    let (client, _) = net.connect();
    assert_eq!((id::TIMESTAMP, id::USER), (0x1B, 0x86), "the ids in docs/raknet.md");
    for first in 0..=u8::MAX {
        let sent = net.pair.a.send(net.pair.now, client, &[first, 7], Delivery::RELIABLE_ORDERED);
        let expected = if first < 0x1B { Err(SendError::ReservedId) } else { Ok(None) };
        assert_eq!(sent, expected, "{first:#04x}");
    }
    let empty = net.pair.a.send(net.pair.now, client, &[], Delivery::RELIABLE_ORDERED);
    assert_eq!(empty, Err(SendError::Empty));
    net.run_for(core::time::Duration::from_secs(5));
    let arrived: Vec<Vec<u8>> = messages(&net.server).into_iter().map(<[u8]>::to_vec).collect();
    assert_eq!(arrived, (0x1B..=u8::MAX).map(|first| vec![first, 7]).collect::<Vec<_>>());
}

/// Returns true if RakNet itself uses this id inside connections.
const fn is_control(first: u8) -> bool {
    matches!(
        first,
        id::CONNECTED_PING
            | id::CONNECTED_PONG
            | id::DETECT_LOST_CONNECTIONS
            | id::CONNECTION_REQUEST
            | id::REMOTE_SYSTEM_REQUIRES_PUBLIC_KEY
            | id::CONNECTION_REQUEST_ACCEPTED
            | id::NEW_INCOMING_CONNECTION
            | id::DISCONNECTION_NOTIFICATION
            | id::INVALID_PASSWORD
    )
}

/// RakNet handles its own messages, and drops others with an id below 0x1B.
#[test]
fn applications_receive_only_message_ids_from_0x1b() {
    for first in 0..=u8::MAX {
        let mut net = Net::new(Conditions::default(), 1);
        net.connect();
        let (now, from) = (net.now(), net.pair.a_address);
        for (number, message) in (NEXT..).zip([&[first, 7][..], &[first]]) {
            let datagram = data(number, capsule(Reliability::Reliable, number, 0), message);
            net.pair.b.handle_datagram(now, from, &datagram);
        }
        net.run_for(core::time::Duration::from_millis(10));
        let expected: &[&[u8]] = if first < 0x1B { &[] } else { &[&[first, 7], &[first]] };
        assert_eq!(messages(&net.server), expected, "{first:#04x}");
        let is_reserved = first < 0x1B && !is_control(first);
        let dropped = net.pair.b.stats().dropped(DropReason::ReservedId);
        assert_eq!(dropped, if is_reserved { 2 } else { 0 }, "{first:#04x}");
    }
}

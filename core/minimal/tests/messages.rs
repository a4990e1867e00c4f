//! Peers in the small profile: the features that they lack, and those that work as in the full profile.

use core::time::Duration;

use rakwire::raknet::{
    Capacity, Channel, Config, ConnectionId, Delivery, DisconnectReason, Event, Peer, Priority, SendError,
};
use rakwire::sim::{Conditions, Pair};
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Split};
use rakwire::wire::{Wire, Writer};

const CAPACITY: Capacity = Capacity { connections: 1, blocks: 256, block_size: 128 };
/// The first byte of an application message.
const ID: u8 = 0x86;

type Peers = Pair<Peer<'static>, Peer<'static>>;

/// Returns a path without faults.
fn path() -> Conditions {
    Conditions { latency: Duration::from_millis(5), ..Conditions::default() }
}

/// Returns a connected client and server, and the id of the connection at each.
fn connected(conditions: Conditions) -> (Peers, ConnectionId, ConnectionId) {
    let mut config = Config::new([1; 32]);
    config.max_incoming = 1;
    let server = Peer::with_capacity(CAPACITY, config);
    let client = Peer::with_capacity(CAPACITY, Config::new([2; 32]));
    let mut pair = Pair::new(client, server, conditions, 7);
    let here = pair.a.connect(pair.now, pair.b_address).expect("a vacant slot");
    let (mut opened, mut there) = (false, None);
    while !opened || there.is_none() {
        assert!(pair.step(), "no event is left");
        while let Some(event) = pair.a.poll_event() {
            opened |= matches!(event, Event::Connected { .. });
        }
        while let Some(event) = pair.b.poll_event() {
            if let Event::Connected { id, .. } = event {
                there = Some(id);
            }
        }
    }
    (pair, here, there.expect("the server reports `Connected`"))
}

/// Advances the time until the server has received `count` messages.
fn receive(pair: &mut Peers, count: usize) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while messages.len() < count {
        assert!(pair.step(), "no event is left after {} messages", messages.len());
        while pair.a.poll_event().is_some() {}
        while let Some(event) = pair.b.poll_event() {
            if let Event::Message { message, .. } = event {
                messages.push(message.chunks().flatten().copied().collect());
            }
        }
    }
    messages
}

/// Returns a data datagram with one capsule.
fn datagram(number: u32, header: CapsuleHeader, payload: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 1_464];
    let mut writer = Writer::new(&mut buffer);
    let number = rakwire::U24::new(number);
    DatagramHeader::Data { hints: 0, number }.write(&mut writer).expect("space in the buffer");
    header.write(&mut writer).expect("space in the buffer");
    writer.bytes(payload).expect("space in the buffer");
    writer.finish().to_vec()
}

/// The path loses, duplicates and reorders a tenth of all datagrams each. Both profiles deliver each message once.
#[test]
fn ordered_messages_are_delivered_over_a_bad_path() {
    let conditions = Conditions { loss: 0.1, duplication: 0.1, reordering: 0.1, ..path() };
    let (mut pair, here, _) = connected(conditions);
    let mut expected = Vec::new();
    for round in 0..50_u8 {
        for number in 0..4 {
            let message = vec![ID, round, number, 7, 7];
            let priority = if number % 2 == 0 { Priority::High } else { Priority::Low };
            let delivery = Delivery::RELIABLE_ORDERED.with_priority(priority);
            pair.a.send(pair.now, here, &message, delivery).expect("free memory");
            expected.push(message);
        }
        let from = usize::from(round) * 4;
        assert_eq!(receive(&mut pair, 4), expected[from..]);
    }
    assert!(pair.a.is_intact() && pair.b.is_intact());
}

#[test]
fn the_small_profile_refuses_a_message_longer_than_a_datagram() {
    let (mut pair, here, _) = connected(path());
    let long = [ID; 4_000];
    let sent = pair.a.send(pair.now, here, &long, Delivery::RELIABLE);
    let can = pair.a.can_send(here, long.len(), Delivery::RELIABLE);
    if cfg!(feature = "full") {
        assert_eq!((sent, can), (Ok(None), Ok(())));
        assert_eq!(receive(&mut pair, 1), [long]);
    } else {
        assert_eq!((sent, can), (Err(SendError::FeatureDisabled), Err(SendError::FeatureDisabled)));
    }
}

/// A peer of the small profile cannot reassemble messages.
#[test]
fn a_part_of_a_split_message_closes_a_small_profile_connection() {
    let (mut pair, _, there) = connected(path());
    let from = pair.a_address;
    let capsule = CapsuleHeader {
        reliability: rakwire::raknet::Reliability::Unreliable,
        bits: 16,
        reliable: rakwire::U24::new(0),
        sequence: rakwire::U24::new(0),
        order: rakwire::U24::new(0),
        channel: 0,
        split: Some(Split { count: 2, id: 1, index: 0 }),
    };
    let part = datagram(1_000, capsule, &[ID, 1]);
    pair.b.handle_datagram(pair.now, from, &part);
    let mut reason = None;
    while let Some(event) = pair.b.poll_event() {
        if let Event::Disconnected { id, reason: why, .. } = event {
            assert_eq!(id, there);
            reason = Some(why);
        }
    }
    let expected = if cfg!(feature = "full") { None } else { Some(DisconnectReason::MessageTooLarge) };
    assert_eq!(reason, expected);
}

#[test]
fn an_outdated_sequenced_message_is_dropped() {
    let (mut pair, here, _) = connected(path());
    pair.a.send(pair.now, here, &[ID, 9], Delivery::UNRELIABLE_SEQUENCED).expect("free memory");
    assert_eq!(receive(&mut pair, 1), [[ID, 9]]);
    let from = pair.a_address;
    for (number, sequence) in [(1_000, 5), (1_001, 3)] {
        let capsule = CapsuleHeader {
            reliability: rakwire::raknet::Reliability::UnreliableSequenced,
            bits: 16,
            reliable: rakwire::U24::new(0),
            sequence: rakwire::U24::new(sequence),
            order: rakwire::U24::new(0),
            channel: 1,
            split: None,
        };
        pair.b.handle_datagram(pair.now, from, &datagram(number, capsule, &[ID, sequence as u8]));
    }
    let mut sequences = Vec::new();
    while let Some(event) = pair.b.poll_event() {
        if let Event::Message { message, .. } = event {
            sequences.push(message.chunks().flatten().copied().last().expect("the message fits"));
        }
    }
    assert_eq!(sequences, [5]);
}

#[test]
fn the_small_profile_refuses_channels_above_3() {
    let (mut pair, here, _) = connected(path());
    let far = Channel::new(4).expect("a channel below 32");
    let sent = pair.a.send(pair.now, here, &[ID, 4], Delivery::RELIABLE_ORDERED.on(far));
    if cfg!(feature = "full") {
        assert_eq!(sent, Ok(None));
        assert_eq!(receive(&mut pair, 1), [[ID, 4]]);
    } else {
        assert_eq!(sent, Err(SendError::FeatureDisabled));
    }
    // A message that is neither ordered nor sequenced has no channel, so the channel number is ignored.
    assert_eq!(pair.a.send(pair.now, here, &[ID, 5], Delivery::RELIABLE.on(far)), Ok(None));
    assert_eq!(receive(&mut pair, 1), [[ID, 5]]);
}

#[test]
fn the_small_profile_keeps_no_counters() {
    let (mut pair, here, _) = connected(path());
    pair.a.send(pair.now, here, &[ID, 1], Delivery::RELIABLE).expect("free memory");
    receive(&mut pair, 1);
    let stats = pair.a.connection_stats(here).expect("an open connection");
    let counts = cfg!(feature = "full");
    assert_eq!(stats.messages_sent > 0, counts);
    assert_eq!(pair.a.stats().datagrams_sent > 0, counts);
    assert_eq!(pair.a.stats().drops().count() > 0, counts);
    // Measurements such as the RTT are available in both profiles.
    assert!(stats.mtu > 0 && !stats.round_trip.is_zero());
}

#[test]
fn a_vacant_slot_is_reused() {
    let (mut pair, here, _) = connected(path());
    pair.a.disconnect(pair.now, here);
    while pair.a.connection(here).is_some() {
        assert!(pair.step(), "no event is left");
        while pair.a.poll_event().is_some() {}
        while pair.b.poll_event().is_some() {}
    }
    let again = pair.a.connect(pair.now, pair.b_address).expect("the slot is vacant");
    assert_ne!(again, here);
    let mut opened = false;
    while !opened {
        assert!(pair.step(), "no event is left");
        while let Some(event) = pair.a.poll_event() {
            opened |= matches!(event, Event::Connected { .. });
        }
        while pair.b.poll_event().is_some() {}
    }
}

//! The feature `zero-copy`: large messages that are sent and received without copies.

use core::time::Duration;

use rakwire::raknet::{Delivery, DisconnectReason, Event, Outcome, Reliability, SendError};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, OwnedEvent, client_config, peer, server_config};

/// 1 MB would take 1,954 blocks of 512 bytes.
const LENGTH: usize = 1_000_000;

fn message() -> Vec<u8> {
    (0..LENGTH).map(|at| 0x86 | (at / 7) as u8).collect()
}

/// Delivers a message of 1 MB to the server; returns the network and the maximum number of blocks that the server used.
fn deliver(conditions: Conditions, seed: u64) -> (Net, usize) {
    let mut net = Net::new(conditions, seed);
    let (id, _) = net.connect();
    let (now, mut owned) = (net.now(), message());
    let before = net.pair.a.blocks_available();
    let receipted = Delivery { reliability: Reliability::ReliableOrderedWithReceipt, ..Delivery::default() };
    let sent = net.pair.a.send_vec(now, id, &mut owned, receipted);
    let receipt = sent.expect("free memory").expect("a receipt");
    assert!(owned.is_empty(), "the peer must take the vector");
    let used = before - net.pair.a.blocks_available();
    let mut most = 0;
    let is_notified = |net: &mut Net| {
        most = most.max(net.pair.b.blocks() - net.pair.b.blocks_available());
        net.client.contains(&OwnedEvent::Receipt(receipt, Outcome::Acknowledged))
    };
    assert!(net.run_until(Duration::from_secs(60), is_notified));
    assert!(used < LENGTH / 1_400 + 2, "more than a block per part and a record: {used}");
    (net, most)
}

fn received(net: &Net) -> Vec<&Vec<u8>> {
    let messages = net.server.iter().filter_map(|event| match event {
        OwnedEvent::Message(_, _, bytes) => Some(bytes),
        OwnedEvent::Connected(_)
        | OwnedEvent::Failed(..)
        | OwnedEvent::Disconnected(..)
        | OwnedEvent::Pong(..)
        | OwnedEvent::Receipt(..)
        | OwnedEvent::Progress(_) => None,
    });
    messages.collect()
}

fn assert_all_is_given_back(net: &mut Net) {
    let is_free = |net: &mut Net| {
        let (a, b) = (&net.pair.a, &net.pair.b);
        a.blocks_available() == a.blocks() && b.blocks_available() == b.blocks()
    };
    assert!(net.run_until(Duration::from_secs(60), is_free));
    assert!(net.pair.a.is_intact() && net.pair.b.is_intact());
}

#[test]
fn parts_received_in_order_take_no_blocks() {
    let (mut net, most) = deliver(Conditions::default(), 1);
    assert_eq!(received(&net), [&message()]);
    assert!(most < 16, "parts in order must take no blocks: {most}");
    assert_all_is_given_back(&mut net);
}

#[test]
fn a_large_message_is_assembled_despite_loss_duplication_and_reordering() {
    for seed in 0..8 {
        let conditions = Conditions {
            loss: 0.05,
            duplication: 0.05,
            jitter: Duration::from_millis(5),
            ..Conditions::default()
        };
        let (mut net, _) = deliver(conditions, seed);
        assert_eq!(received(&net), [&message()]);
        assert_all_is_given_back(&mut net);
    }
}

#[test]
fn a_received_large_message_is_taken_without_a_copy() {
    let mut net = Net::new(Conditions::default(), 1);
    let (id, _) = net.connect();
    let now = net.now();
    net.pair.a.send_vec(now, id, &mut message(), Delivery::RELIABLE).expect("free memory");
    let (stood, taken) = loop {
        assert!(net.pair.step());
        while net.pair.a.poll_event().is_some() {}
        if let Some(Event::Message { message, .. }) = net.pair.b.poll_event() {
            let stood = message.as_slice().expect("a contiguous message").as_ptr();
            break (stood, net.pair.b.take_event_data());
        }
    };
    assert_eq!((taken.as_ptr(), taken), (stood, message()));
    assert_eq!(net.pair.b.take_event_data(), b"", "the message must have been taken");
    assert_all_is_given_back(&mut net);
}

#[test]
fn a_small_message_is_copied() {
    let mut net = Net::new(Conditions::default(), 1);
    let (id, _) = net.connect();
    let (now, mut small) = (net.now(), vec![0x86; 10_000]);
    let before = net.pair.a.blocks_available();
    net.pair.a.send_vec(now, id, &mut small, Delivery::RELIABLE).expect("free memory");
    assert_eq!(small, b"");
    assert!(before - net.pair.a.blocks_available() >= 10_000 / 512);
    assert!(net.run_until(Duration::from_secs(5), |net| !received(net).is_empty()));
    assert_eq!(received(&net), [&vec![0x86; 10_000]]);
    assert_all_is_given_back(&mut net);
}

#[test]
fn a_refused_message_stays_with_the_application() {
    let mut net = Net::new(Conditions::default(), 1);
    let (id, _) = net.connect();
    let now = net.now();
    let mut reserved = vec![0; LENGTH];
    let sent = net.pair.a.send_vec(now, id, &mut reserved, Delivery::RELIABLE);
    assert_eq!((sent, reserved.len()), (Err(SendError::ReservedId), LENGTH));
    // The sender has memory for the parts, but a receiver with as many blocks would not.
    let mut endless = vec![0x86; 4 * LENGTH];
    let sent = net.pair.a.send_vec(now, id, &mut endless, Delivery::RELIABLE);
    assert_eq!((sent, endless.len()), (Err(SendError::NeverFits), 4 * LENGTH));
    assert_eq!(net.pair.a.send(now, id, &endless, Delivery::RELIABLE), Err(SendError::NeverFits));
    assert_all_is_given_back(&mut net);
}

/// The client closes the connection without delay, after the server has received a part of the message.
#[test]
fn closing_a_connection_frees_all_memory() {
    let mut config = client_config();
    config.close_timeout = Duration::ZERO;
    let conditions = Conditions { latency: Duration::from_millis(25), ..Conditions::default() };
    let mut net = Net::with(peer(config), peer(server_config()), conditions, 1);
    let (id, _) = net.connect();
    let now = net.now();
    net.pair.a.send_vec(now, id, &mut message(), Delivery::RELIABLE_ORDERED).expect("free memory");
    net.run_for(Duration::from_millis(200));
    assert!(received(&net).is_empty());
    let now = net.now();
    net.pair.a.disconnect(now, id);
    let is_over = |net: &mut Net| {
        let mut events = net.server.iter();
        events.any(|event| matches!(event, OwnedEvent::Disconnected(_, DisconnectReason::Remote)))
    };
    assert!(net.run_until(Duration::from_secs(30), is_over));
    assert!(received(&net).is_empty());
    assert_all_is_given_back(&mut net);
}

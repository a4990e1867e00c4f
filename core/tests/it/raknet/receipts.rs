//! Receipts for messages, and the progress of split messages.

use core::time::Duration;

use rakwire::raknet::{
    Config, ConnectionId, Delivery, Direction, DisconnectReason, DropReason, Outcome, Progress, Receipt,
    Reliability,
};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, OwnedEvent, client_config, messages, peer, server_config};

const RELIABLE: Delivery = Delivery::new(Reliability::ReliableWithReceipt);
const ORDERED: Delivery = Delivery::new(Reliability::ReliableOrderedWithReceipt);
const UNRELIABLE: Delivery = Delivery::new(Reliability::UnreliableWithReceipt);

fn conditions(loss: f64) -> Conditions {
    Conditions { loss, latency: Duration::from_millis(20), ..Conditions::default() }
}

fn net(client: Config, loss: f64, seed: u64) -> (Net, ConnectionId) {
    let mut net = Net::with(peer(client), peer(server_config()), conditions(0.0), seed);
    let (client, _) = net.connect();
    net.pair.set_conditions(conditions(loss));
    (net, client)
}

fn send(net: &mut Net, id: ConnectionId, message: &[u8], delivery: Delivery) -> Option<Receipt> {
    net.pair.a.send(net.pair.now, id, message, delivery).expect("free memory")
}

fn receipts(events: &[OwnedEvent]) -> Vec<(Receipt, Outcome)> {
    let receipt = |event: &OwnedEvent| {
        if let OwnedEvent::Receipt(number, outcome) = event { Some((*number, *outcome)) } else { None }
    };
    events.iter().filter_map(receipt).collect()
}

fn close(net: &mut Net, id: ConnectionId) {
    net.pair.a.disconnect(net.pair.now, id);
    net.run_for(Duration::from_secs(60));
    assert_eq!(net.pair.a.blocks_available(), net.pair.a.blocks());
    assert_eq!(net.pair.b.blocks_available(), net.pair.b.blocks());
}

#[test]
fn only_reliabilities_with_receipt_return_a_receipt() {
    let (mut net, id) = net(client_config(), 0.0, 1);
    for delivery in [Delivery::UNRELIABLE, Delivery::RELIABLE, Delivery::RELIABLE_ORDERED] {
        assert_eq!(send(&mut net, id, b"\x86", delivery), None);
    }
    for (number, delivery) in (1..).zip([UNRELIABLE, RELIABLE, ORDERED]) {
        assert_eq!(send(&mut net, id, b"\x86", delivery), Some(Receipt(number)));
    }
    net.run_for(Duration::from_secs(1));
    let expected = [1, 2, 3].map(|number| (Receipt(number), Outcome::Acknowledged));
    assert_eq!(receipts(&net.client), expected);
    assert_eq!(net.server.len(), 6);
    close(&mut net, id);
}

/// Datagrams do not indicate that the sender requested a receipt.
#[test]
fn the_receiver_sees_the_reliability_without_a_receipt() {
    let (mut net, id) = net(client_config(), 0.0, 1);
    for delivery in [UNRELIABLE, RELIABLE, ORDERED] {
        send(&mut net, id, b"\x86", delivery);
    }
    net.run_for(Duration::from_secs(1));
    let seen: Vec<_> = net
        .server
        .iter()
        .map(|event| {
            if let OwnedEvent::Message(_, delivery, _) = event {
                delivery.reliability
            } else {
                panic!("{event:?}")
            }
        })
        .collect();
    assert_eq!(seen, [Reliability::Unreliable, Reliability::Reliable, Reliability::ReliableOrdered]);
}

#[test]
fn every_reliable_message_is_acknowledged_once_over_a_bad_path() {
    let (mut net, id) = net(client_config(), 0.3, 2);
    let sent: Vec<_> = (0..200_u32)
        .map(|number| {
            send(
                &mut net,
                id,
                &[&[0x86][..], &[0; 300]].concat(),
                if number % 2 == 0 { RELIABLE } else { ORDERED },
            )
        })
        .collect();
    net.run_for(Duration::from_secs(60));
    let mut acknowledged = receipts(&net.client);
    acknowledged.sort_by_key(|(receipt, _)| *receipt);
    let expected: Vec<_> =
        sent.into_iter().map(|receipt| (receipt.expect("a receipt"), Outcome::Acknowledged)).collect();
    assert_eq!(acknowledged, expected);
    close(&mut net, id);
}

/// A receipt reports an unreliable message as acknowledged or lost. If an acknowledgement is lost, it may report a
/// delivered message as lost.
#[test]
fn every_unreliable_message_gets_one_receipt() {
    let (mut net, id) = net(client_config(), 0.3, 3);
    let mut sent = 0;
    for _ in 0..200 {
        sent += usize::from(send(&mut net, id, &[0x86; 1_000], UNRELIABLE).is_some());
        net.run_for(Duration::from_millis(10));
    }
    net.run_for(Duration::from_secs(10));
    let receipts = receipts(&net.client);
    assert_eq!((receipts.len(), sent), (200, 200));
    let acknowledged = receipts.iter().filter(|(_, outcome)| *outcome == Outcome::Acknowledged).count();
    let arrived = messages(&net.server).len();
    assert!((100..180).contains(&arrived), "{arrived}");
    assert!(
        acknowledged <= arrived && acknowledged + 70 > arrived,
        "{acknowledged} acknowledged of {arrived} delivered"
    );
    close(&mut net, id);
}

/// The receipt waits for the acknowledgements of all parts, in any order (docs/raknet.md#receipts).
#[test]
fn a_split_message_has_one_receipt_after_all_parts() {
    for seed in 0..10 {
        let (mut net, id) = net(client_config(), 0.2, seed);
        let receipt = send(&mut net, id, &[0x86; 60_000], UNRELIABLE);
        assert!(net.run_until(Duration::from_secs(60), |net| !receipts(&net.client).is_empty()));
        assert_eq!(Some(receipts(&net.client)[0].0), receipt);
        net.run_for(Duration::from_secs(5));
        assert_eq!(receipts(&net.client), [(Receipt(1), Outcome::Acknowledged)]);
        assert_eq!(messages(&net.server).len(), 1, "an acknowledged message must have arrived once");
        close(&mut net, id);
    }
}

#[test]
fn an_expired_unreliable_message_is_reported_lost() {
    let mut config = client_config();
    config.unreliable_timeout = Duration::from_millis(100);
    let (mut net, id) = net(config, 1.0, 4);
    for _ in 0..40 {
        send(&mut net, id, &[0x86; 1_400], Delivery::RELIABLE);
    }
    send(&mut net, id, b"\x86", UNRELIABLE);
    net.run_for(Duration::from_secs(2));
    net.pair.set_conditions(conditions(0.0));
    net.run_for(Duration::from_secs(5));
    assert_eq!(receipts(&net.client), [(Receipt(1), Outcome::Lost)]);
    assert_eq!(net.pair.a.stats().dropped(DropReason::Expired), 1);
}

/// A message that is neither acknowledged nor lost when the connection closes gets no receipt.
#[test]
fn outstanding_receipts_are_not_reported_after_a_disconnect() {
    let (mut net, id) = net(client_config(), 1.0, 5);
    for size in [1, 5_000] {
        send(&mut net, id, &vec![0x86; size], RELIABLE);
    }
    net.run_for(Duration::from_secs(20));
    assert_eq!(net.client, [OwnedEvent::Disconnected(id, DisconnectReason::Lost)]);
    assert_eq!(net.pair.a.blocks_available(), net.pair.a.blocks());
}

#[test]
fn large_messages_report_progress_on_both_sides() {
    let mut client = client_config();
    client.progress_interval = 10;
    let mut server = server_config();
    server.progress_interval = 20;
    let mut net = Net::with(peer(client), peer(server), conditions(0.0), 6);
    let (id, _) = net.connect();
    send(&mut net, id, &[0x86; 1_432 * 100], Delivery::RELIABLE);
    send(&mut net, id, &[0x86; 1_432 * 5], Delivery::RELIABLE);
    net.run_for(Duration::from_secs(20));
    let progress = |events: &[OwnedEvent]| -> Vec<Progress> {
        let progress = |event: &OwnedEvent| {
            if let OwnedEvent::Progress(progress) = event { Some(*progress) } else { None }
        };
        events.iter().filter_map(progress).collect()
    };
    let (sent, received) = (progress(&net.client), progress(&net.server));
    for (list, step, direction) in [(&sent, 10, Direction::Sending), (&received, 20, Direction::Receiving)] {
        assert!(!list.is_empty());
        assert!(list.iter().all(|progress| progress.direction == direction && progress.message == 0));
        assert!(list.iter().all(|progress| progress.done % step == 0 && progress.parts == 100));
        assert!(list.windows(2).all(|pair| pair[0].done < pair[1].done));
        assert_eq!(list.last().map(|progress| progress.done), Some(100));
    }
    close(&mut net, id);
}

//! The delay and the number of acknowledgements, in virtual time.

use core::time::Duration;

use rakwire::raknet::{Config, ConnectionId, Delivery, Outcome, Reliability};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, OwnedEvent, client_config, peer, server_config};

const ROUND_TRIP: Duration = Duration::from_millis(50);
/// The MTU of the npm package over WebTransport.
const MTU: u16 = 1_052;
/// The length of a message that is split into two parts.
const TWO_PARTS: usize = 1_200;
const NINE_PARTS: usize = 8_500;

/// Returns a client that is connected to a server and has an RTT sample.
fn connected(conditions: Conditions) -> (Net, ConnectionId) {
    let [client, server] = [client_config(), server_config()].map(|mut config| {
        config.mtu = MTU;
        config.ping_interval = None;
        peer(config)
    });
    let mut net = Net::with(client, server, conditions, 1);
    let (id, _) = net.connect();
    net.run_for(Duration::from_secs(1));
    (net, id)
}

/// One acknowledgement per message would cost too many datagrams on the return path, so a receiver batches them.
#[test]
fn messages_of_two_parts_are_acknowledged_together() {
    let path = Conditions::bottlenecked(ROUND_TRIP, 20_000_000, ROUND_TRIP);
    let (mut net, id) = connected(path);
    net.pair.forth().take_stats();
    net.pair.back().take_stats();
    let end = net.now() + Duration::from_secs(5);
    while net.now() < end {
        while net.pair.a.send(net.now(), id, &[0x86; TWO_PARTS], Delivery::RELIABLE).is_ok() {}
        assert!(net.pair.step());
        net.poll();
        net.server.clear();
    }
    let (forth, back) = (net.pair.forth().take_stats(), net.pair.back().take_stats());
    assert!(forth.forwarded > 5_000, "{forth:?}");
    assert!(
        back.forwarded <= forth.forwarded / 6,
        "{} acknowledgements for {} datagrams",
        back.forwarded,
        forth.forwarded
    );
}

/// Returns the time from sending a message to its receipt, on an idle path without a bottleneck.
fn time_to_receipt(length: usize) -> Duration {
    let (mut net, id) = connected(Conditions { latency: ROUND_TRIP / 2, ..Conditions::default() });
    let start = net.now();
    let with_receipt = Delivery::new(Reliability::ReliableWithReceipt);
    let sent = net.pair.a.send(start, id, &vec![0x86; length], with_receipt).expect("free memory");
    let receipt = sent.expect("a receipt was requested");
    let is_acknowledged =
        |net: &mut Net| net.client.contains(&OwnedEvent::Receipt(receipt, Outcome::Acknowledged));
    assert!(net.run_until(Duration::from_secs(1), is_acknowledged));
    net.now().saturating_since(start)
}

/// The last part of nine is acknowledged immediately. The last part of two is acknowledged after `ack_delay`.
#[test]
fn a_complete_long_message_is_acknowledged_immediately() {
    assert_eq!(time_to_receipt(NINE_PARTS), ROUND_TRIP);
    assert_eq!(time_to_receipt(TWO_PARTS), ROUND_TRIP + Config::new([0; 32]).ack_delay);
}

//! Link-local addresses need an interface index, which is local to each machine.

use std::net::SocketAddr;

use heapless::Vec;
use rakwire::Instant;
use rakwire::endpoint::Plugin;
use rakwire::raknet::{Delivery, Guid, RakNet};
use rakwire_plugins::nat::{Action, FromFacilitator, MAX_MESSAGE, Traversal};

use crate::support::{Collector, connections};

/// Returns the addresses to which a client sends after a message from a facilitator at this address.
fn sent_to(facilitator: &str, message: &FromFacilitator) -> std::vec::Vec<String> {
    let [id] = connections::<RakNet>(1).try_into().expect("one connection");
    let mut plugin = Traversal::<1>::new();
    plugin.set_facilitator(id, facilitator.parse().expect("an address"));
    let mut buffer = [0; MAX_MESSAGE];
    let bytes = message.encode(&mut buffer).expect("enough space");
    plugin.on_message(Instant::ZERO, id, Delivery::RELIABLE_ORDERED, &bytes);
    Plugin::<RakNet>::update(&mut plugin, Instant::ZERO, &mut Collector::new());
    let actions = std::iter::from_fn(|| plugin.poll_action());
    let sent = actions.filter_map(|action| match action {
        Action::Send { to, .. } => Some(to.to_string()),
        Action::Connect { .. } => None,
    });
    sent.collect()
}

#[test]
fn facilitator_ports_inherit_its_address_and_interface() {
    let (session, peer, port) = (1, Guid(2), 61_128);
    for message in [
        FromFacilitator::Forwarded { session, peer, connects: true, port },
        FromFacilitator::Probe { token: 3, port },
    ] {
        assert_eq!(sent_to("[fe80::7%5]:61111", &message), ["[fe80::7%5]:61128"]);
        assert_eq!(sent_to("192.0.2.1:61111", &message), ["192.0.2.1:61128"]);
    }
}

#[test]
fn link_local_candidates_use_the_local_interface() {
    let candidates = ["[fe80::3%9]:5000", "[fd00::3]:5000", "192.0.2.3:5000"];
    let candidates: Vec<SocketAddr, 16> =
        candidates.iter().map(|candidate| candidate.parse().expect("an address")).collect();
    let begin = FromFacilitator::Begin { session: 1, peer: Guid(2), connects: true, candidates };
    let others = ["[fd00::3]:5000", "192.0.2.3:5000"];
    assert_eq!(sent_to("[fe80::7%5]:61111", &begin), [&["[fe80::3%5]:5000"], &others[..]].concat());
    // The interface index may be that of another machine.
    assert_eq!(sent_to("192.0.2.1:61111", &begin), [&["[fe80::3%9]:5000"], &others[..]].concat());
}

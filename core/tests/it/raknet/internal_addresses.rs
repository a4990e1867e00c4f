//! The addresses that peers say are their own (docs/raknet.md#internal-addresses).

use std::net::SocketAddr;

use rakwire::raknet::SetError;
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, client_config, peer, server_config};

fn addresses(count: u8) -> Vec<SocketAddr> {
    let ipv4 = (0..count).map(|host| SocketAddr::from(([10, 0, 0, host], 19_132)));
    let ipv6: SocketAddr = "[2001:db8::7]:19132".parse().expect("a literal address");
    ipv4.chain([ipv6]).collect()
}

#[test]
fn both_sides_are_told_the_addresses_of_the_other_one() {
    let mut net = Net::new(Conditions::default(), 1);
    assert_eq!(net.pair.a.set_internal_addresses(&addresses(1)), Ok(()));
    assert_eq!(net.pair.b.set_internal_addresses(&addresses(3)), Ok(()));
    let (client, server) = net.connect();
    assert_eq!(&net.pair.a.internal_addresses(client)[..], &addresses(3)[..]);
    assert_eq!(&net.pair.b.internal_addresses(server)[..], &addresses(1)[..]);
}

#[test]
fn without_any_none_is_said_and_no_memory_taken() {
    let free = [false, true].map(|is_set_back| {
        let mut net = Net::new(Conditions::default(), 1);
        if is_set_back {
            assert_eq!(net.pair.a.set_internal_addresses(&addresses(1)), Ok(()));
            assert_eq!(net.pair.a.set_internal_addresses(&[]), Ok(()));
        }
        let (client, server) = net.connect();
        assert!(net.pair.a.internal_addresses(client).is_empty());
        assert!(net.pair.b.internal_addresses(server).is_empty());
        net.run_for(core::time::Duration::from_secs(1));
        (net.pair.a.blocks_available(), net.pair.b.blocks_available())
    });
    assert_eq!(free[0], free[1]);
}

#[test]
fn an_idle_connection_holds_no_memory_for_them() {
    let mut net = Net::new(Conditions::default(), 1);
    assert_eq!(net.pair.a.set_internal_addresses(&addresses(3)), Ok(()));
    let free = [net.pair.a.blocks_available(), net.pair.b.blocks_available()];
    let (_, server) = net.connect();
    assert_eq!(&net.pair.b.internal_addresses(server)[..], &addresses(3)[..]);
    // Everything is acknowledged, and nothing more has happened.
    net.run_for(core::time::Duration::from_secs(1));
    while net.pair.a.poll_event().is_some() {}
    assert!(net.pair.b.poll_event().is_none());
    assert!(net.pair.b.internal_addresses(server).is_empty());
    assert_eq!([net.pair.a.blocks_available(), net.pair.b.blocks_available()], free);
}

#[test]
fn their_memory_comes_back_with_the_end() {
    let mut net = Net::new(Conditions::default(), 1);
    let free = net.pair.b.blocks_available();
    assert_eq!(net.pair.a.set_internal_addresses(&addresses(9)), Ok(()));
    let (client, server) = net.connect();
    assert_eq!(net.pair.b.internal_addresses(server).len(), 10);
    net.pair.a.disconnect(net.now(), client);
    net.run_for(core::time::Duration::from_secs(10));
    assert_eq!(net.pair.b.blocks_available(), free);
    assert!(net.pair.b.internal_addresses(server).is_empty());
}

#[test]
fn more_than_the_configuration_lists_are_refused() {
    let mut config = client_config();
    config.address_count = 20;
    let (mut twenty, mut ten) = (peer(config), peer(server_config()));
    assert_eq!(ten.set_internal_addresses(&addresses(10)), Err(SetError::TooManyAddresses));
    assert_eq!(twenty.set_internal_addresses(&addresses(19)), Ok(()));
    assert_eq!(twenty.set_internal_addresses(&addresses(20)), Err(SetError::TooManyAddresses));
}

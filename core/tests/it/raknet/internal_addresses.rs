//! The internal addresses that peers announce to each other (docs/raknet.md#internal-addresses).

use std::net::SocketAddr;
use std::time::Duration;

use rakwire::raknet::{ConnectionId, Event, Peer, SetError};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, client_config, peer, server_config};

/// Returns `count` IPv4 addresses and one IPv6 address.
fn addresses(count: u8) -> Vec<SocketAddr> {
    let ipv4 = (0..count).map(|host| SocketAddr::from(([10, 0, 0, host], 19_132)));
    let ipv6: SocketAddr = "[2001:db8::7]:19132".parse().expect("a literal address");
    ipv4.chain([ipv6]).collect()
}

/// The connection at one peer, and the addresses that the other peer announced.
type Opened = (ConnectionId, Vec<SocketAddr>);

fn opened(peer: &mut Peer<'_>) -> Option<Opened> {
    let Event::Connected { id, .. } = peer.poll_event()? else { return None };
    Some((id, peer.internal_addresses(id).to_vec()))
}

/// Connects without polling events after `Connected`, so that the announced addresses stay available.
fn connect(net: &mut Net) -> [Opened; 2] {
    net.pair.a.connect(net.now(), net.pair.b_address).expect("a free slot");
    let (mut client, mut server) = (None, None);
    loop {
        client = client.or_else(|| opened(&mut net.pair.a));
        server = server.or_else(|| opened(&mut net.pair.b));
        if let (Some(client), Some(server)) = (&client, &server) {
            return [client.clone(), server.clone()];
        }
        assert!(net.pair.step(), "the handshake must complete");
    }
}

#[test]
fn both_peers_receive_each_others_internal_addresses() {
    let mut net = Net::new(Conditions::default(), 1);
    assert_eq!(net.pair.a.set_internal_addresses(&addresses(1)), Ok(()));
    assert_eq!(net.pair.b.set_internal_addresses(&addresses(3)), Ok(()));
    let [(_, of_server), (_, of_client)] = connect(&mut net);
    assert_eq!((of_server, of_client), (addresses(3), addresses(1)));
}

/// Connects and checks that the server received the addresses `announced`; returns the free blocks of both idle peers.
fn blocks_while_idle(net: &mut Net, announced: &[SocketAddr]) -> [usize; 2] {
    let [(_, of_server), (_, of_client)] = connect(net);
    assert_eq!((&of_server[..], &of_client[..]), (&[][..], announced));
    net.run_for(Duration::from_secs(1));
    [net.pair.a.blocks_available(), net.pair.b.blocks_available()]
}

#[test]
fn an_empty_address_list_announces_nothing_and_takes_no_memory() {
    let free = [false, true].map(|is_set_back| {
        let mut net = Net::new(Conditions::default(), 1);
        if is_set_back {
            assert_eq!(net.pair.a.set_internal_addresses(&addresses(1)), Ok(()));
            assert_eq!(net.pair.a.set_internal_addresses(&[]), Ok(()));
        }
        blocks_while_idle(&mut net, &[])
    });
    assert_eq!(free[0], free[1]);
}

#[test]
fn an_idle_connection_holds_no_memory_for_received_addresses() {
    let free = [&[][..], &addresses(3)].map(|own| {
        let mut net = Net::new(Conditions::default(), 1);
        assert_eq!(net.pair.a.set_internal_addresses(own), Ok(()));
        blocks_while_idle(&mut net, own)
    });
    assert_eq!(free[0][1], free[1][1]);
    // The client keeps its own list in memory.
    assert!(free[0][0] > free[1][0]);
}

#[test]
fn internal_addresses_are_available_until_the_next_event_poll() {
    for of_one in [false, true] {
        let mut net = Net::new(Conditions::default(), 1);
        assert_eq!(net.pair.a.set_internal_addresses(&addresses(3)), Ok(()));
        let [_, (server, _)] = connect(&mut net);
        assert_eq!(net.pair.b.internal_addresses(server)[..], addresses(3));
        let free = net.pair.b.blocks_available();
        let event = if of_one { net.pair.b.poll_event_of(server) } else { net.pair.b.poll_event() };
        assert!(event.is_none());
        assert!(net.pair.b.internal_addresses(server).is_empty());
        assert!(net.pair.b.blocks_available() > free);
    }
}

#[test]
fn closing_a_connection_frees_its_internal_addresses() {
    let mut net = Net::new(Conditions::default(), 1);
    let free = net.pair.b.blocks_available();
    assert_eq!(net.pair.a.set_internal_addresses(&addresses(9)), Ok(()));
    let [(client, _), (server, of_client)] = connect(&mut net);
    assert_eq!(of_client.len(), 10);
    net.pair.a.disconnect(net.now(), client);
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.pair.b.blocks_available(), free);
    assert!(net.pair.b.internal_addresses(server).is_empty());
}

#[test]
fn more_internal_addresses_than_the_limit_are_refused() {
    let mut config = client_config();
    config.address_count = Some(20);
    let mut of_ten = server_config();
    of_ten.address_count = Some(10);
    let (mut twenty, mut ten, mut usual) = (peer(config), peer(of_ten), peer(server_config()));
    assert_eq!(usual.set_internal_addresses(&addresses(19)), Ok(()));
    assert_eq!(usual.set_internal_addresses(&addresses(20)), Err(SetError::TooManyAddresses));
    assert_eq!(ten.set_internal_addresses(&addresses(10)), Err(SetError::TooManyAddresses));
    assert_eq!(twenty.set_internal_addresses(&addresses(19)), Ok(()));
    assert_eq!(twenty.set_internal_addresses(&addresses(20)), Err(SetError::TooManyAddresses));
}

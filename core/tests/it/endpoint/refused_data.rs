//! `refuse_data`: connections with an application that cannot accept more messages.

use core::time::Duration;

use rakwire::endpoint::{Capacity, Protocol};
use rakwire::game_protocol::{self, GameProtocol};
use rakwire::raknet::{self, RakNet};

use crate::support::star::Star;

/// Checks that refused data is delivered once the application accepts data again.
///
/// Meanwhile, the connection processes acknowledgements, and other connections are unaffected.
fn refused_data_arrives_later<P: Protocol>(reliable: P::Delivery) {
    let capacity = Capacity { connections: 2, blocks: 4_096, block_size: 512 };
    let mut star = Star::<P>::connected(capacity, P::config([9; 32]), 2);
    let id = star.clients[0].at_server.expect("a connection");
    assert!(star.server.refuse_data(id, true));
    for client in 0..2 {
        star.send_from(client, b"\x86for the server", reliable).expect("free memory");
        star.send_to(client, b"\x86for the client", reliable).expect("free memory");
    }
    star.run_for(Duration::from_secs(2));
    assert_eq!(star.read, [0, 1]);
    assert_eq!([0, 1].map(|client: usize| star.clients[client].received), [1, 1]);
    let refused = star.server.stats().datagrams_refused;
    assert!(refused > 1, "the client must resend unacknowledged messages");

    assert!(star.server.refuse_data(id, false));
    star.run_for(Duration::from_secs(5));
    assert_eq!(star.read, [1, 1]);
    assert_eq!(star.ended, 0);
    assert_eq!(star.server.stats().datagrams_refused, refused);
    star.server.disconnect(star.now, id);
    star.run_for(Duration::from_secs(5));
    assert!(!star.server.refuse_data(id, true), "the connection must be closed");
}

#[test]
fn refused_raknet_data_is_delivered_later() {
    refused_data_arrives_later::<RakNet>(raknet::Delivery::RELIABLE);
}

#[test]
fn refused_game_protocol_data_is_delivered_later() {
    refused_data_arrives_later::<GameProtocol>(game_protocol::Reliability::Reliable);
}

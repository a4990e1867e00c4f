//! `poll_writable`: notifications of connections that can send again after a refused message.

use core::time::Duration;

use rakwire::endpoint::{Capacity, ConnectionId, Protocol, SendError};
use rakwire::game_protocol::{self, GameProtocol};
use rakwire::raknet::{self, RakNet};

use crate::support::star::Star;

fn writable<P: Protocol>(star: &mut Star<P>) -> Vec<ConnectionId> {
    core::iter::from_fn(|| star.server.poll_writable()).collect()
}

fn fill<P: Protocol>(star: &mut Star<P>, client: usize, length: usize, reliable: P::Delivery) -> SendError {
    loop {
        if let Err(error) = star.send_to(client, &vec![0x86; length], reliable) {
            return error;
        }
    }
}

/// Checks that a connection at its memory limit is returned only after its own messages are acknowledged.
fn only_the_acknowledged_connection_becomes_writable<P: Protocol>(mut star: Star<P>, reliable: P::Delivery) {
    let ids: Vec<_> = star.clients.iter().map(|client| client.at_server.expect("a connection")).collect();
    for client in 0..8 {
        star.clients[client].is_alive = client == 3;
        assert_eq!(fill(&mut star, client, 100, reliable), SendError::QuotaExceeded);
        // A second refusal must not make `poll_writable` return the connection twice.
        assert_eq!(fill(&mut star, client, 100, reliable), SendError::QuotaExceeded);
    }
    assert_eq!(writable(&mut star), []);
    star.run_for(Duration::from_millis(200));
    assert_eq!(writable(&mut star), [ids[3]]);
    assert_eq!(writable(&mut star), []);
    star.run_for(Duration::from_secs(2));
    assert_eq!(writable(&mut star), [], "no connection has had a message refused since");
    star.send_to(3, &[0x86; 100], reliable).expect("free memory");
}

/// Checks that the connections waiting for blocks of a greedy connection are returned once each after it closes.
fn all_become_writable_one_after_another_when_the_pool_has_space<P: Protocol>(
    mut star: Star<P>,
    reliable: P::Delivery,
) {
    let hog = star.clients[0].at_server.expect("a connection");
    star.clients[0].is_alive = false;
    fill(&mut star, 0, 1_000, reliable);
    let room = star.server.blocks_available();
    // More than the greedy connection leaves, but less than the whole pool.
    let length = 60_000;
    for client in 1..40 {
        while star.send_to(client, &[0x86; 500], reliable).is_ok() {}
        assert!(star.send_to(client, &vec![0x86; length], reliable).is_err());
        star.clients[client].is_alive = false;
    }
    assert!(star.server.blocks_available() < room);
    assert_eq!(writable(&mut star), []);
    star.server.disconnect(star.now, hog);
    star.run_for(Duration::from_secs(6));
    let mut named = Vec::new();
    // A driver polls a bounded number of times per iteration while there is work.
    for _ in 0..100 {
        named.extend(star.server.poll_writable());
    }
    assert!(!named.is_empty(), "waiting connections must become writable");
    let mut once = named.clone();
    once.sort_by_key(|id| format!("{id}"));
    once.dedup();
    assert_eq!(once.len(), named.len());
    assert!(!named.contains(&hog));
}

/// Checks an active connection beside connections that wait for blocks held by others.
///
/// The active connection frees only its guaranteed blocks, so no waiting connection is returned or examined.
fn an_active_connection_examines_no_waiting_connections<P: Protocol>(
    mut star: Star<P>,
    reliable: P::Delivery,
) {
    star.clients[0].is_alive = false;
    fill(&mut star, 0, 1_000, reliable);
    for client in 1..39 {
        star.clients[client].is_alive = false;
        while star.send_to(client, &[0x86; 500], reliable).is_ok() {}
        assert!(star.send_to(client, &[0x86; 60_000], reliable).is_err());
    }
    star.run_for(Duration::from_secs(1));
    writable(&mut star);
    let (mut named, mut looks) = (0, 0);
    for _ in 0..100 {
        star.send_to(39, &[0x86; 2_000], reliable).expect("free guaranteed blocks");
        for _ in 0..50 {
            star.run_for(Duration::from_millis(1));
            named += usize::from(star.server.poll_writable().is_some());
            // All other work is done, so a due timeout means that waiting connections are to be examined.
            looks += usize::from(star.server.poll_timeout().is_some_and(|at| at <= star.now));
        }
    }
    assert_eq!((named, looks), (0, 0));
    assert_eq!(star.clients[39].received, 100);
}

fn capacity(connections: usize) -> Capacity {
    Capacity { connections, blocks: connections * 128, block_size: 512 }
}

fn raknet_config(limit: Option<u32>) -> raknet::Config {
    let mut config = raknet::Config::new([9; 32]);
    config.connection_blocks = limit;
    config.timeout = Duration::from_secs(60);
    config
}

fn game_config(limit: Option<u32>) -> game_protocol::Config {
    let mut config = game_protocol::Config::new([9; 32]);
    config.connection_blocks = limit;
    config.timeout = Duration::from_secs(60);
    config
}

#[test]
fn a_raknet_connection_is_writable_once_its_own_messages_are_acknowledged() {
    let star = Star::<RakNet>::connected(capacity(8), raknet_config(Some(16)), 8);
    only_the_acknowledged_connection_becomes_writable(star, raknet::Delivery::RELIABLE);
}

#[test]
fn a_game_protocol_connection_is_writable_once_its_own_messages_are_acknowledged() {
    let star = Star::<GameProtocol>::connected(capacity(8), game_config(Some(16)), 8);
    only_the_acknowledged_connection_becomes_writable(star, game_protocol::Reliability::Reliable);
}

#[test]
fn waiting_raknet_connections_become_writable_when_another_frees_blocks() {
    let star = Star::<RakNet>::connected(capacity(40), raknet_config(None), 40);
    all_become_writable_one_after_another_when_the_pool_has_space(star, raknet::Delivery::RELIABLE);
}

#[test]
fn waiting_game_protocol_connections_become_writable_when_another_frees_blocks() {
    let star = Star::<GameProtocol>::connected(capacity(40), game_config(None), 40);
    all_become_writable_one_after_another_when_the_pool_has_space(star, game_protocol::Reliability::Reliable);
}

#[test]
fn an_active_raknet_connection_triggers_no_scan_of_waiting_connections() {
    let star = Star::<RakNet>::connected(capacity(40), raknet_config(None), 40);
    an_active_connection_examines_no_waiting_connections(star, raknet::Delivery::RELIABLE);
}

#[test]
fn an_active_game_protocol_connection_triggers_no_scan_of_waiting_connections() {
    let star = Star::<GameProtocol>::connected(capacity(40), game_config(None), 40);
    an_active_connection_examines_no_waiting_connections(star, game_protocol::Reliability::Reliable);
}

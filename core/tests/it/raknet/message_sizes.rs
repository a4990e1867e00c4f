//! The maximum length of a message, and messages that are too long for the remote peer.

use core::time::Duration;

use rakwire::endpoint::{Event, SendError};
use rakwire::raknet::{Capacity, Config, ConnectionId, Delivery, DisconnectReason, Peer};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, OwnedEvent, client_config, messages, server_config};

fn net(client: (Capacity, Config), server: (Capacity, Config)) -> (Net, ConnectionId, ConnectionId) {
    let conditions = Conditions { latency: Duration::from_millis(1), ..Conditions::default() };
    let [client, server] = [client, server].map(|(capacity, config)| Peer::with_capacity(capacity, config));
    let mut net = Net::with(client, server, conditions, 1);
    let (client, server) = net.connect();
    (net, client, server)
}

/// Checks that the server can send messages of the maximum length and one byte less, but not one byte more.
fn the_longest_arrives(mut net: Net, server: ConnectionId, expected: Option<usize>) {
    let longest = net.pair.b.max_message_len(server).expect("an open connection");
    assert!(expected.is_none_or(|expected| expected == longest), "{longest}");
    let mut message = vec![0x90; longest + 1];
    let delivery = Delivery::RELIABLE_ORDERED;
    assert_eq!(net.pair.b.send(net.now(), server, &message, delivery), Err(SendError::NeverFits));
    assert_eq!(net.pair.b.can_send(server, longest + 1, delivery), Err(SendError::NeverFits));
    for length in [longest, longest - 1] {
        message.truncate(length);
        let has_room = |net: &mut Net| net.pair.b.can_send(server, length, delivery).is_ok();
        assert!(net.run_until(Duration::from_secs(120), has_room), "{length}");
        assert_eq!(net.pair.b.send(net.now(), server, &message, delivery), Ok(None), "{length}");
        let arrived = net.run_until(Duration::from_secs(120), |net| !net.client.is_empty());
        assert!(arrived && net.server.is_empty(), "{length}: {:?}", net.server);
        assert_eq!(messages(&net.client).iter().map(|message| message.len()).collect::<Vec<_>>(), [length]);
        net.client.clear();
    }
}

#[test]
fn messages_of_a_default_server_fit_a_default_client() {
    for mtu in [1_492, 1_200, 576] {
        for connections in [2, 64, 256, 1_000] {
            let mut server = server_config();
            server.mtu = mtu;
            let (net, _, server) = net(
                (Capacity::for_connections(1), client_config()),
                (Capacity::for_connections(connections), server),
            );
            the_longest_arrives(net, server, Some(4_000_000));
        }
    }
}

#[test]
fn accepted_messages_fit_a_peer_with_equal_memory() {
    for blocks in [16, 60, 61, 62, 63, 64, 100, 500, 1_000] {
        for block_size in [64, 512, 1_024] {
            for connections in [1, 3] {
                let capacity = Capacity { connections, blocks, block_size };
                let conditions = Conditions::default();
                let peers =
                    [client_config(), server_config()].map(|config| Peer::with_capacity(capacity, config));
                let [client, server] = peers;
                let mut net = Net::with(client, server, conditions, 1);
                let to = net.pair.b_address;
                let Ok(id) = net.pair.a.connect(net.now(), to) else { continue };
                // With very little memory no connection opens.
                let is_open =
                    |net: &mut Net| !net.server.is_empty() && net.client.contains(&OwnedEvent::Connected(id));
                if !net.run_until(Duration::from_secs(20), is_open) {
                    continue;
                }
                let OwnedEvent::Connected(server) = net.server[0] else { continue };
                net.client.clear();
                net.server.clear();
                the_longest_arrives(net, server, None);
            }
        }
    }
}

/// A receiver reserves memory for parts of the negotiated MTU, even if a reduced path MTU makes the parts smaller.
#[test]
fn accepted_messages_are_delivered_after_the_path_mtu_shrinks() {
    for refused in [1_459, 1_167] {
        for (blocks, block_size) in [(64, 512), (200, 128), (500, 1_024)] {
            let capacity = Capacity { connections: 1, blocks, block_size };
            let (mut net, _, server) = net((capacity, client_config()), (capacity, server_config()));
            let (now, client) = (net.now(), net.pair.a_address);
            net.pair.b.handle_too_large(now, client, refused);
            assert!(matches!(net.pair.b.poll_event(), Some(Event::MtuChanged { .. })), "{refused}");
            the_longest_arrives(net, server, None);
        }
    }
}

#[test]
fn the_sender_of_an_oversized_message_is_notified() {
    let small = Capacity { connections: 1, blocks: 256, block_size: 512 };
    let (mut net, client, server) =
        net((small, client_config()), (Capacity::for_connections(64), server_config()));
    let sent = net.pair.b.send(net.now(), server, &[0x90; 1_000_000], Delivery::RELIABLE_ORDERED);
    assert_eq!(sent, Ok(None));
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.client, [OwnedEvent::Disconnected(client, DisconnectReason::MessageTooLarge)]);
    assert_eq!(net.server, [OwnedEvent::Disconnected(server, DisconnectReason::SentTooLarge)]);
}

#[test]
fn max_message_len_can_be_raised_for_a_peer_with_more_memory() {
    let large = Capacity { connections: 1, blocks: 65_536, block_size: 512 };
    let mut config = server_config();
    config.max_message_len = 6_000_000;
    let (net, _, server) = net((large, client_config()), (large, config));
    the_longest_arrives(net, server, Some(6_000_000));
}

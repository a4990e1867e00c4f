//! On a full server, clients that vanish or do not read their messages delay no other client.

use core::time::Duration;

use rakwire::endpoint::{Capacity, Protocol, SendError};
use rakwire::game_protocol::{self, GameProtocol};
use rakwire::raknet::{self, RakNet};

use crate::support::star::Star;

/// 128 blocks per connection, as in [`Capacity::for_connections`].
const CAPACITY: Capacity = Capacity { connections: 1_000, blocks: 128_000, block_size: 512 };
const TICK: Duration = Duration::from_millis(100);
const MESSAGES_A_TICK: usize = 4;
/// Clients 0 to 99 vanish. The server's application does not read from clients 100 to 199.
const VANISHED: core::ops::Range<usize> = 0..100;
const UNREAD_MESSAGES: core::ops::Range<usize> = 100..200;
const HEALTHY: core::ops::Range<usize> = 200..1_000;

/// Sends ever shorter messages until even one byte is refused; returns the number of accepted messages.
fn fill(mut send: impl FnMut(&[u8]) -> Result<(), SendError>) -> usize {
    let mut sent = 0;
    for length in [60_000, 1_000, 100, 1] {
        while send(&vec![0x86; length]).is_ok() {
            sent += 1;
        }
    }
    sent
}

fn healthy_players_do_not_wait<P: Protocol>(config: P::Config, reliable: P::Delivery) {
    let mut star = Star::<P>::connected(CAPACITY, config, 1_000);
    // Each vanished client has sent only half of a message, and never acknowledges the server's messages.
    for client in VANISHED {
        star.send_from(client, &[0x86; 60_000], reliable).expect("free memory");
    }
    star.run_for(Duration::from_millis(30));
    for client in VANISHED {
        star.clients[client].is_alive = false;
        assert!(fill(|message| star.send_to(client, message, reliable)) > 0);
    }
    for client in UNREAD_MESSAGES {
        star.server.pause(star.clients[client].at_server.expect("a connection"));
    }
    for tick in 1..=50 {
        for client in UNREAD_MESSAGES {
            fill(|message| star.send_from(client, message, reliable));
        }
        for client in HEALTHY {
            for _ in 0..MESSAGES_A_TICK {
                assert_eq!(star.send_to(client, &[0x86; 100], reliable), Ok(()), "tick {tick}");
                star.send_from(client, &[0x86; 100], reliable).expect("free memory at the client");
            }
        }
        star.run_for(TICK);
        for client in HEALTHY {
            let sent = tick * MESSAGES_A_TICK;
            assert_eq!((star.read[client], star.clients[client].received), (sent, sent), "client {client}");
        }
    }
    assert_eq!(star.ended, 0, "no connection may close during the test");
    assert!(star.server.is_intact());
}

#[test]
fn responsive_raknet_players_are_not_delayed_by_unresponsive_players() {
    healthy_players_do_not_wait::<RakNet>(raknet::Config::new([9; 32]), raknet::Delivery::RELIABLE_ORDERED);
}

#[test]
fn responsive_game_protocol_players_are_not_delayed_by_unresponsive_players() {
    let mut config = game_protocol::Config::new([9; 32]);
    // All clients have addresses in a few networks.
    config.challenges_per_network = config.challenges_per_second;
    healthy_players_do_not_wait::<GameProtocol>(config, game_protocol::Reliability::Reliable);
}

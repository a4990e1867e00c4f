//! Limits of connection attempts: unspecified addresses, wrong passwords, and peers without incoming slots.

use core::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectError, Peer};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use super::net::{A, B, BOTH, Dialled, Net, OwnedEvent};

/// Checks that `connect` refuses an unspecified address or port, and sets no timeout.
fn unspecified_address_is_refused<P: Dialled>() {
    let capacity = Capacity { connections: 2, blocks: 64, block_size: 128 };
    let mut peer = Peer::<P>::with_capacity(capacity, P::listening([1; 32]));
    for unspecified in ["0.0.0.0:0", "192.0.2.1:0", "0.0.0.0:19132", "[::]:19132", "[2001:db8::1]:0"] {
        let refused = peer.connect(Instant::ZERO, unspecified.parse().expect("a literal address"));
        assert_eq!(refused, Err(ConnectError::UnassignedAddress), "{unspecified}");
    }
    assert_eq!(peer.poll_timeout(), None);
}

#[test]
fn connecting_to_an_unspecified_address_or_port_is_refused() {
    unspecified_address_is_refused::<RakNet>();
    unspecified_address_is_refused::<GameProtocol>();
}

/// Only one peer requires a password, and the other connects without it. Both attempts fail before the timeout.
#[test]
fn a_wrong_password_fails_both_simultaneous_attempts() {
    for first in BOTH {
        let mut net = Net::<RakNet>::new();
        assert_eq!(net.peer(first).set_password(b"secret"), Ok(()));
        net.dial(A);
        net.dial(B);
        net.run_for(Duration::from_secs(6));
        for side in BOTH {
            assert!(matches!(net.events_of(side), [OwnedEvent::Failed(_)]), "{side:?}: {:?}", net.events);
            assert_eq!(net.peer(side).connections().count(), 0);
        }
    }
}

/// If one peer has no incoming slots, its own outgoing attempt opens the connection.
#[test]
fn simultaneous_attempts_succeed_if_one_peer_accepts_no_incoming_connection() {
    for full in BOTH {
        for first in BOTH {
            let mut configs = [1, 2].map(|byte| RakNet::listening([byte; 32]));
            configs[full as usize].max_incoming = 0;
            let mut net = Net::<RakNet>::with(configs);
            net.dial(first);
            net.dial(first.other());
            net.check(&(full, first));
        }
    }
}

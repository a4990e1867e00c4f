//! Thousands of random paths that lose, duplicate and reorder datagrams.

use core::time::Duration;

use rakwire::Instant;
use rakwire::endpoint::{Capacity, ConnectError, ConnectionState, Event, Peer};
use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;
use rakwire::sim::{Conditions, Pair};

use super::net::Dialled;

/// An upper limit for the duration of both handshakes, even on the worst path.
const LONGEST: Duration = Duration::from_secs(60);

/// A period without messages, shorter than the idle timeout of the Game Protocol.
const REST: Duration = Duration::from_secs(12);

fn conditions(seed: u64) -> Conditions {
    Conditions {
        loss: [0.0, 0.05, 0.2][seed as usize % 3],
        duplication: [0.0, 0.1, 0.3][seed as usize / 3 % 3],
        reordering: [0.0, 0.3, 0.9][seed as usize / 9 % 3],
        latency: Duration::from_millis([1, 40, 150][seed as usize / 27 % 3]),
        jitter: Duration::from_millis([0, 60][seed as usize / 81 % 2]),
        ..Conditions::default()
    }
}

/// Returns the delay before `b` connects: between zero and one and a half round trips.
fn delay(seed: u64, conditions: &Conditions) -> Duration {
    conditions.latency * 3 * (seed / 7 % 16) as u32 / 15
}

fn drain<P: Dialled>(peer: &mut Peer<'static, P>, events: &mut Vec<String>) {
    while let Some(event) = peer.poll_event() {
        events.push(if let Event::Connected { .. } = event {
            "connected".to_owned()
        } else if let Event::Message { message, .. } = event {
            format!("{} bytes", message.len())
        } else {
            format!("{event:?}")
        });
    }
}

/// Sends all pending datagrams and returns the time of the next arrival or timeout.
fn next<P: Dialled>(pair: &mut Pair<Peer<'static, P>, Peer<'static, P>>) -> Option<Instant> {
    pair.transmit();
    let deliveries = [pair.forth().next_arrival(), pair.back().next_arrival()];
    deliveries.into_iter().chain([pair.a.poll_timeout(), pair.b.poll_timeout()]).flatten().min()
}

fn dial_both<P: Dialled>(seed: u64) {
    let capacity = Capacity { connections: 2, blocks: 64, block_size: 128 };
    let peer = |byte| Peer::<P>::with_capacity(capacity, P::patient([byte; 32]));
    let conditions = conditions(seed);
    let mut pair = Pair::new(peer(1), peer(2), conditions, seed);
    let (a_address, b_address) = (pair.a_address, pair.b_address);
    pair.a.connect(pair.now, b_address).expect("a free slot");
    let (dials_at, ends_at) = (pair.now + delay(seed, &conditions), pair.now + LONGEST);
    let (mut a, mut b, mut has_dialled) = (Vec::new(), Vec::new(), false);
    while pair.now < ends_at && !(has_dialled && a == ["connected"] && b == ["connected"]) {
        let steps = pair.now < dials_at && pair.step();
        drain(&mut pair.a, &mut a);
        drain(&mut pair.b, &mut b);
        if !steps && !has_dialled {
            has_dialled = true;
            match pair.b.connect(pair.now, a_address) {
                Ok(_) => {}
                Err(ConnectError::AlreadyConnected) => assert_eq!(b, ["connected"], "seed {seed}"),
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        pair.step();
        drain(&mut pair.a, &mut a);
        drain(&mut pair.b, &mut b);
    }
    assert_eq!(
        (&a[..], &b[..]),
        (&["connected".to_owned()][..], &["connected".to_owned()][..]),
        "seed {seed}"
    );
    for peer in [&mut pair.a, &mut pair.b] {
        let id = peer.connections().next().expect("a connection");
        assert_eq!(peer.connections().count(), 1, "seed {seed}");
        assert_eq!(peer.connection(id).map(|info| info.state), Some(ConnectionState::Connected));
        peer.send(pair.now, id, P::MESSAGE, P::Delivery::default()).expect("an open connection");
    }
    // Late datagrams of the handshakes must not close the connection.
    let ends_at = pair.now + REST;
    while next(&mut pair).is_some_and(|at| at < ends_at) {
        pair.step();
        drain(&mut pair.a, &mut a);
        drain(&mut pair.b, &mut b);
    }
    let expected = ["connected".to_owned(), format!("{} bytes", P::MESSAGE.len())];
    assert_eq!((&a[..], &b[..]), (&expected[..], &expected[..]), "seed {seed}");
}

#[test]
fn simultaneous_raknet_attempts_open_one_connection_on_random_paths() {
    (0..3_000).for_each(dial_both::<RakNet>);
}

#[test]
fn simultaneous_game_protocol_attempts_open_one_connection_on_random_paths() {
    (0..3_000).for_each(dial_both::<GameProtocol>);
}

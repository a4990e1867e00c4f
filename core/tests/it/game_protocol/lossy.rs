//! The Game Protocol over seeded lossy networks.

use core::time::Duration;

use rakwire::game_protocol::Reliability::{Reliable, Unreliable};
use rakwire::game_protocol::{DisconnectReason, ResendInterval};
use rakwire::sim::Conditions;

use crate::model::game;
use crate::model::random::Random;
use crate::support::game_protocol::*;

const SEQUENCES: u64 = 1_500;

/// The invariants are the guarantees that the model [`game`] checks.
#[test]
fn invariants_hold_under_random_operations() {
    let (mut delivered, mut closed) = (0, 0);
    for seed in 0..SEQUENCES {
        let bytes = Random::new(seed).bytes(400);
        match game::run(&bytes) {
            Ok(outcome) => {
                delivered += outcome.delivered;
                closed += usize::from(outcome.closed);
            }
            Err(broken) => panic!("seed {seed}: {broken}"),
        }
    }
    assert!(
        delivered > 100 * SEQUENCES as usize,
        "only {delivered} messages arrived, too few for a meaningful test"
    );
    assert!(closed < SEQUENCES as usize / 20, "{closed} connections were closed");
}

/// The paths lose up to half of all datagrams, and duplicate and reorder others. First sequences and resend intervals
/// vary.
#[test]
fn all_reliable_messages_are_delivered_once_over_any_path() {
    for (seed, loss) in (0..).zip([0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5]) {
        for (start, resend) in [
            (0, ResendInterval::default()),
            (0xFFC0, ResendInterval::MEASURED),
            (0x7FF0, ResendInterval::default()),
        ] {
            let conditions = Conditions {
                loss,
                duplication: loss / 2.0,
                reordering: 0.2,
                latency: Duration::from_millis(30),
                jitter: Duration::from_millis(10),
                ..Conditions::default()
            };
            exchange(conditions, seed, start, resend);
        }
    }
}

/// Exchanges 200 reliable messages of 1 to 7,961 bytes and 200 unreliable ones in each direction.
fn exchange(conditions: Conditions, seed: u64, start: u16, resend: ResendInterval) {
    let (mut client, mut server) = (client_config(), server_config());
    client.resend_interval = resend;
    server.resend_interval = resend;
    let mut net = Net::with(peer(client), peer(server), conditions, seed);
    net.pair.a.start_sequences_at(start);
    net.pair.b.start_sequences_at(start);
    let (here, there) = net.connect();
    let reliable: Vec<Vec<u8>> = (0..200).map(|number| vec![number as u8; 1 + number * 40]).collect();
    for message in &reliable {
        let now = net.now();
        net.pair.a.send(now, here, message, Reliable).expect("free memory");
        net.pair.b.send(now, there, message, Reliable).expect("free memory");
        net.pair.a.send(now, here, b"unreliable", Unreliable).expect("free memory");
        net.pair.b.send(now, there, b"unreliable", Unreliable).expect("free memory");
        net.run_for(Duration::from_millis(16));
    }
    let is_there = |events: &[OwnedEvent]| {
        events.iter().filter(|event| matches!(event, OwnedEvent::Message(_, Reliable, _))).count() >= 200
    };
    let done = net.run_until(Duration::from_secs(60), |net| is_there(&net.client) && is_there(&net.server));
    assert!(done, "loss {}, first sequence {start}", conditions.loss);
    net.run_for(Duration::from_secs(1));
    for events in [&net.client, &net.server] {
        let (mut arrived, others): (Vec<_>, Vec<_>) =
            messages(events).into_iter().partition(|bytes| *bytes != b"unreliable");
        arrived.sort_by_key(|bytes| bytes.len());
        assert!(arrived == reliable, "loss {}, first sequence {start}", conditions.loss);
        assert!(
            others.len() <= 200 && others.len() as f64 >= 200.0 * (0.8 - conditions.loss),
            "{}",
            others.len()
        );
    }
}

#[test]
fn the_longest_message_is_delivered_over_a_lossy_path() {
    let conditions = Conditions {
        loss: 0.3,
        duplication: 0.2,
        reordering: 0.3,
        latency: Duration::from_millis(40),
        ..Conditions::default()
    };
    let mut net = Net::new(conditions, 5);
    let (here, there) = net.connect();
    let now = net.now();
    net.pair.a.send(now, here, &payload(129_024), Reliable).expect("256 chunks");
    assert!(net.run_until(Duration::from_secs(10), |net| !net.server.is_empty()));
    assert!(net.server == [OwnedEvent::Message(there, Reliable, payload(129_024))]);
}

/// The path loses 30 % of all datagrams.
#[test]
fn the_last_reliable_message_is_delivered_before_the_disconnect() {
    let mut lost_ends = 0;
    for seed in 0..100 {
        let conditions =
            Conditions { loss: 0.3, latency: Duration::from_millis(20), ..Conditions::default() };
        let mut net = Net::new(conditions, seed);
        let (_, there) = net.connect();
        let now = net.now();
        net.pair.b.send(now, there, b"game over", Reliable).expect("an open connection");
        net.pair.b.disconnect(now, there);
        net.run_until(Duration::from_secs(20), |net| {
            ended(&net.client).is_some() && ended(&net.server).is_some()
        });
        assert_eq!(messages(&net.client), [b"game over"], "seed {seed}");
        lost_ends += usize::from(ended(&net.client) == Some(DisconnectReason::Lost));
    }
    assert!((1..60).contains(&lost_ends), "{lost_ends} of 100 clients did not receive END");
}

#[test]
fn peers_may_start_their_sequences_at_different_numbers() {
    let mut net = Net::new(Conditions::default(), 1);
    net.pair.a.start_sequences_at(65_000);
    let (here, _) = net.connect();
    for number in 0..2_000_u16 {
        let now = net.now();
        net.pair.a.send(now, here, &number.to_be_bytes(), Reliable).expect("free memory");
        net.run_for(Duration::from_millis(1));
    }
    let expected: Vec<_> = (0..2_000_u16).map(u16::to_be_bytes).collect();
    assert!(messages(&net.server).into_iter().eq(expected.iter().map(|bytes| &bytes[..])));
}

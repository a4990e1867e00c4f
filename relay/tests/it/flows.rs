//! Flows without IO, with random input from a seed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use crate::flow::{Flow, FlowLimits, FromClient, FromServer, ResumeTable, Secret, Setup, TargetCounters};
use crate::model::operations;
use crate::model::random::Random;
use crate::model::resumption::{self, Game};

/// Number of runs per protocol.
const GAMES: u64 = 5_000;

fn survive<P: Game>() {
    let (mut resumed, mut delivered, mut longest_return) = (0, 0, Duration::ZERO);
    for seed in 0..GAMES {
        let outcome = resumption::run::<P>(seed).unwrap_or_else(|broken| panic!("{broken}"));
        resumed += outcome.resumed;
        delivered += outcome.delivered;
        longest_return = longest_return.max(outcome.longest_return);
    }
    // The run fails if a return takes longer than one round trip and 50 ms.
    assert!(longest_return > Duration::ZERO, "no return was measured");
    assert!(resumed as u64 > 2 * GAMES, "{resumed} resumptions");
    assert!(delivered as u64 > 20 * GAMES, "{delivered} messages");
}

#[test]
fn reliable_raknet_messages_survive_resumption_exactly_once() {
    survive::<RakNet>();
}

#[test]
fn reliable_game_protocol_messages_survive_resumption_exactly_once() {
    survive::<GameProtocol>();
}

#[test]
fn flows_keep_their_guarantees_under_random_operations() {
    let mut sum = operations::Outcome::default();
    for seed in 0..2_000 {
        let bytes = Random::new(seed).bytes(600);
        let outcome = operations::run(&bytes).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        sum.delivered += outcome.delivered;
        sum.dropped += outcome.dropped;
        sum.resumed += outcome.resumed;
        sum.ended += outcome.ended;
    }
    assert!(sum.delivered > 20_000 && sum.dropped > 20_000, "{sum:?}");
    assert!(sum.resumed > 500 && sum.ended > 500, "{sum:?}");
}

/// Simulates a day in which a client connects every second. Some clients close their connection, some vanish, and some
/// of the vanished clients return.
#[test]
fn a_day_of_clients_leaves_no_state() {
    let (start, counters) = (Instant::now(), Arc::new(TargetCounters::default()));
    let (mut table, mut flows, mut random) = (ResumeTable::new(), Vec::<Flow>::new(), Random::new(1));
    let day = 24 * 60 * 60;
    let mut most = 0;
    for second in 0..day + 120 {
        let now = start + Duration::from_secs(second);
        if second < day {
            let secret = Secret::new(std::array::from_fn(|_| random.draw() as u8));
            let setup = Setup { secret: Some(secret), ..Setup::default() };
            table.insert(secret, "game", second);
            flows.push(Flow::new(FlowLimits::default(), Arc::clone(&counters), setup, now));
        }
        for flow in &mut flows {
            if flow.poll_timeout() <= now {
                flow.handle_timeout(now);
            }
            flow.handle_server(now, FromServer::Datagram(b"snapshot"));
            let secret = *flow.secret().unwrap();
            match random.below(40) {
                0 | 1 => flow.handle_client(now, FromClient::Closed),
                2 | 3 if flow.is_attached() => {
                    flow.handle_client(now, FromClient::Vanished);
                    table.set_detached(&secret);
                }
                4 if !flow.is_attached() && second < day => {
                    assert!(table.find(&secret, "game").is_some());
                    table.set_attached(&secret);
                    flow.handle_attached(now);
                }
                _ if second >= day => flow.handle_client(now, FromClient::Closed),
                _ => flow.handle_client(now, FromClient::Datagram(b"input"[..].into())),
            }
            if flow.end().is_some() {
                table.remove(&secret);
            }
        }
        flows.retain(|flow| flow.end().is_none());
        assert_eq!(table.len(), flows.len());
        most = most.max(flows.len());
    }
    assert!(most < 200, "{most} flows at a time");
    let snapshot = counters.snapshot();
    assert_eq!((snapshot.clients, snapshot.detached, snapshot.flows), (0, 0, day));
    assert!(snapshot.resumed > 1_000 && table.is_empty() && table.evict().is_none(), "{snapshot:?}");
}

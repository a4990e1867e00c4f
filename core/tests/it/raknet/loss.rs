//! The throughput and delay of messages on lossy paths, in virtual time.
//!
//! This command prints the table in docs/congestion.md: `cargo test -p rakwire --test it raknet::loss -- --nocapture
//! --test-threads 1`

use core::time::Duration;

use rakwire::raknet::{Capacity, ConnectionStats, Delivery, DropReason, Event, Peer};
use rakwire::sim::{Conditions, GilbertElliott, LinkStats, Pair};

use crate::support::raknet::{client_config, server_config};

const MESSAGES: u32 = 20_000;
const SEEDS: u64 = 9;
const LATENCY: Duration = Duration::from_millis(25);

/// The time at which the receiver sends acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acks {
    /// After the default acknowledgement delay.
    Usual,
    /// Immediately for each datagram.
    AtOnce,
}

/// The measurements of 20,000 messages.
struct Run {
    /// Messages per second.
    rate: f64,
    /// The 99th percentile of the time from `send` to delivery.
    p99: Duration,
    sender: ConnectionStats,
    /// Counters of the link for messages and of the link for acknowledgements.
    forth: LinkStats,
    back: LinkStats,
    /// Datagrams for which the receiver had no memory.
    no_memory: u64,
}

/// Sends messages of 100 bytes as fast as they are accepted.
fn transfer(capacity: Capacity, acks: Acks, there: Conditions, back: Conditions, seed: u64) -> Run {
    let mut server = server_config();
    server.max_incoming = 1;
    if acks == Acks::AtOnce {
        server.ack_delay = Duration::ZERO;
    }
    let peers = (Peer::with_capacity(capacity, client_config()), Peer::with_capacity(capacity, server));
    let mut pair = Pair::new(peers.0, peers.1, there, seed);
    pair.back().set_conditions(back);
    let id = pair.a.connect(pair.now, pair.b_address).expect("a free slot");
    while !matches!(pair.a.poll_event(), Some(Event::Connected { .. })) {
        assert!(pair.step());
    }
    pair.forth().take_stats();
    pair.back().take_stats();
    let (start, mut sent_at, mut delays) = (pair.now, Vec::new(), Vec::new());
    while delays.len() < MESSAGES as usize {
        while sent_at.len() < MESSAGES as usize {
            let mut message = [0x86; 100];
            message[1..5].copy_from_slice(&(sent_at.len() as u32).to_be_bytes());
            if pair.a.send(pair.now, id, &message, Delivery::RELIABLE_ORDERED).is_err() {
                break;
            }
            sent_at.push(pair.now);
        }
        assert!(pair.step());
        while let Some(event) = pair.b.poll_event() {
            if let Event::Message { message, .. } = event {
                assert_eq!(message.to_vec()[1..5], (delays.len() as u32).to_be_bytes());
                delays.push(pair.now.saturating_since(sent_at[delays.len()]));
            }
        }
    }
    delays.sort_unstable();
    Run {
        rate: f64::from(MESSAGES) / pair.now.saturating_since(start).as_secs_f64(),
        p99: delays[delays.len() / 100 * 99 - 1],
        sender: pair.a.connection_stats(id).expect("an open connection"),
        forth: *pair.forth().stats(),
        back: *pair.back().stats(),
        no_memory: pair.b.stats().dropped(DropReason::NoMemory),
    }
}

fn lossy(loss: f64) -> Conditions {
    Conditions { loss, latency: LATENCY, ..Conditions::default() }
}

/// Returns a path with a loss of 4.8 % in bursts of five datagrams on average.
fn bursts() -> Conditions {
    let bursts = Some(GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.2 });
    Conditions { bursts, ..lossy(0.0) }
}

/// Returns the median rate, the median of the 99th percentile of the delay, and the minimum rate of all seeds.
fn measure(name: &str, acks: Acks, conditions: Conditions) -> (f64, Duration, f64) {
    let run = |seed| transfer(Capacity::for_connections(1), acks, conditions, conditions, seed);
    let mut runs: Vec<_> = (0..SEEDS).map(run).collect();
    let no_memory = runs.iter().map(|run| run.no_memory).max().unwrap_or_default();
    runs.sort_by_key(|run| run.p99);
    let p99 = runs[runs.len() / 2].p99;
    runs.sort_by(|left, right| left.rate.total_cmp(&right.rate));
    let (worst, median) = (&runs[0], &runs[runs.len() / 2]);
    println!(
        "{name:>7}, acknowledged {acks:?}: {:>6.0}/s, at worst {:>6.0}/s, p99 {:>3} ms, {:>4} sent, {:>3} resent for {:>3} lost, \
         {:>3} acknowledgements of {:>4} bytes, at most {no_memory} without memory",
        median.rate,
        worst.rate,
        p99.as_millis(),
        median.sender.datagrams_sent,
        median.sender.datagrams_lost,
        median.forth.lost,
        median.back.forwarded + median.back.lost,
        median.back.bytes,
    );
    (median.rate, p99, worst.rate)
}

#[test]
fn random_loss_reduces_the_throughput_only_moderately() {
    for acks in [Acks::Usual, Acks::AtOnce] {
        let (clean, p99, _) = measure("0 %", acks, lossy(0.0));
        let paths = [
            ("1 %", lossy(0.01), 0.85, 0.8),
            ("5 %", lossy(0.05), 0.75, 0.6),
            ("15 %", lossy(0.15), 0.5, 0.3),
            ("bursts", bursts(), 0.5, 0.0),
        ];
        for (name, conditions, goal, least) in paths {
            let (rate, late, worst) = measure(name, acks, conditions);
            assert!(rate >= goal * clean, "{name} {acks:?}: {rate} messages/s, {clean} without loss");
            assert!(
                worst >= least * clean,
                "{name} {acks:?}: at worst {worst} messages/s, {clean} without loss"
            );
            assert!(
                late <= p99 * 3 / 2 || name == "15 %",
                "{name} {acks:?}: p99 of {late:?}, {p99:?} without loss"
            );
        }
    }
}

/// Later acknowledgements repeat the numbers of the lost one.
#[test]
fn a_lost_acknowledgement_causes_no_spurious_loss() {
    for (seed, loss) in [(1, 0.05), (2, 0.1), (3, 0.15)] {
        let capacity = Capacity { blocks: 16_384, ..Capacity::for_connections(1) };
        let run = transfer(capacity, Acks::Usual, lossy(0.0), lossy(loss), seed);
        assert!(run.back.lost >= 3, "loss {loss}: only {} acknowledgements were lost", run.back.lost);
        assert!(
            run.sender.datagrams_lost <= 16,
            "loss {loss}: {} datagrams were resent",
            run.sender.datagrams_lost
        );
    }
}

/// A repeated number extends an existing record instead of adding one.
#[test]
fn repeated_acknowledgements_cost_no_bytes_without_losses() {
    let run = transfer(Capacity::for_connections(1), Acks::Usual, lossy(0.0), lossy(0.0), 1);
    // A header of three bytes and a record of seven, and a few longer datagrams at the beginning.
    assert!(run.back.bytes <= 10 * run.back.forwarded + 40, "{:?}", run.back);
}

/// A short message takes a whole block. Messages that wait for a lost one share blocks, so they need less memory.
#[test]
fn messages_buffered_behind_a_lost_message_share_blocks() {
    let capacity = Capacity { blocks: 4_096, ..Capacity::for_connections(1) };
    let clean = transfer(capacity, Acks::Usual, lossy(0.0), lossy(0.0), 1);
    for seed in 0..SEEDS {
        let run = transfer(capacity, Acks::Usual, lossy(0.01), lossy(0.01), seed);
        assert!(run.no_memory <= 250, "seed {seed}: no memory for {} datagrams", run.no_memory);
        assert!(
            run.rate >= 0.75 * clean.rate,
            "seed {seed}: {} messages/s, {} without loss",
            run.rate,
            clean.rate
        );
    }
}

/// After a retransmission timeout a probe is sent even if lost datagrams fill the congestion window.
#[test]
fn a_full_window_does_not_delay_probes() {
    let capacity = Capacity { blocks: 512, ..Capacity::for_connections(1) };
    let clean = transfer(capacity, Acks::Usual, lossy(0.0), lossy(0.0), 1);
    for seed in 0..SEEDS {
        let run = transfer(capacity, Acks::Usual, lossy(0.05), lossy(0.05), seed);
        assert!(
            run.rate >= 0.3 * clean.rate,
            "seed {seed}: {} messages/s, {} without loss",
            run.rate,
            clean.rate
        );
    }
}

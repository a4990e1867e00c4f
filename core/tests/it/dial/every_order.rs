//! Every order in which the first datagrams of two simultaneous handshakes can arrive.

use rakwire::game_protocol::GameProtocol;
use rakwire::raknet::RakNet;

use super::net::{A, B, Dialled, Net};

/// The schedule of a run: for each of the first steps, the index of the event to execute next.
struct Choices {
    taken: Vec<usize>,
    /// The number of events to choose from at each step.
    open: Vec<usize>,
    at: usize,
}

impl Choices {
    const fn new() -> Self {
        Self { taken: Vec::new(), open: Vec::new(), at: 0 }
    }

    /// Returns the next choice among `count` events.
    fn take(&mut self, count: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push(0);
            self.open.push(count);
        }
        assert_eq!(self.open[self.at], count, "the runs must be deterministic");
        self.at += 1;
        self.taken[self.at - 1]
    }

    /// Selects the next run; returns false after the last one.
    fn next(&mut self) -> bool {
        self.at = 0;
        while let (Some(taken), Some(open)) = (self.taken.pop(), self.open.pop()) {
            if taken + 1 < open {
                self.taken.push(taken + 1);
                self.open.push(open);
                return true;
            }
        }
        false
    }
}

/// Executes a run and returns the resulting network.
///
/// A choice either delivers one of the datagrams in flight or lets `B` connect, once. If `B` has not connected after
/// `depth` choices, it connects then. The remaining datagrams stay in flight.
fn run<P: Dialled>(choices: &mut Choices, depth: usize) -> Net<P> {
    let mut net = Net::new();
    net.dial(A);
    let mut has_dialled = false;
    for _ in 0..depth {
        let options = net.under_way.len() + usize::from(!has_dialled);
        if options == 0 {
            break;
        }
        match choices.take(options) {
            at if at < net.under_way.len() => net.deliver(at),
            _ => {
                net.dial(B);
                has_dialled = true;
            }
        }
    }
    if !has_dialled {
        net.dial(B);
    }
    net
}

fn every_order<P: Dialled>(depth: usize) -> usize {
    let (mut choices, mut runs) = (Choices::new(), 0);
    loop {
        let mut net = run::<P>(&mut choices, depth);
        net.check(&choices.taken);
        runs += 1;
        if !choices.next() {
            return runs;
        }
    }
}

#[test]
fn simultaneous_raknet_attempts_open_one_connection_in_every_order() {
    let runs = every_order::<RakNet>(12);
    assert!(runs > 10_000, "only {runs} orders were tested");
}

#[test]
fn simultaneous_game_protocol_attempts_open_one_connection_in_every_order() {
    let runs = every_order::<GameProtocol>(8);
    assert!(runs > 10, "only {runs} orders were tested");
}

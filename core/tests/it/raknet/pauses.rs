//! An application that stops reading for a while: unread data takes memory, and none of it is lost.

use core::time::Duration;

use rakwire::raknet::{Capacity, ConnectionId, Delivery, Event, Peer};
use rakwire::sim::Conditions;

use crate::support::raknet::{Net, client_config, peer, server_config};

const MESSAGES: u32 = 1_500;
const LENGTH: usize = 100;

/// A client with little memory that sends more than both peers can buffer, and a server that echoes all messages.
struct Flood {
    net: Net,
    client: ConnectionId,
    server: ConnectionId,
    sent: u32,
    received: u32,
    /// Messages that the server could not echo yet.
    owed: Vec<Vec<u8>>,
    seed: u64,
}

impl Flood {
    fn new(capacity: Capacity, conditions: Conditions, seed: u64) -> Self {
        let client = Peer::with_capacity(capacity, client_config());
        let mut net = Net::with(client, peer(server_config()), conditions, seed);
        let (client, server) = net.connect();
        Self { net, client, server, sent: 0, received: 0, owed: Vec::new(), seed }
    }

    fn send(&mut self) {
        while self.sent < MESSAGES {
            let mut message = [0x86; LENGTH];
            message[1..5].copy_from_slice(&self.sent.to_le_bytes());
            let pair = &mut self.net.pair;
            if pair.a.send(pair.now, self.client, &message, Delivery::RELIABLE_ORDERED).is_err() {
                return;
            }
            self.sent += 1;
        }
    }

    fn echo(&mut self) {
        let pair = &mut self.net.pair;
        while let Some(event) = pair.b.poll_event() {
            match event {
                Event::Message { message, .. } => self.owed.push(message.to_vec()),
                other @ (Event::Connected { .. } | _) => panic!("the server received {other:?}"),
            }
        }
        let now = pair.now;
        let sent = self
            .owed
            .iter()
            .take_while(|message| pair.b.send(now, self.server, message, Delivery::RELIABLE_ORDERED).is_ok())
            .count();
        self.owed.drain(..sent);
    }

    fn read(&mut self) {
        while let Some(event) = self.net.pair.a.poll_event() {
            match event {
                Event::Message { message, .. } => {
                    assert_eq!(message.to_vec()[1..5], self.received.to_le_bytes());
                    self.received += 1;
                }
                other @ (Event::Disconnected { .. } | _) => {
                    panic!("seed {}: {} of {MESSAGES} arrived, then {other:?}", self.seed, self.received)
                }
            }
        }
    }

    /// Runs the client, which first sends everything and then reads.
    fn run(&mut self, time: Duration) {
        let end = self.net.now() + time;
        while self.received < MESSAGES && self.net.now() < end {
            self.send();
            self.echo();
            if self.sent == MESSAGES {
                self.read();
            }
            if !self.net.pair.step() {
                break;
            }
        }
    }
}

/// Returns the time until the client has received everything.
fn took(blocks: usize, loss: f64, seed: u64) -> Duration {
    let capacity = Capacity { connections: 1, blocks, block_size: 128 };
    let (latency, jitter) = (Duration::from_micros(200), Duration::from_micros(300));
    let conditions = Conditions { latency, jitter, loss, ..Conditions::default() };
    let mut flood = Flood::new(capacity, conditions, seed);
    let start = flood.net.now();
    flood.run(Duration::from_secs(120));
    assert_eq!(flood.received, MESSAGES, "seed {seed}, {blocks} blocks, loss of {loss}");
    flood.net.now().saturating_since(start)
}

#[test]
fn all_messages_reach_a_client_that_sends_before_it_reads() {
    for blocks in [64, 160, 400] {
        for (seed, loss) in (0..40).zip([0.0, 0.01, 0.05, 0.2].into_iter().cycle()) {
            took(blocks, loss, seed);
        }
    }
}

/// Once memory is free, the receiver requests the refused data with a negative acknowledgement. The sender does not
/// wait for its retransmission timeout, which has grown by back-off.
#[test]
fn refused_data_is_delivered_soon_after_memory_is_freed() {
    for seed in 0..40 {
        let took = took(160, 0.0, seed);
        assert!(took < Duration::from_secs(2), "seed {seed}: the exchange took {took:?}");
    }
}

//! The guarantees of reliable ordered messages over a lossy network, for many seeds.

use core::time::Duration;

use rakwire::raknet::{Capacity, Channel, ConnectionId, Delivery, Event, Message, Peer, SendError};
use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, U24};

use crate::support::raknet::{Net, client_config, server_config};

const MESSAGES: u32 = 2_000;
const CHANNELS: u8 = 3;
const MAX_LENGTH: u32 = 20_480;
const TIME_LIMIT: Duration = Duration::from_secs(30);

const BAD_NETWORK: Conditions = Conditions {
    loss: 0.2,
    duplication: 0.1,
    reordering: 0.1,
    latency: Duration::from_millis(10),
    jitter: Duration::from_millis(2),
    bottleneck: None,
    bursts: None,
};

/// Returns a pseudorandom number from which the sender generates a message and the receiver verifies it.
fn mix(seed: u64, number: u32) -> u64 {
    let mut x = seed ^ u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

/// Returns a length of 1 to 20,480 bytes.
fn length(seed: u64, number: u32) -> usize {
    ((mix(seed, number) >> 32) as u32 % MAX_LENGTH + 1) as usize
}

fn fill(seed: u64, number: u32, buffer: &mut Vec<u8>) {
    buffer.clear();
    let start = mix(seed, number) as u8;
    buffer.extend((0..length(seed, number)).map(|index| start.wrapping_add((index * 7) as u8)));
    buffer[0] |= 0x86;
}

const fn channel_of(number: u32) -> u8 {
    (number % CHANNELS as u32) as u8
}

/// One direction of a run: the messages sent, and those delivered on each channel.
struct Flow {
    seed: u64,
    sent: u32,
    next: [u32; CHANNELS as usize],
    arrived: u32,
    buffer: Vec<u8>,
}

impl Flow {
    fn new(seed: u64) -> Self {
        let next = core::array::from_fn(|channel| channel as u32);
        Self { seed, sent: 0, next, arrived: 0, buffer: Vec::new() }
    }

    /// Sends until the peer refuses a message for lack of memory.
    fn send(&mut self, peer: &mut Peer<'_>, now: Instant, id: ConnectionId) {
        while self.sent < MESSAGES {
            fill(self.seed, self.sent, &mut self.buffer);
            let channel = Channel::new(channel_of(self.sent)).expect("a channel below 32");
            match peer.send(now, id, &self.buffer, Delivery::RELIABLE_ORDERED.on(channel)) {
                Ok(_) => self.sent += 1,
                Err(SendError::QuotaExceeded | SendError::PoolExhausted | SendError::NotConnected) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Checks that a message equals the next one that was sent on its channel.
    fn arrive(&mut self, delivery: Delivery, message: &Message<'_>) {
        let channel = delivery.channel.number();
        let number = self.next[usize::from(channel)];
        assert!(
            number < MESSAGES,
            "seed {}: more messages arrived on channel {channel} than were sent",
            self.seed
        );
        fill(self.seed, number, &mut self.buffer);
        let same = message.chunks().flatten().eq(&self.buffer);
        assert!(same, "seed {}: message {number} on channel {channel} differs", self.seed);
        self.next[usize::from(channel)] += u32::from(CHANNELS);
        self.arrived += 1;
    }

    /// Polls received messages; returns false once the connection has closed.
    fn receive(&mut self, peer: &mut Peer<'_>) -> bool {
        while let Some(event) = peer.poll_event() {
            match event {
                Event::Message { delivery, message, .. } => self.arrive(delivery, &message),
                Event::Disconnected { .. } => return false,
                Event::Connected { .. } | Event::ConnectFailed { .. } | _ => {
                    panic!("seed {}: {event:?}", self.seed)
                }
            }
        }
        true
    }
}

/// Sends 2,000 messages in each direction; returns the number delivered and the time taken.
fn run(seed: u64, conditions: Conditions, first_number: U24) -> (u32, Duration) {
    let capacity = Capacity { connections: 1, blocks: 8_192, block_size: 256 };
    let mut a = Peer::with_capacity(capacity, client_config());
    let mut b = Peer::with_capacity(capacity, server_config());
    a.start_numbers_at(first_number);
    b.start_numbers_at(first_number);
    let mut net = Net::with(a, b, Conditions { latency: conditions.latency, ..Conditions::default() }, seed);
    let (client_id, server_id) = net.connect();
    let pair = &mut net.pair;
    pair.set_conditions(conditions);
    let start = pair.now;
    let (mut up, mut down) = (Flow::new(2 * seed), Flow::new(2 * seed + 1));
    while up.arrived + down.arrived < 2 * MESSAGES && pair.now.saturating_since(start) < TIME_LIMIT {
        up.send(&mut pair.a, pair.now, client_id);
        down.send(&mut pair.b, pair.now, server_id);
        if !pair.step() || !up.receive(&mut pair.b) || !down.receive(&mut pair.a) {
            break;
        }
    }
    let took = pair.now.saturating_since(start);
    if up.arrived + down.arrived == 2 * MESSAGES {
        close(pair, client_id, server_id);
    }
    (up.arrived + down.arrived, took)
}

/// Closes the connection at both peers and checks that all blocks are free.
fn close(pair: &mut Pair<Peer<'static>, Peer<'static>>, client: ConnectionId, server: ConnectionId) {
    let end = pair.now + Duration::from_secs(60);
    pair.a.disconnect(pair.now, client);
    pair.b.disconnect(pair.now, server);
    while pair.now < end && pair.step() {
        while pair.a.poll_event().is_some() {}
        while pair.b.poll_event().is_some() {}
    }
    for peer in [&pair.a, &pair.b] {
        assert_eq!(peer.connections().count(), 0);
        assert_eq!(
            peer.blocks_available(),
            peer.blocks(),
            "all blocks must be free after the connection has closed"
        );
    }
}

#[test]
fn all_messages_are_delivered_once_and_in_order_for_a_hundred_seeds() {
    for seed in 0..100 {
        let (arrived, took) = run(seed, BAD_NETWORK, U24::new(0));
        assert_eq!(arrived, 2 * MESSAGES, "seed {seed}: messages are missing after {took:?}");
    }
}

#[test]
fn all_messages_are_delivered_while_numbers_wrap() {
    for seed in 100..105 {
        let (arrived, took) = run(seed, BAD_NETWORK, U24::new(0xFF_FF80));
        assert_eq!(arrived, 2 * MESSAGES, "seed {seed}: messages are missing after {took:?}");
    }
}

#[test]
fn some_messages_arrive_at_a_loss_of_50_percent() {
    let conditions = Conditions { loss: 0.5, ..BAD_NETWORK };
    let (arrived, _) = run(1, conditions, U24::new(0));
    assert!(arrived > 0);
}

//! Prediction over the real transports and a simulated network. The measured corrections are those that the demo's
//! page must smooth.

use std::time::Duration;

use rakwire::sim::{Conditions, Pair};
use rakwire::{Instant, Machine, game_protocol, raknet};
use snowfight::client::{Client, Input, Prediction, Update, View};
use snowfight::message::{Delivery, Direction, Scope};
use snowfight::server::{MAX_MESSAGE, Output, Server};
use snowfight::world::MAX_ENTITIES;

pub(crate) const TICK: Duration = Duration::from_micros(16_667);
const FRAMES: u32 = 1_800;
pub(crate) const WAYS: [Direction; 5] =
    [Direction::NONE, Direction::NORTH, Direction::EAST, Direction::SOUTH, Direction::WEST];
/// The first byte of the game's messages over RakNet.
const MESSAGE_ID: u8 = 0x86;

/// One side of a connection.
pub(crate) trait End: Machine {
    fn connect(&mut self, now: Instant, to: std::net::SocketAddr);
    /// Sends a message; returns true if the transport accepted it.
    fn send(&mut self, now: Instant, message: &[u8], delivery: Delivery) -> bool;
    /// Appends the messages that have arrived to `messages`; returns true if the connection is open.
    fn receive(&mut self, messages: &mut Vec<Vec<u8>>) -> bool;
}

pub(crate) struct Game {
    peer: game_protocol::Peer<'static>,
    id: Option<game_protocol::ConnectionId>,
}

impl Game {
    pub(crate) fn new(max_incoming: u16) -> Self {
        let mut config = game_protocol::Config::new([max_incoming as u8 + 1; 32]);
        config.max_incoming = max_incoming;
        let capacity = game_protocol::Capacity { connections: 1, blocks: 256, block_size: 512 };
        Self { peer: game_protocol::Peer::with_capacity(capacity, config), id: None }
    }
}

impl End for Game {
    fn connect(&mut self, now: Instant, to: std::net::SocketAddr) {
        self.peer.connect(now, to).expect("a free slot");
    }

    fn send(&mut self, now: Instant, message: &[u8], delivery: Delivery) -> bool {
        let reliability = match delivery {
            Delivery::Reliable => game_protocol::Reliability::Reliable,
            Delivery::Unreliable => game_protocol::Reliability::Unreliable,
        };
        let id = self.id.expect("the connection is open");
        self.peer.send(now, id, message, reliability).is_ok()
    }

    fn receive(&mut self, messages: &mut Vec<Vec<u8>>) -> bool {
        while let Some(event) = self.peer.poll_event() {
            if let game_protocol::Event::Connected { id, .. } = event {
                self.id = Some(id);
            } else if let game_protocol::Event::Message { message, .. } = event {
                messages.push(message.to_vec());
            } else {
                panic!("{event:?}");
            }
        }
        self.id.is_some()
    }
}

pub(crate) struct RakNet {
    peer: raknet::Peer<'static>,
    id: Option<raknet::ConnectionId>,
}

impl RakNet {
    pub(crate) fn new(max_incoming: u16) -> Self {
        let mut config = raknet::Config::new([max_incoming as u8 + 1; 32]);
        config.max_incoming = max_incoming;
        let capacity = raknet::Capacity { connections: 1, blocks: 2_048, block_size: 512 };
        Self { peer: raknet::Peer::with_capacity(capacity, config), id: None }
    }
}

impl End for RakNet {
    fn connect(&mut self, now: Instant, to: std::net::SocketAddr) {
        self.peer.connect(now, to).expect("a free slot");
    }

    fn send(&mut self, now: Instant, message: &[u8], delivery: Delivery) -> bool {
        let promise = match delivery {
            Delivery::Reliable => raknet::Delivery::RELIABLE_ORDERED,
            Delivery::Unreliable => raknet::Delivery::UNRELIABLE_SEQUENCED,
        };
        let id = self.id.expect("the connection is open");
        let message = [&[MESSAGE_ID], message].concat();
        self.peer.send(now, id, &message, promise).is_ok()
    }

    fn receive(&mut self, messages: &mut Vec<Vec<u8>>) -> bool {
        while let Some(event) = self.peer.poll_event() {
            if let raknet::Event::Connected { id, .. } = event {
                self.id = Some(id);
            } else if let raknet::Event::Message { message, .. } = event {
                messages.push(message.to_vec()[1..].to_vec());
            } else {
                panic!("{event:?}");
            }
        }
        self.id.is_some()
    }
}

macro_rules! machine {
    ($type:ty) => {
        impl Machine for $type {
            fn handle_datagram(&mut self, now: Instant, from: std::net::SocketAddr, datagram: &[u8]) {
                self.peer.handle_datagram(now, from, datagram);
            }

            fn handle_timeout(&mut self, now: Instant) {
                self.peer.handle_timeout(now);
            }

            fn poll_transmit<'b>(
                &mut self,
                now: Instant,
                buffer: &'b mut [u8],
            ) -> Option<rakwire::Transmit<'b>> {
                self.peer.poll_transmit(now, buffer)
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.peer.poll_timeout()
            }
        }
    };
}

machine!(Game);
machine!(RakNet);

/// A client and a server, connected by a transport over a simulated network.
pub(crate) struct Play<E: End> {
    pub(crate) pair: Pair<E, E>,
    pub(crate) server: Server<u8>,
    client: Client,
    pub(crate) view: Box<View<MAX_ENTITIES>>,
    /// The ticks of the received snapshots.
    pub(crate) shown: Vec<u32>,
    /// True if the path may be too slow for all messages.
    pub(crate) is_slow: bool,
    prediction: Option<Prediction>,
    corrections: Vec<f32>,
    ahead: f32,
}

impl<E: End> Play<E> {
    pub(crate) fn new(client: E, server: E, one_way: Duration, scope: Scope, seed: u64) -> Self {
        let conditions = Conditions { latency: one_way, ..Conditions::default() };
        let mut pair = Pair::new(client, server, conditions, seed);
        pair.a.connect(pair.now, pair.b_address);
        while !(pair.a.receive(&mut Vec::new()) && pair.b.receive(&mut Vec::new())) {
            assert!(
                pair.step() && pair.now < Instant::ZERO + Duration::from_secs(5),
                "the peers have not connected"
            );
        }
        let mut client = Client::with_scope(scope);
        client.handle_connected();
        let mut server = Server::new(seed);
        server.handle_connected(0).expect("a free slot");
        let view = Box::new(View::new());
        let (corrections, shown) = (Vec::new(), Vec::new());
        Self { pair, server, client, view, shown, is_slow: false, prediction: None, corrections, ahead: 0.0 }
    }

    /// Runs the network until `end`.
    pub(crate) fn run_to(&mut self, end: Instant) {
        loop {
            self.pair.transmit();
            let deliveries = [self.pair.forth().next_arrival(), self.pair.back().next_arrival()];
            let timeouts = [self.pair.a.poll_timeout(), self.pair.b.poll_timeout()];
            if deliveries.into_iter().chain(timeouts).flatten().min().is_none_or(|next| next > end) {
                self.pair.now = end;
                return;
            }
            self.pair.step();
        }
    }

    pub(crate) fn tick(&mut self) {
        let now = self.pair.now;
        let mut messages = Vec::new();
        self.pair.b.receive(&mut messages);
        messages.iter().for_each(|message| self.server.handle_message(0, &message.as_slice()));
        self.server.tick();
        let mut buffer = vec![0; MAX_MESSAGE];
        while let Some(Output::Send { payload, delivery, .. }) = self.server.poll_output(&mut buffer) {
            assert!(self.pair.b.send(now, payload, delivery) || self.is_slow, "the queue must have space");
        }
    }

    pub(crate) fn frame(&mut self, movement: Direction) {
        let now = self.pair.now;
        let mut messages = Vec::new();
        self.pair.a.receive(&mut messages);
        messages.iter().for_each(|message| self.take(now, message));
        self.client.handle_frame(now, Input { movement, ..Input::default() });
        let predicted = self.prediction.as_mut().and_then(|prediction| prediction.handle_frame(movement));
        let reported = self.client.player().and_then(|player| Some(self.view.player(player)?.1.position));
        if let (Some(predicted), Some(reported)) = (predicted, reported) {
            self.ahead = self.ahead.max((predicted - reported).length());
        }
        let mut buffer = [0; 64];
        while let Some((delivery, message)) = self.client.poll_message(&mut buffer) {
            assert!(self.pair.a.send(now, message, delivery) || self.is_slow, "the queue must have space");
        }
    }

    fn take(&mut self, now: Instant, message: &[u8]) {
        match self.client.handle_message(now, &message).expect("a valid message from the server") {
            Update::Joined { player, entities } => {
                self.view.update(&entities);
                let mut prediction = Prediction::new(player);
                prediction.handle_snapshot(0, self.view.entities().iter().copied());
                self.prediction = Some(prediction);
            }
            Update::Snapshot { time, entities, scope } => {
                self.view.take(time, &entities, scope);
                self.shown.push(time);
                let entities = self.view.entities().iter().copied();
                let prediction = self.prediction.as_mut().expect("the player has joined");
                self.corrections.push(prediction.handle_snapshot(time, entities));
            }
            Update::Over(_) | Update::Pong { .. } | Update::Rejected(_) | Update::Ignored => {}
        }
    }
}

/// Simulates random walks among the trees for half a minute.
fn walk<E: End>(client: E, server: E, one_way: Duration, scope: Scope, seed: u64) {
    let mut play = Play::new(client, server, one_way, scope, seed);
    let start = play.pair.now;
    let (mut dice, mut movement, mut left) = (seed as u32, Direction::NONE, 0);
    let mut roll = |sides: u32| {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (dice >> 8) % sides
    };
    let phase = Duration::from_micros(u64::from(roll(16_000)));
    for tick in 0..FRAMES {
        play.run_to(start + TICK * tick);
        play.tick();
        if left == 0 {
            left = 5 + roll(40);
            movement = WAYS[roll(5) as usize] | WAYS[roll(5) as usize];
        }
        left -= 1;
        play.run_to(start + TICK * tick + phase);
        play.frame(movement);
    }
    let worst = play.corrections.iter().copied().fold(0.0, f32::max);
    assert!(play.corrections.len() > 800, "{} snapshots", play.corrections.len());
    let thinned = play.server.stats().thinned;
    assert!(worst < 0.1, "{worst} with {scope:?}, {one_way:?} each way, seed {seed}, {thinned} skipped");
    assert!(play.ahead > 4.0 * one_way.as_secs_f32(), "only {} ahead of the server", play.ahead);
}

/// The one-way latencies; the round-trip times are 100 ms and 200 ms.
const LATENCIES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(100)];

#[test]
fn corrections_stay_under_a_tenth_of_a_tile_over_the_game_protocol() {
    for latency in LATENCIES {
        for scope in [Scope::Whole, Scope::Changes] {
            (1..4).for_each(|seed| walk(Game::new(0), Game::new(1), latency, scope, seed));
        }
    }
}

#[test]
fn corrections_stay_under_a_tenth_of_a_tile_over_raknet() {
    for latency in LATENCIES {
        for scope in [Scope::Whole, Scope::Changes] {
            (1..4).for_each(|seed| walk(RakNet::new(0), RakNet::new(1), latency, scope, seed));
        }
    }
}

//! A RakNet flow that competes with a CUBIC flow (RFC 9438) on simulated paths, in virtual time.
//!
//! This command prints the table in docs/congestion.md: `cargo test -p rakwire --test it cubic_flow -- --nocapture
//! --test-threads 1`

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::{Capacity, Config, CongestionControl, Delivery, Event, Peer};
use rakwire::sim::{Conditions, Dumbbell};
use rakwire::{Instant, Machine, Transmit};

use CongestionControl::{DelayBased, NewReno};

use crate::support::cubic::{self, CubicReceiver, CubicSender};

/// The length of a message that fills a datagram.
const MESSAGE: usize = 1_400;

/// One endpoint of a flow.
enum End<C> {
    RakNet(Box<Peer<'static>>),
    Cubic(C),
}

impl<C: Machine> Machine for End<C> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        match self {
            Self::RakNet(peer) => peer.handle_datagram(now, from, datagram),
            Self::Cubic(cubic) => cubic.handle_datagram(now, from, datagram),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::RakNet(peer) => peer.handle_timeout(now),
            Self::Cubic(cubic) => cubic.handle_timeout(now),
        }
    }

    fn poll_transmit<'b>(&mut self, now: Instant, buffer: &'b mut [u8]) -> Option<Transmit<'b>> {
        match self {
            Self::RakNet(peer) => peer.poll_transmit(now, buffer),
            Self::Cubic(cubic) => cubic.poll_transmit(now, buffer),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::RakNet(peer) => peer.poll_timeout(),
            Self::Cubic(cubic) => cubic.poll_timeout(),
        }
    }
}

/// A RakNet flow and a CUBIC flow through one bottleneck, each with its own start time.
struct Race {
    net: Dumbbell<End<CubicSender>, End<CubicReceiver>>,
    start: Instant,
    raknet_starts: Duration,
    /// The payload bytes of delivered RakNet messages.
    raknet_bytes: u64,
}

impl Race {
    fn new(conditions: Conditions, control: CongestionControl, starts: [Duration; 2]) -> Self {
        let mut net = Dumbbell::new(conditions, 1);
        let [raknet_starts, cubic_starts] = starts;
        let peer = |number, incoming| {
            let mut config = Config::new([number; 32]);
            (config.max_incoming, config.congestion_control) = (incoming, control);
            Peer::with_capacity(Capacity { connections: 1, blocks: 65_536, block_size: 512 }, config)
        };
        net.join(End::RakNet(peer(1, 0).into()), End::RakNet(peer(2, 1).into()));
        let start = net.now;
        // Each machine of a pair reaches only the other machine, at this address.
        let [from, to] = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 2)));
        let sender = CubicSender::new(to, start + cubic_starts);
        net.join(End::Cubic(sender), End::Cubic(CubicReceiver::new(from)));
        Self { net, start, raknet_starts, raknet_bytes: 0 }
    }

    /// Keeps the send queue of the RakNet flow full.
    fn drive(&mut self) {
        let now = self.net.now;
        let Some(ends) = self.net.pairs_mut().first_mut() else { return };
        let (End::RakNet(sender), End::RakNet(receiver)) = (&mut ends.a, &mut ends.b) else { return };
        if now.saturating_since(self.start) >= self.raknet_starts && sender.connections().count() == 0 {
            sender.connect(now, ends.b_address).expect("a free slot");
        }
        while sender.poll_event().is_some() {}
        while let Some(event) = receiver.poll_event() {
            if let Event::Message { message, .. } = event {
                self.raknet_bytes += message.len() as u64;
            }
        }
        let Some(id) = sender.connections().next() else { return };
        let sent =
            |sender: &Peer<'_>| sender.connection_stats(id).map_or(u64::MAX, |stats| stats.messages_sent);
        while sent(sender).saturating_mul(MESSAGE as u64) < self.raknet_bytes + 4_000_000 {
            if sender.send(now, id, &[0x86; MESSAGE], Delivery::RELIABLE_ORDERED).is_err() {
                return;
            }
        }
    }

    fn until(&mut self, time: Duration) {
        while self.net.now.saturating_since(self.start) < time {
            self.drive();
            assert!(self.net.step(), "the simulation has no further event");
        }
    }

    /// Returns the payload bytes delivered by the RakNet flow and by the CUBIC flow.
    fn arrived(&self) -> [f64; 2] {
        let datagrams = self.net.pairs().iter().find_map(|ends| match &ends.b {
            End::Cubic(receiver) => Some(receiver.arrived),
            End::RakNet(_) => None,
        });
        [self.raknet_bytes as f64, datagrams.unwrap_or(0) as f64 * MESSAGE as f64]
    }

    /// Returns the bits per second of both flows over a minute, after the first 3 s, and the mean queueing delay.
    fn run(mut self) -> ([f64; 2], Duration) {
        self.until(Duration::from_secs(3));
        let before = self.arrived();
        self.net.forth().take_stats();
        self.until(Duration::from_secs(63));
        let [raknet, cubic] = [0, 1].map(|flow| (self.arrived()[flow] - before[flow]) * 8.0 / 60.0);
        ([raknet, cubic], self.net.forth().take_stats().mean_queueing_delay())
    }
}

/// The start times of the RakNet flow and the CUBIC flow, in milliseconds.
const STARTS: [[u64; 2]; 3] = [[0, 0], [0, 3_000], [3_000, 0]];

/// Returns the RakNet flow's fraction of the bandwidth against a CUBIC flow at 20 Mbit/s, for each of [`STARTS`].
fn shares(control: CongestionControl, round_trip: u64, queue: u64) -> Vec<f64> {
    let millis = Duration::from_millis;
    let conditions = Conditions::bottlenecked(millis(round_trip), 20_000_000, millis(queue));
    let share = |starts: &[u64; 2]| {
        let ([raknet, cubic], queueing) = Race::new(conditions, control, starts.map(millis)).run();
        let share = raknet / (raknet + cubic);
        println!(
            "{control:?} beside CUBIC {starts:?} ms, {round_trip} ms, queue of {queue} ms: {:.1} % of {:.2} Mbit/s, \
             queue mean {:.1} ms",
            share * 100.0,
            (raknet + cubic) / 1e6,
            queueing.as_secs_f64() * 1e3,
        );
        share
    };
    STARTS.iter().map(share).collect()
}

/// Each flow gets at least a tenth of the bandwidth.
#[test]
fn a_raknet_flow_and_a_cubic_flow_do_not_starve_each_other() {
    for (round_trip, queue) in
        [(20, 25), (20, 50), (20, 200), (50, 25), (50, 50), (50, 200), (100, 50), (100, 200)]
    {
        for control in [DelayBased, NewReno] {
            let shares = shares(control, round_trip, queue);
            assert!(shares.iter().all(|share| (0.1..=0.9).contains(share)), "{control:?}: {shares:?}");
        }
    }
}

/// Validates the CUBIC model of the tests: a single flow must fill the path.
#[test]
fn a_cubic_flow_alone_fills_a_path() {
    let millis = Duration::from_millis;
    let conditions = Conditions::bottlenecked(millis(50), 20_000_000, millis(50));
    let never = Duration::from_secs(1_000);
    let ([raknet, cubic], _) = Race::new(conditions, NewReno, [never, Duration::ZERO]).run();
    let path = 20e6 * MESSAGE as f64 / (cubic::DATAGRAM + 28) as f64;
    assert!(raknet == 0.0 && cubic > 0.95 * path, "CUBIC reached {cubic} of {path} bit/s");
}

//! A simulated network between an endpoint and its socket, and its textual description (feature `sim`).

use std::collections::VecDeque;
use std::net::SocketAddr;

use rakwire::Instant;

#[cfg(not(feature = "sim"))]
pub(crate) use self::absent::{NetworkEmulator, Simulation};
#[cfg(feature = "sim")]
pub(crate) use self::present::NetworkEmulator;
#[cfg(feature = "sim")]
pub use self::present::{Simulation, SimulationSyntaxError};

/// The direction of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A datagram that has passed the simulated network.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub(crate) at: Instant,
    pub(crate) address: SocketAddr,
    pub(crate) bytes: Box<[u8]>,
}

/// A simulated network in both directions, for a driver that accesses it from a single thread.
#[derive(Debug)]
pub(crate) struct BothWays {
    pub(crate) incoming: NetworkEmulator,
    pub(crate) outgoing: NetworkEmulator,
    /// Outgoing datagrams that have left the network.
    delivered: VecDeque<Delivered>,
}

impl BothWays {
    pub(crate) fn new(simulation: Simulation) -> Self {
        let [incoming, outgoing] =
            [Direction::In, Direction::Out].map(|direction| NetworkEmulator::new(simulation, direction));
        Self { incoming, outgoing, delivered: VecDeque::new() }
    }

    /// Returns the time at which the next datagram leaves the network.
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.incoming.next(), self.outgoing.next()].into_iter().flatten().min()
    }

    /// Returns the next outgoing datagram that has left the network by `now`.
    pub(crate) fn next_outgoing(&mut self, now: Instant) -> Option<Delivered> {
        if self.delivered.is_empty() {
            self.delivered.extend(self.outgoing.receive(now));
        }
        self.delivered.pop_front()
    }
}

/// The simulated network.
#[cfg(feature = "sim")]
mod present {
    use std::collections::HashMap;
    use std::str::FromStr;
    use std::time::Duration;

    use rakwire::sim::{Conditions, Link};

    use super::{Delivered, Direction, Instant, SocketAddr};

    /// Maximum number of addresses with datagrams in transit; datagrams of further addresses are dropped.
    const MAX_LINKS: usize = 4_096;
    /// The number of links above which links without datagrams in transit are removed.
    const IDLE_LINKS: usize = 64;

    /// A simulated lossy network between an endpoint and its socket, equal in both directions and for all addresses.
    ///
    /// A simulation is parsed from text such as `loss=5%,latency=50ms,jitter=10ms,duplicate=1%,reorder=2%,seed=7`; all
    /// parts are optional. Probabilities are percentages or numbers from 0 to 1. Times have a unit (`us`, `ms` or `s`)
    /// and apply to one direction. The same seed produces the same effects on the same datagrams.
    ///
    /// ```
    /// use rakwire_native::Simulation;
    ///
    /// let simulation: Simulation = "loss=5%,latency=50ms,seed=7".parse()?;
    /// assert_eq!((simulation.conditions.loss, simulation.seed), (0.05, 7));
    /// assert!("loss=101%".parse::<Simulation>().is_err());
    /// # Ok::<(), rakwire_native::SimulationSyntaxError>(())
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Simulation {
        /// The conditions in each direction.
        pub conditions: Conditions,
        /// The seed of the random numbers.
        pub seed: u64,
    }

    /// A syntax error in a [`Simulation`].
    ///
    /// ```
    /// use rakwire_native::Simulation;
    ///
    /// let error = "loss=5%,rain=5%".parse::<Simulation>().unwrap_err();
    /// assert!(error.to_string().starts_with("\"rain=5%\""));
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("{part:?}: {problem}")]
    pub struct SimulationSyntaxError {
        part: String,
        problem: &'static str,
    }

    const FORM: &str = "write loss, duplicate, reorder, latency, jitter or seed, and a value after =";

    impl FromStr for Simulation {
        type Err = SimulationSyntaxError;

        fn from_str(text: &str) -> Result<Self, SimulationSyntaxError> {
            let mut simulation = Self::default();
            for part in text.split(',').map(str::trim) {
                let set =
                    part.split_once('=').ok_or(FORM).and_then(|(key, value)| simulation.set(key, value));
                set.map_err(|problem| SimulationSyntaxError { part: part.to_owned(), problem })?;
            }
            Ok(simulation)
        }
    }

    impl Simulation {
        fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
            let conditions = &mut self.conditions;
            match key {
                "loss" => conditions.loss = probability(value)?,
                "duplicate" => conditions.duplication = probability(value)?,
                "reorder" => conditions.reordering = probability(value)?,
                "latency" => conditions.latency = time(value)?,
                "jitter" => conditions.jitter = time(value)?,
                "seed" => self.seed = value.parse().map_err(|_| "a seed is a whole number")?,
                _ => return Err(FORM),
            }
            Ok(())
        }
    }

    /// Parses a probability, such as 5% or 0.05.
    fn probability(text: &str) -> Result<f64, &'static str> {
        const PROBLEM: &str = "a probability is a number from 0% to 100%, or from 0 to 1";
        let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let probability = number.parse::<f64>().map_err(|_| PROBLEM)? / whole;
        if (0.0..=1.0).contains(&probability) { Ok(probability) } else { Err(PROBLEM) }
    }

    /// Parses a time of at most a minute, such as 50ms.
    fn time(text: &str) -> Result<Duration, &'static str> {
        const PROBLEM: &str = "a time is a number with us, ms or s, at most a minute";
        let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        let found = units.iter().find_map(|(unit, length)| Some((text.strip_suffix(unit)?, length)));
        let (number, unit) = found.ok_or(PROBLEM)?;
        let seconds = number.parse::<f64>().map_err(|_| PROBLEM)? * unit;
        if (0.0..=60.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(PROBLEM) }
    }

    /// One direction of a simulated network: a link for each address, with the same conditions and its own random numbers.
    #[derive(Debug)]
    pub(crate) struct NetworkEmulator {
        simulation: Simulation,
        links: HashMap<SocketAddr, Link>,
        /// The number of links at which links without datagrams in transit are removed.
        most: usize,
        seed: u64,
    }

    impl NetworkEmulator {
        pub(crate) fn new(simulation: Simulation, direction: Direction) -> Self {
            // The two directions must use different random numbers, or they would lose the same datagrams.
            let seed = simulation.seed.wrapping_mul(2).wrapping_add(u64::from(direction == Direction::In));
            Self { simulation, links: HashMap::new(), most: IDLE_LINKS, seed }
        }

        /// Sends a datagram into the network.
        pub(crate) fn send(&mut self, now: Instant, address: SocketAddr, datagram: &[u8]) {
            if let Some(link) = self.links.get_mut(&address) {
                link.send(now, datagram);
                return;
            }
            if self.links.len() >= self.most {
                self.links.retain(|_, link| link.next_arrival().is_some());
                // The cost of this search is shared by as many new addresses as there are links.
                self.most = (2 * self.links.len()).clamp(IDLE_LINKS, MAX_LINKS);
            }
            if self.links.len() < MAX_LINKS {
                let mut link = Link::new(self.simulation.conditions, self.seed);
                self.seed = self.seed.wrapping_add(2);
                link.send(now, datagram);
                self.links.insert(address, link);
            }
        }

        /// Returns the time at which the next datagram leaves the network.
        pub(crate) fn next(&self) -> Option<Instant> {
            self.links.values().filter_map(Link::next_arrival).min()
        }

        /// Returns the datagrams that have left the network by `now`, in order of time.
        pub(crate) fn receive(&mut self, now: Instant) -> Vec<Delivered> {
            let mut delivered = Vec::new();
            for (address, link) in &mut self.links {
                while let Some(at) = link.next_arrival().filter(|at| *at <= now) {
                    let bytes = link.receive(now).unwrap_or_default();
                    delivered.push(Delivered { at, address: *address, bytes });
                }
            }
            delivered.sort_by_key(|datagram| datagram.at);
            delivered
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn all_simulated_conditions_are_parsed() {
            let text = "loss=5%, latency=50ms,jitter=500us,duplicate=1%,reorder=0.02,seed=9";
            let Simulation { conditions, seed } = text.parse().expect("a simulation");
            assert_eq!((conditions.loss, conditions.duplication, conditions.reordering), (0.05, 0.01, 0.02));
            assert_eq!(conditions.latency, Duration::from_millis(50));
            assert_eq!((conditions.jitter, seed), (Duration::from_micros(500), 9));
            assert_eq!(
                "latency=2s".parse::<Simulation>().map(|read| read.conditions.latency.as_secs()),
                Ok(2)
            );
        }

        #[test]
        fn simulation_syntax_errors_are_one_line() {
            for text in [
                "",
                "loss",
                "loss=",
                "loss=-1%",
                "loss=101%",
                "loss=NaN",
                "latency=50",
                "latency=1h",
                "latency=61s",
                "jitter=-1ms",
                "seed=x",
                "rain=1%",
                "loss=1%,,seed=1",
            ] {
                let error = text.parse::<Simulation>().expect_err(text);
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
        }

        fn emulator(text: &str) -> NetworkEmulator {
            NetworkEmulator::new(text.parse().expect("a simulation"), Direction::Out)
        }

        fn address(port: u16) -> SocketAddr {
            ([127, 0, 0, 1], port).into()
        }

        #[test]
        fn datagrams_are_delayed_and_keep_their_addresses() {
            let mut network = emulator("latency=10ms");
            let start = Instant::from_micros(1_000);
            for port in [3, 1, 2] {
                network.send(start + Duration::from_micros(port.into()), address(port), &[port as u8]);
            }
            let first = start + Duration::from_micros(10_001);
            assert_eq!(network.next(), Some(first));
            assert_eq!(network.receive(start + Duration::from_millis(10)), []);
            let ports: Vec<u16> = network
                .receive(start + Duration::from_secs(1))
                .iter()
                .map(|datagram| {
                    assert_eq!(datagram.bytes[0], datagram.address.port() as u8);
                    datagram.address.port()
                })
                .collect();
            assert_eq!(ports, [1, 2, 3]);
            assert_eq!(network.next(), None);
        }

        #[test]
        fn idle_simulated_links_are_replaced() {
            let mut network = emulator("latency=1s");
            for port in 0..MAX_LINKS as u16 + 9 {
                network.send(Instant::ZERO, address(port), &[0]);
            }
            let end = Instant::from_micros(2_000_000);
            assert_eq!(network.receive(end).len(), MAX_LINKS);
            network.send(end, address(9), &[0]);
            network.send(end, address(60_000), &[0]);
            assert_eq!(network.links.len(), 2);
        }

        #[test]
        fn memory_does_not_grow_with_addresses_that_send_no_more() {
            let mut network = emulator("latency=1ms");
            for port in 0..20 * IDLE_LINKS as u16 {
                let now = Instant::from_micros(u64::from(port) * 10_000);
                network.send(now, address(port), &[0]);
                assert_eq!(network.receive(now + Duration::from_millis(5)).len(), 1);
                assert!(network.links.len() <= IDLE_LINKS, "{}", network.links.len());
            }
        }
    }
}

/// Empty types in place of those of a simulated network.
#[cfg(not(feature = "sim"))]
mod absent {
    use super::{Delivered, Direction, Instant, SocketAddr};

    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Simulation {}

    #[derive(Debug)]
    pub(crate) enum NetworkEmulator {}

    #[expect(
        clippy::needless_pass_by_ref_mut,
        reason = "the methods have the signatures of the simulated network"
    )]
    impl NetworkEmulator {
        pub(crate) const fn new(simulation: Simulation, _: Direction) -> Self {
            match simulation {}
        }

        pub(crate) const fn send(&mut self, _: Instant, _: SocketAddr, _: &[u8]) {
            match *self {}
        }

        pub(crate) const fn next(&self) -> Option<Instant> {
            match *self {}
        }

        pub(crate) const fn receive(&mut self, _: Instant) -> Vec<Delivered> {
            match *self {}
        }
    }
}

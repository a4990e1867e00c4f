//! A seeded network in memory that loses, delays, duplicates and reorders datagrams.
//!
//! A [`Link`] is one direction of a path. It uses no clock and no socket. A test can put it between two machines in
//! virtual time, and a real driver can put it between its machine and its socket.
//!
//! - A [`Pair`] connects two machines by two links and advances the time to the next event.
//! - A [`Dumbbell`] connects several pairs by one shared link in each direction, so that they compete for its
//!   [`Bottleneck`].
//! - A [`Nat`] translates the addresses of datagrams.

mod link;
mod nat;

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::machine::Machine;
use crate::time::Instant;

pub use link::{Bottleneck, Conditions, GilbertElliott, Link, LinkStats};
pub use nat::{Filtering, Mapping, Nat, NatBehavior};

/// Two machines connected by two links, under one virtual clock.
///
/// ```
/// use rakwire::raknet::{Capacity, Config, Event, Peer};
/// use rakwire::sim::{Conditions, Pair};
///
/// let mut server = Config::new([1; 32]);
/// server.max_incoming = 1;
/// let client = Peer::with_capacity(Capacity::default(), Config::new([2; 32]));
/// let mut pair = Pair::new(client, Peer::with_capacity(Capacity::default(), server), Conditions::default(), 7);
/// pair.a.connect(pair.now, pair.b_address)?;
/// let connected = loop {
///     if let Some(Event::Connected { .. }) = pair.a.poll_event() {
///         break true;
///     }
///     if !pair.step() {
///         break false;
///     }
/// };
/// assert!(connected);
/// # Ok::<(), rakwire::raknet::ConnectError>(())
/// ```
#[derive(Debug)]
pub struct Pair<A, B> {
    /// The virtual time.
    pub now: Instant,
    /// The first machine.
    pub a: A,
    /// The second machine.
    pub b: B,
    /// The address of `a`, as seen by `b`.
    pub a_address: SocketAddr,
    /// The address of `b`, as seen by `a`.
    pub b_address: SocketAddr,
    a_to_b: Link,
    b_to_a: Link,
}

impl<A: Machine, B: Machine> Pair<A, B> {
    /// Connects two machines by two links with the same conditions and different seeds.
    #[must_use]
    pub fn new(a: A, b: B, conditions: Conditions, seed: u64) -> Self {
        Self {
            now: Instant::from_micros(1_000_000),
            a,
            b,
            a_address: SocketAddr::from(([192, 0, 2, 1], 1)),
            b_address: SocketAddr::from(([192, 0, 2, 2], 2)),
            a_to_b: Link::new(conditions, seed.wrapping_mul(2)),
            b_to_a: Link::new(conditions, seed.wrapping_mul(2).wrapping_add(1)),
        }
    }

    /// Sends all datagrams that both machines have to send.
    pub fn transmit(&mut self) {
        transmit(self.now, &mut self.a, &mut self.a_to_b, 0, self.b_address);
        transmit(self.now, &mut self.b, &mut self.b_to_a, 0, self.a_address);
    }

    /// Sends all datagrams of both machines, then advances the clock to the next event and handles it.
    ///
    /// Returns false when no event is left.
    pub fn step(&mut self) -> bool {
        self.transmit();
        let next = [
            self.a.poll_timeout(),
            self.b.poll_timeout(),
            self.a_to_b.next_arrival(),
            self.b_to_a.next_arrival(),
        ];
        let Some(next) = next.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(datagram) = self.a_to_b.receive(self.now) {
            self.b.handle_datagram(self.now, self.a_address, &datagram);
        }
        while let Some(datagram) = self.b_to_a.receive(self.now) {
            self.a.handle_datagram(self.now, self.b_address, &datagram);
        }
        wake(self.now, &mut self.a);
        wake(self.now, &mut self.b);
        true
    }

    /// Changes the conditions of both directions for datagrams sent from then on.
    pub const fn set_conditions(&mut self, conditions: Conditions) {
        self.a_to_b.set_conditions(conditions);
        self.b_to_a.set_conditions(conditions);
    }

    /// Returns the link from `a` to `b`.
    pub const fn forth(&mut self) -> &mut Link {
        &mut self.a_to_b
    }

    /// Returns the link from `b` to `a`.
    pub const fn back(&mut self) -> &mut Link {
        &mut self.b_to_a
    }
}

/// A pair of machines in a [`Dumbbell`].
#[derive(Debug)]
pub struct Ends<A, B> {
    /// The first machine.
    pub a: A,
    /// The second machine.
    pub b: B,
    /// The address of `a`, as seen by `b`.
    pub a_address: SocketAddr,
    /// The address of `b`, as seen by `a`.
    pub b_address: SocketAddr,
}

/// Any number of pairs of machines that share one link in each direction, under one virtual clock.
///
/// Use it to measure how competing flows share a bottleneck.
///
/// ```
/// use core::time::Duration;
/// use rakwire::raknet::{Capacity, Config, Peer};
/// use rakwire::sim::{Bottleneck, Conditions, Dumbbell};
///
/// let shared = Bottleneck::with_queue_of(20_000_000, Duration::from_millis(50));
/// let latency = Duration::from_millis(25);
/// let conditions = Conditions { latency, bottleneck: Some(shared), ..Conditions::default() };
/// let mut dumbbell = Dumbbell::new(conditions, 7);
/// for number in 1..=4 {
///     let mut server = Config::new([100 + number; 32]);
///     server.max_incoming = 1;
///     let client = Peer::with_capacity(Capacity::default(), Config::new([number; 32]));
///     dumbbell.join(client, Peer::with_capacity(Capacity::default(), server));
/// }
/// let now = dumbbell.now;
/// for ends in dumbbell.pairs_mut() {
///     ends.a.connect(now, ends.b_address)?;
/// }
/// while dumbbell.now < now + Duration::from_millis(500) && dumbbell.step() {}
/// assert!(dumbbell.pairs().iter().all(|ends| ends.b.connections().count() == 1));
/// # Ok::<(), rakwire::raknet::ConnectError>(())
/// ```
#[derive(Debug)]
pub struct Dumbbell<A, B> {
    /// The virtual time.
    pub now: Instant,
    pairs: Vec<Ends<A, B>>,
    forth: Link,
    back: Link,
}

impl<A: Machine, B: Machine> Dumbbell<A, B> {
    /// Creates a dumbbell without pairs; the two links have the same conditions and different seeds.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            now: Instant::from_micros(1_000_000),
            pairs: Vec::new(),
            forth: Link::new(conditions, seed.wrapping_mul(2)),
            back: Link::new(conditions, seed.wrapping_mul(2).wrapping_add(1)),
        }
    }

    /// Adds a pair, with `a` on one side and `b` on the other. A machine reaches only the other machine of its pair.
    pub fn join(&mut self, a: A, b: B) {
        let port = u16::try_from(self.pairs.len() + 1).unwrap_or(u16::MAX);
        let a_address = SocketAddr::from(([192, 0, 2, 1], port));
        let b_address = SocketAddr::from(([192, 0, 2, 2], port));
        self.pairs.push(Ends { a, b, a_address, b_address });
    }

    /// Returns the pairs, in the order of [`join`](Self::join).
    #[must_use]
    pub fn pairs(&self) -> &[Ends<A, B>] {
        &self.pairs
    }

    /// Returns the pairs mutably, in the order of [`join`](Self::join).
    pub fn pairs_mut(&mut self) -> &mut [Ends<A, B>] {
        &mut self.pairs
    }

    /// Returns the shared link from every `a` to its `b`.
    pub const fn forth(&mut self) -> &mut Link {
        &mut self.forth
    }

    /// Returns the shared link from every `b` to its `a`.
    pub const fn back(&mut self) -> &mut Link {
        &mut self.back
    }

    /// Sends all datagrams of all machines, then advances the clock to the next event and handles it.
    ///
    /// Returns false when no event is left.
    pub fn step(&mut self) -> bool {
        let mut next = None;
        for (flow, ends) in self.pairs.iter_mut().enumerate() {
            transmit(self.now, &mut ends.a, &mut self.forth, flow, ends.b_address);
            transmit(self.now, &mut ends.b, &mut self.back, flow, ends.a_address);
            next = earliest(next, earliest(ends.a.poll_timeout(), ends.b.poll_timeout()));
        }
        next = earliest(next, earliest(self.forth.next_arrival(), self.back.next_arrival()));
        let Some(next) = next else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some((flow, datagram)) = self.forth.receive_of(self.now) {
            if let Some(ends) = self.pairs.get_mut(flow) {
                ends.b.handle_datagram(self.now, ends.a_address, &datagram);
            }
        }
        while let Some((flow, datagram)) = self.back.receive_of(self.now) {
            if let Some(ends) = self.pairs.get_mut(flow) {
                ends.a.handle_datagram(self.now, ends.b_address, &datagram);
            }
        }
        for ends in &mut self.pairs {
            wake(self.now, &mut ends.a);
            wake(self.now, &mut ends.b);
        }
        true
    }
}

fn earliest(left: Option<Instant>, right: Option<Instant>) -> Option<Instant> {
    [left, right].into_iter().flatten().min()
}

/// Sends the datagrams of a machine. Datagrams to any address other than `peer` are lost.
fn transmit(now: Instant, machine: &mut impl Machine, link: &mut Link, flow: usize, peer: SocketAddr) {
    let mut buffer = [0; 2048];
    while let Some(transmit) = machine.poll_transmit(now, &mut buffer) {
        if transmit.to == peer {
            link.send_of(now, flow, transmit.payload);
        }
    }
}

fn wake(now: Instant, machine: &mut impl Machine) {
    if machine.poll_timeout().is_some_and(|at| at <= now) {
        machine.handle_timeout(now);
    }
}

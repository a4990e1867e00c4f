//! Many machines that share a path.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::drive::{transmit, wake};
use super::{Conditions, Link};
use crate::machine::Machine;
use crate::time::Instant;

/// One pair of a [`Dumbbell`].
#[derive(Debug)]
pub struct Ends<A, B> {
    /// One machine.
    pub a: A,
    /// The other machine.
    pub b: B,
    /// Where `b` sees `a`.
    pub a_address: SocketAddr,
    /// Where `a` sees `b`.
    pub b_address: SocketAddr,
}

/// Any number of pairs of machines that share one link each way, under one virtual clock: how flows get along with each
/// other.
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
    /// The time.
    pub now: Instant,
    pairs: Vec<Ends<A, B>>,
    forth: Link,
    back: Link,
}

impl<A: Machine, B: Machine> Dumbbell<A, B> {
    /// Two links with the same conditions and different luck, and nobody at their ends.
    #[must_use]
    pub fn new(conditions: Conditions, seed: u64) -> Self {
        Self {
            now: Instant::from_micros(1_000_000),
            pairs: Vec::new(),
            forth: Link::new(conditions, seed.wrapping_mul(2)),
            back: Link::new(conditions, seed.wrapping_mul(2).wrapping_add(1)),
        }
    }

    /// Adds a pair. All `a` are at one side, all `b` at the other; only the two of a pair reach each other.
    pub fn join(&mut self, a: A, b: B) {
        let port = u16::try_from(self.pairs.len() + 1).unwrap_or(u16::MAX);
        let a_address = SocketAddr::from(([192, 0, 2, 1], port));
        let b_address = SocketAddr::from(([192, 0, 2, 2], port));
        self.pairs.push(Ends { a, b, a_address, b_address });
    }

    /// The pairs in the order in which they joined.
    #[must_use]
    pub fn pairs(&self) -> &[Ends<A, B>] {
        &self.pairs
    }

    /// The pairs in the order in which they joined.
    pub fn pairs_mut(&mut self) -> &mut [Ends<A, B>] {
        &mut self.pairs
    }

    /// The link from every `a` to its `b`.
    pub const fn forth(&mut self) -> &mut Link {
        &mut self.forth
    }

    /// The link from every `b` to its `a`.
    pub const fn back(&mut self) -> &mut Link {
        &mut self.back
    }

    /// Puts what all have to send on its way, moves the clock to what happens next and lets it happen. False when
    /// nothing ever will.
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

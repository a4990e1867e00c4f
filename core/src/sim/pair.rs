//! Two machines and the path between them.

use core::net::SocketAddr;

use super::drive::{transmit, wake};
use super::{Conditions, Link};
use crate::machine::Machine;
use crate::time::Instant;

/// Two machines, joined by two links, under one virtual clock.
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
    /// The time.
    pub now: Instant,
    /// One machine.
    pub a: A,
    /// The other machine.
    pub b: B,
    /// Where `b` sees `a`.
    pub a_address: SocketAddr,
    /// Where `a` sees `b`.
    pub b_address: SocketAddr,
    a_to_b: Link,
    b_to_a: Link,
}

impl<A: Machine, B: Machine> Pair<A, B> {
    /// Joins two machines by two links with the same conditions and different luck.
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

    /// Puts what both have to send on its way.
    pub fn transmit(&mut self) {
        transmit(self.now, &mut self.a, &mut self.a_to_b, 0, self.b_address);
        transmit(self.now, &mut self.b, &mut self.b_to_a, 0, self.a_address);
    }

    /// Puts what both have to send on its way, moves the clock to what happens next and lets it happen. False when
    /// nothing ever will.
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

    /// Changes the conditions of both directions for what is sent from now on.
    pub const fn set_conditions(&mut self, conditions: Conditions) {
        self.a_to_b.set_conditions(conditions);
        self.b_to_a.set_conditions(conditions);
    }

    /// The direction from `a` to `b`.
    pub const fn forth(&mut self) -> &mut Link {
        &mut self.a_to_b
    }

    /// The direction from `b` to `a`.
    pub const fn back(&mut self) -> &mut Link {
        &mut self.b_to_a
    }
}

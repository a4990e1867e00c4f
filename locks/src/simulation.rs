//! A stand-in for the network simulator, which the driver does not use by default either.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::str::FromStr;

use rakwire::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    In,
}

pub(crate) struct Delivered {
    pub(crate) at: Instant,
    pub(crate) address: SocketAddr,
    pub(crate) bytes: Box<[u8]>,
}

/// Has no values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulation(Infallible);

/// The tests in the driver's files parse a description.
impl FromStr for Simulation {
    type Err = ();

    fn from_str(_: &str) -> Result<Self, ()> {
        Err(())
    }
}

#[derive(Debug)]
pub(crate) struct NetworkEmulator(Infallible);

impl NetworkEmulator {
    pub(crate) const fn new(simulation: Simulation, _direction: Direction) -> Self {
        match simulation.0 {}
    }

    pub(crate) const fn send(&mut self, _at: Instant, _from: SocketAddr, _datagram: &[u8]) {
        match self.0 {}
    }

    pub(crate) const fn receive(&mut self, _now: Instant) -> Vec<Delivered> {
        match self.0 {}
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        match self.0 {}
    }
}

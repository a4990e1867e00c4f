//! A stand-in for the network emulator of the driver, which is disabled.

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

/// The description of an emulated network. It cannot be created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulation(Infallible);

/// The driver's files require this implementation. It always fails.
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

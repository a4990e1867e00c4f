//! No counters for others (without the feature `metrics`).

use std::fmt::Debug;

use rakwire::Instant;
use rakwire::endpoint::{Protocol, Side};

use super::stats::EndpointStats;

/// What an endpoint tells a recorder, which there is none of. It takes no memory.
#[derive(Debug)]
pub(crate) struct Meters;

impl Meters {
    pub(crate) const fn new<P: Protocol>() -> Self {
        Self
    }

    pub(crate) const fn opened(&self, _: Side) {}

    pub(crate) const fn failed(&self, _: &dyn Debug) {}

    pub(crate) const fn ended(&self, _: &dyn Debug) {}

    /// Never.
    pub(crate) const fn due(&self, _: Instant) -> Option<Instant> {
        None
    }

    pub(crate) const fn end(&self) {}

    pub(crate) const fn tell<P: Protocol>(&self, _: Instant, _: &EndpointStats<P>) {}
}

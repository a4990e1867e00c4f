//! No spans and no events (without the feature `tracing`).

use std::fmt::Display;
use std::net::SocketAddr;

use rakwire::Instant;
use rakwire::endpoint::{Client, Decision, Side};

/// The span of an endpoint, which takes no memory.
#[derive(Clone, Debug)]
pub(crate) struct EndpointSpan;

impl EndpointSpan {
    pub(crate) const fn new(_: &'static str) -> Self {
        Self
    }

    pub(crate) const fn bound(&self, _: SocketAddr) {}

    pub(crate) const fn closed(&self) {}

    pub(crate) const fn connection(&self, _: SocketAddr, _: Side) -> ConnectionSpan {
        ConnectionSpan
    }

    pub(crate) const fn asked(&self, _: &Client) {}

    pub(crate) const fn decided(&self, _: SocketAddr, _: Decision) {}

    pub(crate) const fn refused_client(&self, _: SocketAddr, _: &dyn Display) {}

    pub(crate) const fn advise(&self, _: &str) {}

    pub(crate) const fn backlog_full(&self, _: SocketAddr) {}

    #[cfg(feature = "tcp")]
    pub(crate) const fn refused(&self, _: Instant, _: SocketAddr, _: &dyn Display) {}

    pub(crate) const fn send_failed(&self, _: Instant, _: SocketAddr, _: &std::io::Error) {}

    pub(crate) const fn receive_failed(&self, _: Instant, _: &std::io::Error) {}
}

/// The span of a connection, which takes no memory.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct ConnectionSpan;

impl ConnectionSpan {
    pub(crate) const fn connecting(&self) {}

    pub(crate) const fn connected(&self, _: Option<u64>) {}

    pub(crate) const fn failed(&self, _: &dyn Display) {}

    pub(crate) const fn closing(&self) {}

    pub(crate) const fn abandoned(&self) {}

    pub(crate) const fn ended(&self, _: &dyn Display) {}
}

//! Spans and events for the crate `tracing` (feature `tracing`): of endpoints, connections, and refused clients.

pub(crate) use self::events::{ConnectionSpan, EndpointSpan};

/// Spans and events.
#[cfg(feature = "tracing")]
mod events {
    use std::fmt::Display;
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rakwire::Instant;
    use rakwire::endpoint::Side;
    use tracing::field::{Empty, display};
    use tracing::{Span, debug, info_span};

    const TARGET: &str = "rakwire_extras";
    const PROTOCOL: &str = "TCP";
    /// The minimum interval between two events about refused clients, which may be many. All of them are counted.
    const INTERVAL: Duration = Duration::from_secs(1);

    /// The span of one endpoint.
    #[derive(Debug)]
    pub(crate) struct EndpointSpan {
        span: Span,
        /// The earliest time of the next event, in microseconds.
        next_refusal: AtomicU64,
    }

    impl EndpointSpan {
        pub(crate) fn new() -> Self {
            let span =
                info_span!(target: TARGET, parent: None, "endpoint", protocol = PROTOCOL, local = Empty);
            Self { span, next_refusal: AtomicU64::new(0) }
        }

        /// Records that the endpoint listens on this address.
        pub(crate) fn bound(&self, local: SocketAddr) {
            self.span.record("local", display(local));
            debug!(target: TARGET, parent: &self.span, %local, "bound");
        }

        /// Records that the endpoint no longer listens.
        pub(crate) fn closed(&self) {
            debug!(target: TARGET, parent: &self.span, "closed");
        }

        /// Returns the span of a new connection.
        pub(crate) fn connection(&self, remote: SocketAddr, side: Side) -> ConnectionSpan {
            let side = match side {
                Side::Client => "client",
                Side::Server => "server",
            };
            ConnectionSpan(info_span!(
                target: TARGET, parent: &self.span, "connection", protocol = PROTOCOL, %remote, side
            ))
        }

        /// Records that a client was refused, once per second.
        pub(crate) fn refused(&self, now: Instant, remote: SocketAddr, reason: &dyn Display) {
            if now.as_micros() >= self.next_refusal.load(Ordering::Relaxed) {
                self.next_refusal.store((now + INTERVAL).as_micros(), Ordering::Relaxed);
                debug!(target: TARGET, parent: &self.span, %remote, %reason, "refused");
            }
        }
    }

    /// The span of a connection, inside that of its endpoint.
    #[derive(Clone, Debug)]
    pub(crate) struct ConnectionSpan(Span);

    impl ConnectionSpan {
        /// Records the beginning of the attempt.
        pub(crate) fn connecting(&self) {
            debug!(target: TARGET, parent: &self.0, "connecting");
        }

        pub(crate) fn connected(&self) {
            debug!(target: TARGET, parent: &self.0, "connected");
        }

        pub(crate) fn failed(&self, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.0, %reason, "not connected");
        }

        /// Records that this side starts to close the connection.
        pub(crate) fn closing(&self) {
            debug!(target: TARGET, parent: &self.0, "closing");
        }

        pub(crate) fn ended(&self, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.0, %reason, "ended");
        }
    }
}

/// No spans and no events without the feature `tracing`.
#[cfg(not(feature = "tracing"))]
mod events {
    use std::fmt::Display;
    use std::net::SocketAddr;

    use rakwire::Instant;
    use rakwire::endpoint::Side;

    /// The span of an endpoint, which takes no memory.
    #[derive(Debug)]
    pub(crate) struct EndpointSpan;

    impl EndpointSpan {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) const fn bound(&self, _: SocketAddr) {}

        pub(crate) const fn closed(&self) {}

        pub(crate) const fn connection(&self, _: SocketAddr, _: Side) -> ConnectionSpan {
            ConnectionSpan
        }

        pub(crate) const fn refused(&self, _: Instant, _: SocketAddr, _: &dyn Display) {}
    }

    /// The span of a connection, which takes no memory.
    #[derive(Clone, Debug)]
    pub(crate) struct ConnectionSpan;

    impl ConnectionSpan {
        pub(crate) const fn connecting(&self) {}

        pub(crate) const fn connected(&self) {}

        pub(crate) const fn failed(&self, _: &dyn Display) {}

        pub(crate) const fn closing(&self) {}

        pub(crate) const fn ended(&self, _: &dyn Display) {}
    }
}

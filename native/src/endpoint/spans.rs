//! Spans and events for the crate `tracing` (feature `tracing`).
//!
//! No event is about a single message, nor about datagrams from peers without a connection, which may be forged.
//! What such datagrams make fail, for example a pong to a forged address, is rationed, and that clients do not return their
//! cookies is written once. The protocol has validated the
//! address of a client that asks for a connection, unless RakNet's cookies are off or asked for under load; then events
//! about clients may be about forged ones (docs/attacks.md, A10).

pub(crate) use self::events::{ConnectionSpan, EndpointSpan};

/// Spans and events.
#[cfg(feature = "tracing")]
mod events {
    use std::fmt::Display;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rakwire::Instant;
    use rakwire::endpoint::{Client, Decision, Side};
    use tracing::field::{Empty, display};
    use tracing::{Span, debug, info_span, warn};

    const TARGET: &str = "rakwire_native";

    /// The span of an endpoint, which belongs to no other one.
    #[derive(Clone, Debug)]
    pub(crate) struct EndpointSpan {
        span: Span,
        protocol: &'static str,
        rations: Arc<Rations>,
    }

    /// When to write again of failed calls of the system. All of them are counted.
    #[derive(Debug, Default)]
    struct Rations {
        send: EventRation,
        receive: EventRation,
    }

    /// Admits an event in each [`INTERVAL`](Self::INTERVAL).
    #[derive(Debug, Default)]
    struct EventRation {
        /// When the next one may follow, in microseconds.
        next: AtomicU64,
    }

    impl EventRation {
        const INTERVAL: Duration = Duration::from_secs(1);

        fn take(&self, now: Instant) -> bool {
            let is_due = now.as_micros() >= self.next.load(Ordering::Relaxed);
            if is_due {
                self.next.store((now + Self::INTERVAL).as_micros(), Ordering::Relaxed);
            }
            is_due
        }
    }

    impl EndpointSpan {
        pub(crate) fn new(protocol: &'static str) -> Self {
            let span = info_span!(target: TARGET, parent: None, "endpoint", protocol, local = Empty);
            Self { span, protocol, rations: Arc::default() }
        }

        /// The endpoint uses a socket with this address from now on.
        pub(crate) fn bound(&self, local: SocketAddr) {
            self.span.record("local", display(local));
            debug!(target: TARGET, parent: &self.span, %local, "bound");
        }

        /// The socket is closed.
        pub(crate) fn closed(&self) {
            debug!(target: TARGET, parent: &self.span, "closed");
        }

        /// The span of a new connection.
        pub(crate) fn connection(&self, remote: SocketAddr, side: Side) -> ConnectionSpan {
            let (protocol, side) = (self.protocol, side_name(side));
            ConnectionSpan(info_span!(
                target: TARGET, parent: &self.span, "connection", protocol, %remote, side, guid = Empty
            ))
        }

        /// A client waits for the decision of the application.
        pub(crate) fn asked(&self, client: &Client) {
            let guid = client.guid.map(|guid| display(format!("{guid:016x}")));
            debug!(target: TARGET, parent: &self.span, remote = %client.remote, guid, "a client asks for a connection");
        }

        /// The application has decided about a client.
        pub(crate) fn decided(&self, remote: SocketAddr, decision: Decision) {
            debug!(target: TARGET, parent: &self.span, %remote, ?decision, "decided about a client");
        }

        /// A client was not let in, by its password, identity or connect token. Its address is proven, or it is one
        /// of the few that need no proof, and its handshake was paid for, so that these events need no ration.
        pub(crate) fn refused_client(&self, remote: SocketAddr, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.span, %remote, %reason, "refused a client");
        }

        /// The counters show something that an operator should hear of, written once for each endpoint.
        pub(crate) fn advise(&self, advice: &str) {
            warn!(target: TARGET, parent: &self.span, "{advice}");
        }

        /// A connection that opened is closed at once.
        pub(crate) fn backlog_full(&self, remote: SocketAddr) {
            debug!(target: TARGET, parent: &self.span, %remote, "refused: too many connections wait to be accepted");
        }

        /// Datagrams could not be sent, the first ones in a second.
        pub(crate) fn send_failed(&self, now: Instant, to: SocketAddr, error: &std::io::Error) {
            if self.rations.send.take(now) {
                debug!(target: TARGET, parent: &self.span, %to, %error, "datagrams could not be sent");
            }
        }

        /// A receive call failed, the first one in a second.
        pub(crate) fn receive_failed(&self, now: Instant, error: &std::io::Error) {
            if self.rations.receive.take(now) {
                debug!(target: TARGET, parent: &self.span, %error, "datagrams could not be received");
            }
        }
    }

    const fn side_name(side: Side) -> &'static str {
        match side {
            Side::Client => "client",
            Side::Server => "server",
        }
    }

    /// The span of a connection, in that of its endpoint.
    #[derive(Clone, Debug)]
    pub(crate) struct ConnectionSpan(pub(in crate::endpoint) Span);

    #[cfg(test)]
    impl Default for ConnectionSpan {
        fn default() -> Self {
            Self(Span::none())
        }
    }

    impl ConnectionSpan {
        /// The handshake begins.
        pub(crate) fn connecting(&self) {
            debug!(target: TARGET, parent: &self.0, "connecting");
        }

        /// The handshake is over, with a peer that has this GUID if it has one.
        pub(crate) fn connected(&self, guid: Option<u64>) {
            if let Some(guid) = guid {
                self.0.record("guid", display(format_args!("{guid:016x}")));
            }
            debug!(target: TARGET, parent: &self.0, "connected");
        }

        pub(crate) fn failed(&self, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.0, %reason, "not connected");
        }

        /// This side begins to end the connection.
        pub(crate) fn closing(&self) {
            debug!(target: TARGET, parent: &self.0, "closing");
        }

        /// The application has dropped the connection, and is told nothing more of it.
        pub(crate) fn abandoned(&self) {
            debug!(target: TARGET, parent: &self.0, "closing: the last handle was dropped");
        }

        pub(crate) fn ended(&self, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.0, %reason, "ended");
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn failures_are_written_once_a_second() {
            let ration = EventRation::default();
            let written =
                (0..3_000).filter(|millis| ration.take(Instant::from_micros(5_000_000 + millis * 1_000)));
            assert_eq!(written.collect::<Vec<_>>(), [0, 1_000, 2_000]);
        }
    }
}

/// No spans and no events.
#[cfg(not(feature = "tracing"))]
mod events {
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
}

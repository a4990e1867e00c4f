//! Telemetry of an endpoint: counters for its application and for the crate `metrics` (feature `metrics`), and spans
//! and events for the crate `tracing` (feature `tracing`).
//!
//! No event is about a single message, nor about datagrams from peers without a connection, which may be forged.
//! Failures caused by such datagrams, for example of a pong to a forged address, are rate limited. The advice about
//! clients that return no cookies is logged once.
//!
//! The protocol validates the address of a client that requests a connection, unless RakNet's cookies are off or
//! required only under load. Without validation, events about clients may contain forged addresses (docs/attacks.md,
//! A10).

use rakwire::endpoint::{PeerStats, Protocol};

pub(crate) use self::events::{ConnectionSpan, EndpointSpan};
pub(crate) use self::meters::Meters;

/// The counters of an endpoint since it was bound, and its current use of memory.
///
/// ```
/// use rakwire_native::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(8)?).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let connection = client.connect(server.local_addr()).await?;
/// let stats = client.stats();
/// assert_eq!((stats.connections, stats.arrival_queue_full), (1, 0));
/// assert!(stats.peer.datagrams_received > 0 && stats.blocks_available <= stats.blocks);
/// # drop(connection);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct EndpointStats<P: Protocol> {
    /// The counters of the protocol.
    pub peer: PeerStats<P::DropReason>,
    /// Open connections, including those that are being opened or closed.
    pub connections: usize,
    /// Blocks of memory for messages.
    pub blocks: usize,
    /// Blocks of memory that are free.
    pub blocks_available: usize,
    /// Datagrams dropped before they reached the protocol.
    ///
    /// Either [`arrival_queue`](super::Options::arrival_queue) was full, or 1,024 requests from peers without a
    /// connection were waiting to be handled.
    pub arrival_queue_full: u64,
    /// Datagrams dropped because they exceed 2,048 bytes, which neither protocol sends.
    pub too_long: u64,
    /// Datagrams from [trusted proxies](super::Options::trusted_proxies) dropped because of their PROXY header.
    ///
    /// The header is malformed, or 262,144 clients of proxies have been active within five minutes.
    pub proxy_headers_refused: u64,
    /// Datagrams with messages dropped because the [`receive_queue`](super::Options::receive_queue) of their connection
    /// was full.
    pub receive_queue_full: u64,
    /// Connections or requests dropped because the [`backlog`](super::Options::backlog) was full.
    ///
    /// Connections are closed immediately. With [deferred](super::Options::defer_incoming) admission, requests are
    /// dropped.
    pub backlog_full: u64,
    /// Messages from peers without a connection dropped because 256 of them had not been received by the application.
    pub unconnected_queue_full: u64,
    /// Clients refused for their password, identity or connect token.
    ///
    /// [`Endpoint::refused_client`](super::Endpoint::refused_client) returns the last 64.
    pub refused_clients: u64,
    /// Number of times that a blocked sender was woken because its connection had memory again or was closed.
    pub sender_wakes: u64,
    /// Datagrams that the system could not send.
    pub send_failures: u64,
    /// Receive calls that failed.
    pub receive_failures: u64,
    /// Hook methods that panicked. The endpoint continues, and drops the item that the method was called for.
    pub hook_panics: u64,
}

/// Counters for the crate `metrics`.
#[cfg(feature = "metrics")]
mod meters {
    use std::fmt::Debug;
    use std::time::Duration;

    use metrics::{Counter, Gauge, Unit, counter, describe_counter, describe_gauge, gauge};
    use rakwire::Instant;
    use rakwire::endpoint::{Protocol, Side};

    use super::EndpointStats;

    /// Interval between two updates, in which the driver may run a thousand times.
    const INTERVAL: Duration = Duration::from_millis(100);

    const OPENED: &str = "rakwire_connections_opened_total";
    const FAILED: &str = "rakwire_connections_failed_total";
    const ENDED: &str = "rakwire_connections_ended_total";
    const DROPPED: &str = "rakwire_dropped_total";
    const QUEUE_FULL: &str = "rakwire_queue_full_total";

    /// Counters without labels other than the protocol: name, unit, description.
    const PLAIN: [(&str, Unit, &str); 10] = [
        ("rakwire_datagrams_received_total", Unit::Count, "datagrams received"),
        ("rakwire_datagrams_sent_total", Unit::Count, "datagrams sent"),
        (
            "rakwire_bytes_received_total",
            Unit::Bytes,
            "bytes of datagrams received, without IP and UDP headers",
        ),
        ("rakwire_bytes_sent_total", Unit::Bytes, "bytes of datagrams sent, without IP and UDP headers"),
        ("rakwire_sender_wakes_total", Unit::Count, "wakes of tasks that wait to send"),
        ("rakwire_too_long_total", Unit::Count, "datagrams longer than 2,048 bytes"),
        (
            "rakwire_proxy_headers_refused_total",
            Unit::Count,
            "datagrams from trusted proxies with a malformed header",
        ),
        ("rakwire_send_failures_total", Unit::Count, "datagrams that the system could not send"),
        ("rakwire_receive_failures_total", Unit::Count, "receive calls that failed"),
        ("rakwire_hook_panics_total", Unit::Count, "panics in methods of hooks and plugins"),
    ];

    /// Queues that drop items when they are full.
    const QUEUES: [&str; 4] = ["arrival", "receive", "backlog", "unconnected"];

    /// The values that an endpoint has reported to the recorder. Several endpoints of a protocol add to the same
    /// counters.
    #[derive(Debug)]
    pub(crate) struct Meters {
        protocol: &'static str,
        reported_at: Option<Instant>,
        plain: [Total; PLAIN.len()],
        dropped: Vec<Total>,
        queue_full: [Total; QUEUES.len()],
        connections: Level,
        blocks: Level,
    }

    impl Meters {
        /// Registers the counters of an endpoint with the current recorder, with one for each of the protocol's drop
        /// reasons.
        pub(crate) fn new<R: Debug>(protocol: &'static str, reasons: &[R]) -> Self {
            describe();
            let dropped = reasons
                .iter()
                .map(|reason| Total::of(counter!(DROPPED, "protocol" => protocol, "reason" => name(reason))));
            Self {
                protocol,
                reported_at: None,
                plain: PLAIN.map(|(name, ..)| Total::of(counter!(name, "protocol" => protocol))),
                dropped: dropped.collect(),
                queue_full: QUEUES
                    .map(|queue| Total::of(counter!(QUEUE_FULL, "protocol" => protocol, "queue" => queue))),
                connections: Level::of(gauge!("rakwire_connections", "protocol" => protocol)),
                blocks: Level::of(gauge!("rakwire_blocks_used", "protocol" => protocol)),
            }
        }

        pub(crate) fn opened(&self, side: Side) {
            let side = match side {
                Side::Client => "client",
                Side::Server => "server",
            };
            counter!(OPENED, "protocol" => self.protocol, "side" => side).increment(1);
        }

        pub(crate) fn failed(&self, reason: &dyn Debug) {
            counter!(FAILED, "protocol" => self.protocol, "reason" => name(reason)).increment(1);
        }

        pub(crate) fn ended(&self, reason: &dyn Debug) {
            counter!(ENDED, "protocol" => self.protocol, "reason" => name(reason)).increment(1);
        }

        /// Returns when to [report](Self::report) changes to the recorder: later than `now` if the last report was less
        /// than [`INTERVAL`] ago. Only the driver calls this, in each run; between runs nothing changes.
        pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
            Some(self.reported_at.map_or(now, |at| at + INTERVAL))
        }

        /// Reports changes to the recorder.
        pub(crate) fn report<P: Protocol>(&mut self, now: Instant, stats: &EndpointStats<P>) {
            self.reported_at = Some(now);
            // The destructuring fails to compile for a new counter until that counter is recorded or listed as
            // unrecorded.
            let EndpointStats {
                peer,
                connections,
                blocks,
                blocks_available,
                arrival_queue_full,
                too_long,
                proxy_headers_refused,
                receive_queue_full,
                backlog_full,
                unconnected_queue_full,
                refused_clients: _,
                sender_wakes,
                send_failures,
                receive_failures,
                hook_panics,
            } = stats;
            let plain = [
                &peer.datagrams_received,
                &peer.datagrams_sent,
                &peer.bytes_received,
                &peer.bytes_sent,
                sender_wakes,
                too_long,
                proxy_headers_refused,
                send_failures,
                receive_failures,
                hook_panics,
            ];
            let queue_full = [arrival_queue_full, receive_queue_full, backlog_full, unconnected_queue_full];
            self.plain.iter_mut().zip(plain).for_each(|(total, value)| total.reach(*value));
            self.queue_full.iter_mut().zip(queue_full).for_each(|(total, value)| total.reach(*value));
            self.dropped.iter_mut().zip(peer.drops()).for_each(|(total, (_, value))| total.reach(value));
            self.connections.set(*connections);
            self.blocks.set(blocks - blocks_available);
        }
    }

    impl Meters {
        /// Subtracts the values of this endpoint from the gauges.
        pub(crate) fn end(&mut self) {
            self.connections.set(0);
            self.blocks.set(0);
        }
    }

    impl Drop for Meters {
        fn drop(&mut self) {
            self.end();
        }
    }

    /// A counter, and the value reported so far.
    #[derive(Debug)]
    struct Total {
        counter: Counter,
        reported: u64,
    }

    impl Total {
        const fn of(counter: Counter) -> Self {
            Self { counter, reported: 0 }
        }

        fn reach(&mut self, value: u64) {
            if value > self.reported {
                self.counter.increment(value - self.reported);
                self.reported = value;
            }
        }
    }

    /// A gauge shared with other endpoints, and this endpoint's part of it.
    #[derive(Debug)]
    struct Level {
        gauge: Gauge,
        reported: usize,
    }

    impl Level {
        const fn of(gauge: Gauge) -> Self {
            Self { gauge, reported: 0 }
        }

        fn set(&mut self, value: usize) {
            if value > self.reported {
                self.gauge.increment(number(value - self.reported));
            } else if value < self.reported {
                self.gauge.decrement(number(self.reported - value));
            }
            self.reported = value;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "neither connections nor blocks reach 2^53")]
    const fn number(value: usize) -> f64 {
        value as f64
    }

    /// Returns the name of a reason, without its fields.
    fn name(reason: &dyn Debug) -> String {
        let mut name = format!("{reason:?}");
        name.truncate(name.find(|of_name: char| !of_name.is_alphanumeric()).unwrap_or(name.len()));
        name
    }

    fn describe() {
        for (name, unit, text) in PLAIN {
            describe_counter!(name, unit, text);
        }
        describe_counter!(OPENED, Unit::Count, "connections opened, by the local side");
        describe_counter!(FAILED, Unit::Count, "failed attempts to connect");
        describe_counter!(ENDED, Unit::Count, "connections ended after they were open");
        describe_counter!(DROPPED, Unit::Count, "datagrams and messages dropped by the protocol");
        describe_counter!(QUEUE_FULL, Unit::Count, "items dropped because a queue was full");
        describe_gauge!(
            "rakwire_connections",
            Unit::Count,
            "connections, including those being opened or closed"
        );
        describe_gauge!("rakwire_blocks_used", Unit::Count, "memory blocks in use for messages");
    }

    #[cfg(test)]
    mod tests {
        use rakwire::raknet::{ConnectFailure, DisconnectReason, Refusal};

        use super::*;

        #[test]
        fn a_drop_reason_is_labelled_without_its_fields() {
            assert_eq!(name(&DisconnectReason::Lost), "Lost");
            assert_eq!(name(&ConnectFailure::IncompatibleProtocol { server: 11 }), "IncompatibleProtocol");
            assert_eq!(name(&ConnectFailure::Refused(Refusal::Banned)), "Refused");
        }
    }
}

/// No counters without the feature `metrics`.
#[cfg(not(feature = "metrics"))]
mod meters {
    use std::fmt::Debug;

    use rakwire::Instant;
    use rakwire::endpoint::{Protocol, Side};

    use super::EndpointStats;

    /// Reports nothing and takes no memory.
    #[derive(Debug)]
    pub(crate) struct Meters;

    impl Meters {
        pub(crate) const fn new<R>(_: &'static str, _: &[R]) -> Self {
            Self
        }

        pub(crate) const fn opened(&self, _: Side) {}

        pub(crate) const fn failed(&self, _: &dyn Debug) {}

        pub(crate) const fn ended(&self, _: &dyn Debug) {}

        pub(crate) const fn due(&self, _: Instant) -> Option<Instant> {
            None
        }

        pub(crate) const fn end(&self) {}

        pub(crate) const fn report<P: Protocol>(&self, _: Instant, _: &EndpointStats<P>) {}
    }
}

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

    /// The span of one endpoint.
    #[derive(Clone, Debug)]
    pub(crate) struct EndpointSpan {
        span: Span,
        protocol: &'static str,
        rations: Arc<Rations>,
    }

    /// Rate limits for events about failed system calls. All failures are counted.
    #[derive(Debug, Default)]
    struct Rations {
        send: EventRation,
        receive: EventRation,
    }

    /// Admits one event per [`INTERVAL`](Self::INTERVAL).
    #[derive(Debug, Default)]
    struct EventRation {
        /// The earliest time of the next event, in microseconds.
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

        /// Records that the endpoint uses a socket with this address.
        pub(crate) fn bound(&self, local: SocketAddr) {
            self.span.record("local", display(local));
            debug!(target: TARGET, parent: &self.span, %local, "bound");
        }

        /// Records that the socket is closed.
        pub(crate) fn closed(&self) {
            debug!(target: TARGET, parent: &self.span, "closed");
        }

        /// Returns the span of a new connection.
        pub(crate) fn connection(&self, remote: SocketAddr, side: Side) -> ConnectionSpan {
            let (protocol, side) = (self.protocol, side_name(side));
            ConnectionSpan(info_span!(
                target: TARGET, parent: &self.span, "connection", protocol, %remote, side, guid = Empty
            ))
        }

        /// Records that a client waits for the application's decision.
        pub(crate) fn asked(&self, client: &Client) {
            let guid = client.guid.map(|guid| display(format!("{guid:016x}")));
            debug!(target: TARGET, parent: &self.span, remote = %client.remote, guid, "a client requests a connection");
        }

        /// Records the application's decision on a client.
        pub(crate) fn decided(&self, remote: SocketAddr, decision: Decision) {
            debug!(target: TARGET, parent: &self.span, %remote, ?decision, "decided about a client");
        }

        /// Records that a client was refused for its password, identity or connect token.
        ///
        /// The client's address is validated, or is one of the few that need no validation, and its handshake had a
        /// cost. These events therefore need no rate limit.
        pub(crate) fn refused_client(&self, remote: SocketAddr, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.span, %remote, %reason, "refused a client");
        }

        /// Logs advice for the operator, once per endpoint.
        pub(crate) fn advise(&self, advice: &str) {
            warn!(target: TARGET, parent: &self.span, "{advice}");
        }

        /// Records that a connection is closed as soon as it opened.
        pub(crate) fn backlog_full(&self, remote: SocketAddr) {
            debug!(target: TARGET, parent: &self.span, %remote, "refused: too many connections are waiting to be accepted");
        }

        /// Records that datagrams could not be sent, once per second.
        pub(crate) fn send_failed(&self, now: Instant, to: SocketAddr, error: &std::io::Error) {
            if self.rations.send.take(now) {
                debug!(target: TARGET, parent: &self.span, %to, %error, "datagrams could not be sent");
            }
        }

        /// Records that a receive call failed, once per second.
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

    /// The span of a connection, inside that of its endpoint.
    #[derive(Clone, Debug)]
    pub(crate) struct ConnectionSpan(pub(in crate::endpoint) Span);

    #[cfg(test)]
    impl Default for ConnectionSpan {
        fn default() -> Self {
            Self(Span::none())
        }
    }

    impl ConnectionSpan {
        /// Records the beginning of the handshake.
        pub(crate) fn connecting(&self) {
            debug!(target: TARGET, parent: &self.0, "connecting");
        }

        /// Records that the handshake is complete, with the GUID of the peer if it has one.
        pub(crate) fn connected(&self, guid: Option<u64>) {
            if let Some(guid) = guid {
                self.0.record("guid", display(format_args!("{guid:016x}")));
            }
            debug!(target: TARGET, parent: &self.0, "connected");
        }

        pub(crate) fn failed(&self, reason: &dyn Display) {
            debug!(target: TARGET, parent: &self.0, %reason, "not connected");
        }

        /// Records that this side starts to close the connection.
        pub(crate) fn closing(&self) {
            debug!(target: TARGET, parent: &self.0, "closing");
        }

        /// Records that the application has dropped its last handle of the connection.
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
        fn failures_are_logged_once_per_second() {
            let ration = EventRation::default();
            let written =
                (0..3_000).filter(|millis| ration.take(Instant::from_micros(5_000_000 + millis * 1_000)));
            assert_eq!(written.collect::<Vec<_>>(), [0, 1_000, 2_000]);
        }
    }
}

/// No spans and no events without the feature `tracing`.
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

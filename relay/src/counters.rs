//! Counters of the relay, and the kinds of client transports.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::addresses::TargetName;
use crate::close::CloseKind;
use crate::flow::{Counter, DropReason, TargetCounters, TargetSnapshot, Traffic, Unreachable};

/// The counters of a relay since its start, in total and by target.
#[derive(Debug, Default)]
pub struct Counters {
    targets: RwLock<BTreeMap<TargetName, Arc<TargetCounters>>>,
    /// The counts of removed targets, which keep the totals from decreasing.
    gone: Mutex<TargetSnapshot>,
    pub(crate) origins_refused: Counter,
    pub(crate) bans_refused: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) requests_refused: Counter,
    pub(crate) headers_timed_out: Counter,
    pub(crate) handshakes_refused: Counter,
    pub(crate) handshakes_failed: Counter,
    pub(crate) handshakes_timed_out: Counter,
    pub(crate) proxy_headers_refused: Counter,
    pub(crate) stalled: Counter,
    pub(crate) servers_arrived: Counter,
    pub(crate) servers_departed: Counter,
    pub(crate) announcements_refused: Counter,
    pub(crate) store_failures: Counter,
    pub(crate) kicked: Counter,
    pub(crate) ended_by_bans: Counter,
    closes: [Counter; CloseKind::ALL.len()],
    /// Client connections by transport: opened, and closed.
    transports: [(Counter, Counter); TransportKind::ALL.len()],
}

/// An open client connection, counted as open until dropped.
#[derive(Debug)]
pub(crate) struct OpenTransport {
    counters: Arc<Counters>,
    kind: TransportKind,
}

impl OpenTransport {
    pub(crate) fn new(counters: &Arc<Counters>, kind: TransportKind) -> Self {
        counters.transports[kind as usize].0.increment();
        Self { counters: Arc::clone(counters), kind }
    }
}

impl Drop for OpenTransport {
    fn drop(&mut self) {
        self.counters.transports[self.kind as usize].1.increment();
    }
}

impl Counters {
    /// Returns the current counts. Each count is exact, but they are not read atomically together.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let targets = self.targets.read().unwrap_or_else(PoisonError::into_inner);
        let targets: BTreeMap<_, _> =
            targets.iter().map(|(name, counters)| (name.clone(), counters.snapshot())).collect();
        let gone = *self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let all = targets.values().fold(gone, TargetSnapshot::plus);
        Snapshot {
            clients: all.clients,
            flows: all.flows,
            to_server: all.to_server,
            to_client: all.to_client,
            origins_refused: self.origins_refused.get(),
            bans_refused: self.bans_refused.get(),
            connections_refused: self.connections_refused.get(),
            requests_refused: self.requests_refused.get(),
            headers_timed_out: self.headers_timed_out.get(),
            handshakes_refused: self.handshakes_refused.get(),
            handshakes_failed: self.handshakes_failed.get(),
            handshakes_timed_out: self.handshakes_timed_out.get(),
            proxy_headers_refused: self.proxy_headers_refused.get(),
            stalled: self.stalled.get(),
            servers_arrived: self.servers_arrived.get(),
            servers_departed: self.servers_departed.get(),
            announcements_refused: self.announcements_refused.get(),
            store_failures: self.store_failures.get(),
            kicked: self.kicked.get(),
            ended_by_bans: self.ended_by_bans.get(),
            closes: self.closes.each_ref().map(Counter::get),
            transports: self.transports.each_ref().map(|(opened, ended)| {
                // The number of closed connections is read first, so that it never exceeds the number of opened ones.
                let ended = ended.get();
                TransportSnapshot { open: opened.get() - ended, opened: opened.get() }
            }),
            all,
            targets,
        }
    }

    /// Returns the counters of one target.
    pub(crate) fn target(&self, name: &TargetName) -> Arc<TargetCounters> {
        let targets = self.targets.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = targets.get(name) {
            return Arc::clone(counters);
        }
        drop(targets);
        let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(targets.entry(name.clone()).or_default())
    }

    /// Removes the counters of targets that were removed and have no flow.
    pub(crate) fn retain(&self, mut is_there: impl FnMut(&TargetName) -> bool) {
        let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        targets.retain(|name, counters| {
            // A flow holds a reference to its counters. The lock on the map prevents that a flow begins between this
            // check and the removal.
            if is_there(name) || Arc::strong_count(counters) > 1 {
                return true;
            }
            let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
            *gone = gone.plus(&counters.snapshot());
            false
        });
    }

    pub(crate) fn closed(&self, kind: CloseKind) {
        self.closes[kind as usize].increment();
    }
}

/// Client connections of one transport.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportSnapshot {
    /// Connections that are open.
    pub open: u64,
    /// Connections since the start.
    pub opened: u64,
}

/// The [`Counters`] at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Clients with an open connection.
    pub clients: u64,
    /// Flows since the start.
    pub flows: u64,
    /// Traffic from clients to game servers.
    pub to_server: Traffic,
    /// Traffic from game servers to clients.
    pub to_client: Traffic,
    /// Requests of pages that may not connect.
    pub origins_refused: u64,
    /// Connections and requests of banned addresses.
    pub bans_refused: u64,
    /// Connections over TCP, WebTransport and data channels closed immediately, because of
    /// [`Limits::max_connections`](crate::Limits::max_connections) or of the limits of their address.
    pub connections_refused: u64,
    /// Requests for the server list refused because of their address's rate.
    pub requests_refused: u64,
    /// TCP connections closed because they did not complete a request header in time.
    pub headers_timed_out: u64,
    /// WebTransport handshakes refused because too many were in progress.
    pub handshakes_refused: u64,
    /// Handshakes of TLS, WebTransport and WebSockets that failed.
    pub handshakes_failed: u64,
    /// Connections closed because they did not complete a TLS or WebTransport handshake, or a PROXY protocol header, in
    /// time.
    pub handshakes_timed_out: u64,
    /// TCP connections of trusted proxies that did not begin with a PROXY protocol header.
    pub proxy_headers_refused: u64,
    /// TCP connections closed because their peer did not read.
    pub stalled: u64,
    /// Number of times that a new server was announced.
    pub servers_arrived: u64,
    /// Number of times that an announcement was withdrawn, expired or became unusable.
    pub servers_departed: u64,
    /// Server announcements that were unusable because of their content or address.
    pub announcements_refused: u64,
    /// Failed reads of the server store: it was unreachable, refused the request, or returned too much data.
    pub store_failures: u64,
    /// Flows ended by an operator.
    pub kicked: u64,
    /// Flows ended by an operator's ban.
    pub ended_by_bans: u64,
    closes: [u64; CloseKind::ALL.len()],
    transports: [TransportSnapshot; TransportKind::ALL.len()],
    all: TargetSnapshot,
    targets: BTreeMap<TargetName, TargetSnapshot>,
}

impl Snapshot {
    /// Returns the datagrams dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: DropReason) -> u64 {
        self.all.drops(reason)
    }

    /// Returns the number of reports by the network or this machine that a game server is unreachable for `reason`.
    #[must_use]
    pub const fn unreachable(&self, reason: Unreachable) -> u64 {
        self.all.unreachable(reason)
    }

    /// Returns the number of client connections and rejected requests that were closed with `kind`.
    #[must_use]
    pub const fn closes(&self, kind: CloseKind) -> u64 {
        self.closes[kind as usize]
    }

    /// Returns the client connections of `kind`.
    #[must_use]
    pub const fn transport(&self, kind: TransportKind) -> TransportSnapshot {
        self.transports[kind as usize]
    }

    /// Returns the counts over all targets.
    #[must_use]
    pub const fn all(&self) -> &TargetSnapshot {
        &self.all
    }

    /// Returns the counts of each target that has had a client.
    pub fn targets(&self) -> impl Iterator<Item = (&TargetName, &TargetSnapshot)> {
        self.targets.iter()
    }
}

/// Formats all nonzero counts in one line.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, flows, to_server, to_client, .. } = self;
        write!(f, "{clients} clients of {flows} flows")?;
        write!(f, ", {} datagrams ({} bytes) to servers", to_server.datagrams, to_server.bytes)?;
        write!(f, ", {} datagrams ({} bytes) to clients", to_client.datagrams, to_client.bytes)?;
        let drops = DropReason::ALL.map(|reason| (format!("dropped {}", label(reason)), self.drops(reason)));
        let unreachable = Unreachable::ALL
            .map(|reason| (format!("unreachable {}", label(reason)), self.all.unreachable(reason)));
        let closes = CloseKind::ALL.map(|kind| (format!("closed {}", label(kind)), self.closes(kind)));
        let others = [
            ("detached".to_owned(), self.all.detached),
            ("resumed".to_owned(), self.all.resumed),
            ("origins refused".to_owned(), self.origins_refused),
            ("bans refused".to_owned(), self.bans_refused),
            ("connections refused".to_owned(), self.connections_refused),
            ("headers timed out".to_owned(), self.headers_timed_out),
            ("handshakes refused".to_owned(), self.handshakes_refused),
            ("handshakes failed".to_owned(), self.handshakes_failed),
            ("handshakes timed out".to_owned(), self.handshakes_timed_out),
            ("PROXY headers refused".to_owned(), self.proxy_headers_refused),
            ("stalled".to_owned(), self.stalled),
            ("servers announced".to_owned(), self.servers_arrived),
            ("servers withdrawn".to_owned(), self.servers_departed),
            ("announcements refused".to_owned(), self.announcements_refused),
            ("store failures".to_owned(), self.store_failures),
        ];
        for (name, count) in
            others.into_iter().chain(unreachable).chain(drops).chain(closes).filter(|(_, count)| *count > 0)
        {
            write!(f, ", {name}: {count}")?;
        }
        Ok(())
    }
}

/// Returns a reason as a metric label: `ServerQueueFull` becomes `server_queue_full`.
pub(crate) fn label(reason: impl fmt::Debug) -> String {
    let mut label = String::new();
    for character in format!("{reason:?}").chars() {
        if character.is_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.extend(character.to_lowercase());
    }
    label
}

counted! {
    /// The transport that carries the datagrams from a client.
    pub enum TransportKind {
        /// A WebSocket: one binary message is one datagram.
        WebSocket,
        /// Data channels of WebRTC: one message of the second channel is one datagram.
        WebRtc,
        /// WebTransport: QUIC datagrams.
        WebTransport,
    }
}

impl TransportKind {
    /// Returns the name of the transport in the log, in metrics and in lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::WebRtc => "webrtc",
            Self::WebTransport => "webtransport",
        }
    }
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::flow::{Flow, FlowLimits, FromClient, FromServer, Sending, Setup};

    fn flow(counters: &Counters, target: &str) -> Flow {
        let counters = counters.target(&target.parse().unwrap());
        Flow::new(FlowLimits::default(), counters, Setup::default(), Instant::now())
    }

    #[test]
    fn totals_include_removed_targets() {
        let counters = Counters::default();
        let (one, two) = (flow(&counters, "one"), flow(&counters, "two"));
        drop((flow(&counters, "three"), two));
        counters.retain(|name| name.as_str() == "three");
        let snapshot = counters.snapshot();
        let names: Vec<_> = snapshot.targets().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, snapshot.flows), (vec!["one", "three"], 3));
        drop(one);
        counters.retain(|_| false);
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.targets().count(), snapshot.flows, snapshot.clients), (0, 3, 0));
    }

    #[test]
    fn a_snapshot_prints_the_counts() {
        let counters = Counters::default();
        let (mut one, two) = (flow(&counters, "one"), flow(&counters, "two"));
        drop(two);
        let now = Instant::now();
        for len in [100, 11] {
            one.handle_client(now, FromClient::Datagram(vec![0; len].into()));
            one.handle_sent(1, Sending::Sent);
        }
        one.handle_client(now, FromClient::Datagram(vec![0; 1].into()));
        one.handle_sent(1, Sending::Refused);
        one.handle_server(now, FromServer::Datagram(&[0; 7]));
        one.poll_to_client(now);
        one.handle_sent_to_client(7);
        one.handle_server(now, FromServer::Datagram(&[0; 9]));
        one.poll_to_client(now);
        one.handle_too_long_for_client();
        counters.closed(CloseKind::ClientVanished);
        counters.connections_refused.increment();
        counters.headers_timed_out.add(2);
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.clients, snapshot.flows), (1, 2));
        assert_eq!(snapshot.to_server, Traffic { datagrams: 2, bytes: 111 });
        assert_eq!(snapshot.to_client, Traffic { datagrams: 1, bytes: 7 });
        assert_eq!(
            snapshot.to_string(),
            "1 clients of 2 flows, 2 datagrams (111 bytes) to servers, 1 datagrams (7 bytes) to clients, \
             connections refused: 1, headers timed out: 2, dropped datagram_too_big: 1, dropped send_refused: 1, \
             closed client_vanished: 1"
        );
        let of_targets: Vec<_> =
            snapshot.targets().map(|(name, counts)| (name.as_str(), counts.clients, counts.flows)).collect();
        assert_eq!(of_targets, [("one", 1, 1), ("two", 0, 1)]);
    }
}

//! Counters of the relay.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::close::CloseKind;

counted! {
    /// Why a datagram was dropped.
    pub enum DropReason {
        /// The queue towards the game server was full, and this was its oldest datagram.
        ServerQueueFull,
        /// The queue towards the client was full, and this was its oldest datagram.
        ClientQueueFull,
        /// A message of the client was empty; RakNet datagrams never are.
        EmptyMessage,
        /// A datagram of the game server was too long.
        DatagramTooBig,
        /// The system refused to send the datagram for a temporary reason.
        SendRefused,
    }
}

/// Counts since the start, over all sessions.
#[derive(Debug, Default)]
pub struct Counters {
    clients: AtomicU64,
    sessions: Counter,
    to_server: TrafficCounter,
    to_client: TrafficCounter,
    pub(crate) unreachable: Counter,
    pub(crate) origins_refused: Counter,
    pub(crate) bans_refused: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) headers_timed_out: Counter,
    drops: [Counter; DropReason::ALL.len()],
    closes: [Counter; CloseKind::ALL.len()],
}

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn increment(&self) {
        self.add(1);
    }

    fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct TrafficCounter {
    datagrams: Counter,
    bytes: Counter,
}

impl TrafficCounter {
    fn add(&self, bytes: usize) {
        self.datagrams.increment();
        self.bytes.add(bytes as u64);
    }

    fn snapshot(&self) -> Traffic {
        Traffic { datagrams: self.datagrams.get(), bytes: self.bytes.get() }
    }
}

impl Counters {
    /// The current counts. Each is exact, but they are not read atomically together.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            clients: self.clients.load(Ordering::Relaxed),
            sessions: self.sessions.get(),
            to_server: self.to_server.snapshot(),
            to_client: self.to_client.snapshot(),
            unreachable: self.unreachable.get(),
            origins_refused: self.origins_refused.get(),
            bans_refused: self.bans_refused.get(),
            connections_refused: self.connections_refused.get(),
            headers_timed_out: self.headers_timed_out.get(),
            drops: self.drops.each_ref().map(Counter::get),
            closes: self.closes.each_ref().map(Counter::get),
        }
    }

    pub(crate) fn client_connected(&self) {
        self.clients.fetch_add(1, Ordering::Relaxed);
        self.sessions.increment();
    }

    pub(crate) fn client_disconnected(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn sent_to_server(&self, bytes: usize) {
        self.to_server.add(bytes);
    }

    pub(crate) fn sent_to_client(&self, bytes: usize) {
        self.to_client.add(bytes);
    }

    pub(crate) fn dropped(&self, reason: DropReason) {
        self.drops[reason as usize].increment();
    }

    pub(crate) fn closed(&self, kind: CloseKind) {
        self.closes[kind as usize].increment();
    }
}

/// The traffic in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

/// The [`Counters`] at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Connected clients.
    pub clients: u64,
    /// Sessions since the start.
    pub sessions: u64,
    /// Traffic to game servers.
    pub to_server: Traffic,
    /// Traffic to clients.
    pub to_client: Traffic,
    /// How often the network reported that a game server is unreachable.
    pub unreachable: u64,
    /// Requests from pages that may not connect.
    pub origins_refused: u64,
    /// Connections and requests of banned addresses.
    pub bans_refused: u64,
    /// TCP connections that were closed at once because of
    /// [`Limits::max_connections`](crate::Limits::max_connections), or because of the limits of their address.
    pub connections_refused: u64,
    /// TCP connections that were closed because they did not finish the header of a request in time.
    pub headers_timed_out: u64,
    drops: [u64; DropReason::ALL.len()],
    closes: [u64; CloseKind::ALL.len()],
}

impl Snapshot {
    /// Datagrams that were dropped for `reason`.
    #[must_use]
    pub const fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Sessions and rejected requests that ended with `kind`.
    #[must_use]
    pub const fn closes(&self, kind: CloseKind) -> u64 {
        self.closes[kind as usize]
    }
}

/// One line with all counts that are not zero.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, sessions, to_server, to_client, .. } = self;
        write!(f, "{clients} clients of {sessions} sessions")?;
        write!(f, ", {} datagrams ({} bytes) to servers", to_server.datagrams, to_server.bytes)?;
        write!(f, ", {} datagrams ({} bytes) to clients", to_client.datagrams, to_client.bytes)?;
        let drops = DropReason::ALL.map(|reason| (format!("dropped {reason:?}"), self.drops(reason)));
        let closes = CloseKind::ALL.map(|kind| (format!("closed {kind:?}"), self.closes(kind)));
        let others = [
            ("unreachable".to_owned(), self.unreachable),
            ("origins refused".to_owned(), self.origins_refused),
            ("bans refused".to_owned(), self.bans_refused),
            ("connections refused".to_owned(), self.connections_refused),
            ("headers timed out".to_owned(), self.headers_timed_out),
        ];
        for (name, count) in others.into_iter().chain(drops).chain(closes).filter(|(_, count)| *count > 0) {
            write!(f, ", {name}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_prints_the_counts() {
        let counters = Counters::default();
        counters.client_connected();
        counters.client_connected();
        counters.client_disconnected();
        counters.sent_to_server(100);
        counters.sent_to_server(11);
        counters.sent_to_client(7);
        counters.dropped(DropReason::SendRefused);
        counters.closed(CloseKind::ClientVanished);
        counters.connections_refused.increment();
        counters.headers_timed_out.increment();
        counters.headers_timed_out.increment();
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.clients, snapshot.sessions), (1, 2));
        assert_eq!(snapshot.to_server, Traffic { datagrams: 2, bytes: 111 });
        assert_eq!(snapshot.to_client, Traffic { datagrams: 1, bytes: 7 });
        assert_eq!(
            snapshot.to_string(),
            "1 clients of 2 sessions, 2 datagrams (111 bytes) to servers, 1 datagrams (7 bytes) to clients, \
             connections refused: 1, headers timed out: 2, dropped SendRefused: 1, closed ClientVanished: 1"
        );
    }
    #[test]
    fn reasons_are_listed_in_the_order_of_their_values() {
        for (index, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}

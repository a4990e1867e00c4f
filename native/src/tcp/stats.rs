//! Counters of endpoints and connections over TCP.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that tasks share.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of an endpoint since it was bound.
///
/// ```
/// use rakwire_native::tcp::{Endpoint, Options};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Endpoint::bind("127.0.0.1:0", Options::server(1)).await?;
/// let client = Endpoint::bind("127.0.0.1:0", Options::client()).await?;
/// let first = client.connect(server.local_addr()).await?;
/// let second = client.connect(server.local_addr()).await?;
/// second.closed().await; // there is one place
/// assert_eq!(server.stats().refused, 1);
/// # drop(first);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections that are open, or being opened or closed by others.
    pub incoming: usize,
    /// Connections of others that were closed at once, since there were [`max_incoming`](super::Options::max_incoming).
    pub refused: u64,
    /// Connections of others that were closed at once, since their address had
    /// [`max_per_address`](super::Options::max_per_address).
    pub refused_by_address: u64,
    /// Connections of others that were closed at once, since their network had
    /// [`max_per_network`](super::Options::max_per_network).
    pub refused_by_network: u64,
    /// Handshakes of TLS that failed or took too long.
    pub handshakes_failed: u64,
    /// Calls in which the system could not accept a connection, mostly because the process has no descriptor left.
    pub accept_failures: u64,
}

/// The counters of a connection since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages that were given to the system.
    pub messages_sent: u64,
    /// Their bytes, without headers.
    pub bytes_sent: u64,
    /// Messages that have arrived.
    pub messages_received: u64,
    /// Their bytes, without headers.
    pub bytes_received: u64,
    /// Messages that were dropped because they arrived after [`disconnect`](super::Connection::disconnect), while the receive
    /// queue was full.
    pub messages_dropped: u64,
}

/// The counters of a connection, as its tasks count.
#[derive(Debug, Default)]
pub(super) struct ConnectionCounters {
    pub(super) messages_sent: Counter,
    pub(super) bytes_sent: Counter,
    pub(super) messages_received: Counter,
    pub(super) bytes_received: Counter,
    pub(super) messages_dropped: Counter,
}

impl ConnectionCounters {
    pub(super) fn read(&self) -> ConnectionStats {
        ConnectionStats {
            messages_sent: self.messages_sent.get(),
            bytes_sent: self.bytes_sent.get(),
            messages_received: self.messages_received.get(),
            bytes_received: self.bytes_received.get(),
            messages_dropped: self.messages_dropped.get(),
        }
    }
}

//! Counters of an endpoint.

use rakwire::endpoint::{PeerStats, Protocol};

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
    /// Connections, including those that are being opened or closed.
    pub connections: usize,
    /// Blocks of memory for messages.
    pub blocks: usize,
    /// Blocks that are free.
    pub blocks_available: usize,
    /// Datagrams that were dropped because [`arrival_queue`](super::Options::arrival_queue) was full, or because 1,024
    /// requests from peers without a connection were waiting.
    pub arrival_queue_full: u64,
    /// Datagrams that were dropped because they were longer than 2,048 bytes, which neither protocol sends.
    pub too_long: u64,
    /// Datagrams of [trusted proxies](super::Options::trusted_proxies) that were dropped because the header before them cannot be read, or
    /// because 262,144 clients of proxies have been heard within five minutes.
    pub proxy_headers_refused: u64,
    /// Datagrams with messages that were dropped because the [`receive_queue`](super::Options::receive_queue) of their
    /// connection was full. The other peer resends reliable messages.
    pub receive_queue_full: u64,
    /// Connections that were closed at once, and requests that were dropped where the application
    /// [decides](super::Options::defer_incoming), because the [`backlog`](super::Options::backlog) was full.
    pub backlog_full: u64,
    /// Messages from peers without a connection that were dropped because 256 of them were waiting to be received.
    pub unconnected_queue_full: u64,
    /// Clients that were refused by their password, their identity or their connect token
    /// ([`Endpoint::refused_client`](super::Endpoint::refused_client)).
    pub refused_clients: u64,
    /// How often a task that waits to send was woken, because its connection had room again or ended.
    pub sender_wakes: u64,
    /// Datagrams that the system could not send.
    pub send_failures: u64,
    /// Receive calls that failed.
    pub receive_failures: u64,
    /// Methods of the hook that panicked. The endpoint goes on, and drops what such a method was asked about.
    pub hook_panics: u64,
}

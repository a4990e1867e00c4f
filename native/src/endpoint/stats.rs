//! Counters of an endpoint.

use rakwire::endpoint::{PeerStats, Protocol};

/// Counters of an endpoint since it was bound, and what it holds now.
///
/// ```
/// use rakwire_native::{Endpoint, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
/// let stats = endpoint.stats();
/// assert_eq!((stats.connections, stats.arrival_queue_full), (0, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct EndpointStats<P: Protocol> {
    /// The counters of the protocol.
    pub peer: PeerStats<P::DropReason>,
    /// Connections that exist now, also those that begin or end.
    pub connections: usize,
    /// Blocks of memory for messages on their way.
    pub blocks: usize,
    /// Blocks that hold nothing now.
    pub blocks_available: usize,
    /// Datagrams dropped because too many waited for the protocol.
    pub arrival_queue_full: u64,
    /// Datagrams dropped because they were longer than any peer sends: more than 2,048 bytes.
    pub too_long: u64,
    /// Datagrams with messages dropped because the application had not read what came before. The other peer sends again
    /// what is reliable.
    pub unread: u64,
    /// Connections turned away because too many waited to be accepted.
    pub backlog_full: u64,
    /// Messages without a connection dropped because the application had not read those before.
    pub unconnected_dropped: u64,
    /// How often a task that waits to send was woken, because its connection had room again or ended.
    pub sender_wakes: u64,
    /// Datagrams that the system refused to send.
    pub send_failures: u64,
    /// Receive calls that failed.
    pub receive_failures: u64,
}

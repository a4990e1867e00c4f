//! Counters of messages that are dropped, and replicon's statistics of a connection.

use bevy_replicon::prelude::ClientStats;
use rakwire::raknet::ConnectionStats;

/// The numbers of messages that a server or client has dropped since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Received messages without a channel prefix, or with a channel that replicon has not registered.
    ///
    /// The sender probably runs another version of the game, or another program.
    pub unknown_channel: u64,
    /// Unreliable messages that did not fit into the send queue of their connection.
    ///
    /// A message longer than a datagram is also dropped while 256 KiB of such messages are in flight.
    /// Replicon resends mutations.
    pub unreliable: u64,
    /// Messages for a closed connection, and reliable ones that were still queued when their connection closed.
    pub not_connected: u64,
    /// Messages longer than a connection allows. If such a message is reliable, its connection is closed.
    pub too_large: u64,
}

/// Converts the statistics of a connection to replicon's units: seconds, percent, and bytes per second.
pub(crate) fn statistics(stats: &ConnectionStats) -> ClientStats {
    ClientStats {
        rtt: stats.round_trip.as_secs_f64(),
        packet_loss: stats.loss_last_second() * 100.0,
        sent_bps: stats.actual_bytes_sent.last_second.into(),
        received_bps: stats.actual_bytes_received.last_second.into(),
    }
}

//! Counters of messages that are dropped, and replicon's statistics of a connection.

use bevy_replicon::prelude::ClientStats;
use rakwire::raknet::ConnectionStats;

/// The numbers of messages that a server or a client has dropped since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Received messages that begin with no channel, or with one that replicon did not create.
    ///
    /// Their sender has other channels, which means another version of the game, or is no game.
    pub unknown_channel: u64,
    /// Unreliable messages that found no room in their connection.
    ///
    /// One that exceeds a datagram finds no room while others of that kind with 256 KiB together are in flight.
    /// Replicon sends mutations again.
    pub unreliable: u64,
    /// Messages for a connection that has ended.
    pub not_connected: u64,
    /// Messages that are larger than a connection may hold. If such a message is reliable, its connection is closed.
    pub too_large: u64,
}

/// Returns the statistics of a connection as replicon has them: seconds, percent, and bytes per second.
pub(crate) fn statistics(stats: &ConnectionStats) -> ClientStats {
    ClientStats {
        rtt: stats.round_trip.as_secs_f64(),
        packet_loss: stats.loss_last_second() * 100.0,
        sent_bps: stats.actual_bytes_sent.last_second.into(),
        received_bps: stats.actual_bytes_received.last_second.into(),
    }
}

//! Counters and measurements by name.

use rakwire_native::{ConnectionStats, RakNet, polled};

/// The numbers of dropped messages by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Received messages that are not in the format of a `RakwirePeer`.
    pub unknown: u64,
    /// Unreliable packets dropped because the send queue of their connection was full.
    pub unreliable: u64,
    /// Packets put for a peer while its connection was closing.
    pub not_connected: u64,
    /// Packets received from a peer that this side was disconnecting.
    pub leaving: u64,
}

/// A counter or a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A number of events or bytes.
    Count(u64),
    /// A time in seconds, or a fraction from 0 to 1.
    Number(f64),
}

/// Counters and measurements by name.
pub type Figures = Vec<(&'static str, Figure)>;

/// Returns the statistics of a connection.
pub(crate) fn of_connection(stats: &ConnectionStats) -> Figures {
    use Figure::{Count, Number};

    let (messages, bytes) = stats.waiting.iter().fold((0, 0), |(messages, bytes), waiting| {
        (messages + u64::from(waiting.messages), bytes + u64::from(waiting.bytes))
    });
    vec![
        ("round_trip", Number(stats.round_trip.as_secs_f64())),
        ("last_ping", Number(stats.last_ping.as_secs_f64())),
        ("average_ping", Number(stats.average_ping.as_secs_f64())),
        ("lowest_ping", Number(stats.lowest_ping.as_secs_f64())),
        ("loss", Number(stats.loss())),
        ("loss_last_second", Number(stats.loss_last_second())),
        ("messages_sent", Count(stats.messages_sent)),
        ("messages_received", Count(stats.messages_received)),
        ("datagrams_sent", Count(stats.datagrams_sent)),
        ("datagrams_received", Count(stats.datagrams_received)),
        ("datagrams_lost", Count(stats.datagrams_lost)),
        ("bytes_sent", Count(stats.actual_bytes_sent.total)),
        ("bytes_sent_last_second", Count(stats.actual_bytes_sent.last_second.into())),
        ("bytes_received", Count(stats.actual_bytes_received.total)),
        ("bytes_received_last_second", Count(stats.actual_bytes_received.last_second.into())),
        ("bytes_resent", Count(stats.bytes_resent.total)),
        ("messages_waiting", Count(messages)),
        ("bytes_waiting", Count(bytes)),
        ("bytes_in_flight", Count(stats.in_flight.into())),
        ("congestion_window", Count(stats.congestion_window.into())),
        ("mtu", Count(stats.mtu.into())),
    ]
}

/// Returns the statistics of a socket.
pub(crate) fn of_endpoint(endpoint: &polled::Endpoint<RakNet>, dropped: Dropped) -> Figures {
    use Figure::Count;

    let stats = endpoint.stats();
    vec![
        ("connections", Count(endpoint.connections() as u64)),
        ("datagrams_sent", Count(stats.peer.datagrams_sent)),
        ("datagrams_received", Count(stats.peer.datagrams_received)),
        ("datagrams_dropped", Count(stats.peer.drops().map(|(_, count)| count).sum())),
        ("bytes_sent", Count(stats.peer.bytes_sent)),
        ("bytes_received", Count(stats.peer.bytes_received)),
        ("send_failures", Count(stats.send_failures)),
        ("receive_failures", Count(stats.receive_failures)),
        ("messages_unknown", Count(dropped.unknown)),
        ("packets_without_room", Count(dropped.unreliable)),
        ("packets_to_leaving_peers", Count(dropped.not_connected)),
        ("packets_from_leaving_peers", Count(dropped.leaving)),
    ]
}

//! Records for the writing thread: datagrams, and counters and measurements as named numbers.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rakwire::endpoint::{Direction, Protocol};
use rakwire_native::endpoint::EndpointStats;
use rakwire_native::{game_protocol, raknet};

#[derive(Debug)]
pub(super) enum Record {
    Datagram(Datagram),
    Samples(Samples),
    /// Notified when all earlier records are in the file.
    Flush(SyncSender<()>),
}

#[derive(Debug)]
pub(super) struct Datagram {
    /// Time since 1970-01-01 UTC, like all times here.
    pub(super) at: Duration,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) direction: Direction,
    pub(super) kind: &'static str,
    pub(super) description: String,
    pub(super) length: u32,
    pub(super) bytes: Option<Box<[u8]>>,
}

/// Describes a datagram with its most important numbers.
pub(super) fn describe<P: Protocol>(datagram: &[u8]) -> String {
    struct Description<'d, P>(&'d [u8], PhantomData<P>);

    impl<P: Protocol> fmt::Display for Description<'_, P> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            P::describe(self.0, f)
        }
    }

    Description::<P>(datagram, PhantomData).to_string()
}

/// Returns the wall-clock time.
pub(super) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[derive(Debug)]
pub(super) struct Samples {
    pub(super) at: Duration,
    pub(super) local: SocketAddr,
    pub(super) remote: Option<SocketAddr>,
    pub(super) values: Vec<(String, f64)>,
}

/// Values that a log can write as a sample. Applications can implement this trait for their own types.
///
/// ```
/// use rakwire_extras::sqlite_log::Sample;
///
/// struct Players(u32);
///
/// impl Sample for Players {
///     fn values(&self) -> Vec<(String, f64)> {
///         vec![("players".to_owned(), self.0.into())]
///     }
/// }
///
/// assert_eq!(Players(7).values()[0].1, 7.0);
/// ```
pub trait Sample {
    /// Returns the values with their names. Times are in seconds.
    fn values(&self) -> Vec<(String, f64)>;
}

fn named<const N: usize>(values: [(&str, f64); N]) -> Vec<(String, f64)> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Includes the drop reasons that have occurred, with names such as `dropped_TooShort`.
impl<P: Protocol> Sample for EndpointStats<P> {
    fn values(&self) -> Vec<(String, f64)> {
        let peer = &self.peer;
        let mut values = named([
            ("datagrams_received", peer.datagrams_received as f64),
            ("bytes_received", peer.bytes_received as f64),
            ("datagrams_refused", peer.datagrams_refused as f64),
            ("datagrams_sent", peer.datagrams_sent as f64),
            ("bytes_sent", peer.bytes_sent as f64),
            ("connections", self.connections as f64),
            ("blocks", self.blocks as f64),
            ("blocks_available", self.blocks_available as f64),
            ("arrival_queue_full", self.arrival_queue_full as f64),
            ("too_long", self.too_long as f64),
            ("proxy_headers_refused", self.proxy_headers_refused as f64),
            ("receive_queue_full", self.receive_queue_full as f64),
            ("backlog_full", self.backlog_full as f64),
            ("unconnected_queue_full", self.unconnected_queue_full as f64),
            ("sender_wakes", self.sender_wakes as f64),
            ("send_failures", self.send_failures as f64),
            ("receive_failures", self.receive_failures as f64),
            ("hook_panics", self.hook_panics as f64),
        ]);
        let drops = peer.drops().filter(|(_, count)| *count > 0);
        values.extend(drops.map(|(reason, count)| (format!("dropped_{reason:?}"), count as f64)));
        values
    }
}

impl Sample for raknet::ConnectionStats {
    fn values(&self) -> Vec<(String, f64)> {
        named([
            ("messages_sent", self.messages_sent as f64),
            ("messages_received", self.messages_received as f64),
            ("datagrams_sent", self.datagrams_sent as f64),
            ("datagrams_received", self.datagrams_received as f64),
            ("datagrams_lost", self.datagrams_lost as f64),
            ("datagrams_late", self.datagrams_late as f64),
            ("datagrams_missing", self.datagrams_missing() as f64),
            ("datagrams_acknowledged", self.datagrams_acknowledged as f64),
            ("bytes_sent", self.bytes_sent.total as f64),
            ("bytes_resent", self.bytes_resent.total as f64),
            ("bytes_processed", self.bytes_processed.total as f64),
            ("actual_bytes_sent", self.actual_bytes_sent.total as f64),
            ("actual_bytes_received", self.actual_bytes_received.total as f64),
            ("round_trip", self.round_trip.as_secs_f64()),
            ("last_ping", self.last_ping.as_secs_f64()),
            ("congestion_window", self.congestion_window.into()),
            ("in_flight", self.in_flight.into()),
            ("mtu", self.mtu.into()),
        ])
    }
}

impl Sample for game_protocol::ConnectionStats {
    fn values(&self) -> Vec<(String, f64)> {
        named([
            ("messages_sent", self.messages_sent as f64),
            ("messages_received", self.messages_received as f64),
            ("chunks_sent", self.chunks_sent as f64),
            ("chunks_resent", self.chunks_resent as f64),
            ("chunks_late", self.chunks_late as f64),
            ("chunks_missing", self.chunks_missing() as f64),
            ("chunks_received", self.chunks_received as f64),
            ("chunks_acknowledged", self.chunks_acknowledged as f64),
            ("in_flight", self.in_flight.into()),
            ("waiting", self.waiting.into()),
            ("round_trip", self.round_trip.as_secs_f64()),
        ])
    }
}

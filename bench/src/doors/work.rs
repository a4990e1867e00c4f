//! The work of a client, and its result.

use serde::Serialize;

/// The length of a message in bytes.
pub(super) const LENGTH: usize = 64;
/// The number of messages in flight when the rate of messages is measured.
pub(super) const WINDOW: usize = 256;

/// The workload of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Work {
    /// One message in flight: the rate is the number of round trips.
    RoundTrips,
    /// A window of messages in flight.
    Messages,
}

impl Work {
    pub(super) const ALL: [Self; 2] = [Self::RoundTrips, Self::Messages];

    pub(super) const fn window(self) -> usize {
        match self {
            Self::RoundTrips => 1,
            Self::Messages => WINDOW,
        }
    }
}

/// The result of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Measured {
    pub(super) work: Work,
    /// Echoes per second.
    pub(super) rate: f64,
    /// The CPU time of the client per echo in microseconds.
    pub(super) cpu_us: f64,
}

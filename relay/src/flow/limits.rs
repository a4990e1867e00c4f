//! The limits of a flow.

use std::num::NonZeroUsize;
use std::time::Duration;

/// The limits of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowLimits {
    /// The longest datagram of a client, in bytes of payload; 1472 by default. A longer one ends the flow.
    pub max_datagram: usize,
    /// The most datagrams that wait in each direction; 256 by default. A full queue drops its oldest one.
    pub queue: NonZeroUsize,
    /// The most bytes of datagrams that wait in each direction; 256 KiB by default. A full queue drops its oldest
    /// datagrams. One datagram always fits.
    pub queue_bytes: NonZeroUsize,
    /// How long a datagram may wait before it is dropped; 1 s by default.
    pub queue_age: Duration,
    /// How long a flow may be without a datagram in either direction; 60 s by default.
    pub idle_timeout: Duration,
    /// The interval of pings; 15 s by default. A client that sends nothing for three of them counts as lost.
    pub ping_interval: Duration,
    /// How long a flow whose client is lost waits for it; 30 s by default. Zero: no flow can be resumed.
    pub resume_within: Duration,
    /// How much a client may send; `None`, the default, is no limit. What exceeds it is dropped.
    pub rate: Option<Rate>,
}

/// How much a client may send to its game server. A burst of one second's worth passes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Datagrams per second.
    pub datagrams: NonZeroUsize,
    /// Bytes of payload per second.
    pub bytes: NonZeroUsize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            max_datagram: 1472,
            queue: const { NonZeroUsize::new(256).expect("256 is not zero") },
            queue_bytes: const { NonZeroUsize::new(256 * 1024).expect("262144 is not zero") },
            queue_age: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
            ping_interval: Duration::from_secs(15),
            resume_within: Duration::from_secs(30),
            rate: None,
        }
    }
}

//! What the congestion controllers are told, and what they share.

use crate::serial::U24;
use crate::time::Instant;

/// Datagrams in the first window (RFC 9002 section 7.2).
pub(in super::super) const INITIAL_DATAGRAMS: u32 = 10;
/// Datagrams in the smallest window. RFC 9002 section 7.2 has 2; `docs/congestion.md` says why this is larger.
pub(super) const MIN_DATAGRAMS: u32 = 8;
/// Datagrams in the largest window: as many as one acknowledgement may make this end look up.
pub(super) const MAX_DATAGRAMS: u32 = 8_192;

/// What an acknowledgement says of the path.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct AckSample {
    pub(in super::super) now: Instant,
    /// Bytes that were in flight and are acknowledged.
    pub(in super::super) bytes: u32,
    /// Those of them that were sent after the recovery period had begun, or all if there is none.
    pub(in super::super) bytes_after_recovery: u32,
    /// Bytes in flight before.
    pub(in super::super) in_flight: u32,
    /// The newest number that was acknowledged.
    pub(in super::super) newest: U24,
    /// The number of the next datagram that will be sent.
    pub(in super::super) next: U24,
    /// Microseconds since the newest acknowledged datagram was sent.
    pub(in super::super) rtt: u32,
    /// Microseconds between the sending of the oldest and of the newest acknowledged datagram. The other peer waited at
    /// least that long before it acknowledged the oldest.
    pub(in super::super) ack_span: u32,
    /// Whether a stream carries the datagrams.
    pub(in super::super) is_over_stream: bool,
}

/// How a loss was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum LossTrigger {
    /// A later datagram was acknowledged and the time threshold is over (RFC 9002 section 6.1.2). The acknowledgement may
    /// be what was lost.
    TimeThreshold,
    /// Nothing was acknowledged until the retransmission timeout. The acknowledgements may be what was lost.
    Timeout,
    /// The other peer sent a negative acknowledgement.
    Nack,
}

/// A datagram that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Loss {
    pub(in super::super) now: Instant,
    pub(in super::super) sent_at: Instant,
    pub(in super::super) bytes: u32,
    /// How many were declared lost before, modulo 2^32.
    pub(in super::super) ordinal: u32,
    pub(in super::super) trigger: LossTrigger,
}

/// How fast a window grows, and so how fast datagrams leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    SlowStart,
    Steady,
}

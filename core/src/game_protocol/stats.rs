//! Counters. They only grow, and at 64 bits never wrap in practice.

use core::time::Duration;

use crate::endpoint::DropReasons;

drop_reasons! {
    /// Why something that arrived, or waited too long to leave, was dropped. Nothing from the network is ever an error
    /// of a call: it is counted here.
    pub enum DropReason {
        /// Three bytes or fewer.
        TooShort,
        /// A packet from an address that has no connection.
        UnknownSource,
        /// A message of the handshake that nobody waits for, or that comes again.
        Unexpected,
        /// A salt beyond the limit of challenges.
        ChallengeLimit,
        /// An answer that a later one pushed out of its queue.
        AnswersFull,
        /// A right answer to a challenge while every place is taken.
        Full,
        /// A right answer to a challenge from an address or network that has as many connections as it may have.
        AddressLimit,
        /// A chunk that breaks the rules: an inner one that is not 504 bytes long, a last one that is longer, chunk 255
        /// that is not the last, or one that contradicts the others of its payload.
        BadChunk,
        /// A chunk that arrived before, or of a payload that was delivered before.
        Duplicate,
        /// A chunk 1,024 sequences or more behind the newest.
        OutsideWindow,
        /// A payload that lacked chunks when the window passed it.
        Incomplete,
        /// An unreliable payload that lacked chunks for too long, or one of our own that waited too long to be sent.
        Expired,
        /// A chunk for which there is no memory: it is not acknowledged, and a peer that sent it reliably resends it.
        NoMemory,
        /// A chunk whose acknowledgement would find no room. The peer resends it.
        AcknowledgementsFull,
        /// An acknowledgement of nothing that is under way.
        UnknownAcknowledgement,
        /// A packet of a connection that is over.
        Ended,
    }
}

/// Counters and measurements of one connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Messages of the application accepted by `send`.
    pub messages_sent: u64,
    /// Messages given to the application.
    pub messages_received: u64,
    /// Chunks sent for the first time.
    pub chunks_sent: u64,
    /// Chunks sent again. Some may only have been late: [`chunks_missing`](Self::chunks_missing) is without them.
    pub chunks_resent: u64,
    /// Chunks sent again for nothing: they were acknowledged once more than needed, so that an earlier one had arrived, too.
    pub chunks_late: u64,
    /// Chunks that arrived and were of use.
    pub chunks_received: u64,
    /// Chunks that were acknowledged.
    pub chunks_acknowledged: u64,
    /// Chunks sent and not acknowledged yet.
    pub in_flight: u32,
    /// Chunks that wait to be sent for the first time.
    pub waiting: u32,
    /// Payloads that arrived in part.
    pub partial: u32,
    /// Smoothed round-trip time, zero before the first sample.
    pub round_trip: Duration,
}

impl ConnectionStats {
    /// Chunks sent again that nothing shows to have arrived before: what the path has lost, and what it still delays. Unlike the
    /// counters it falls when a chunk arrives late.
    #[must_use]
    pub const fn chunks_missing(&self) -> u64 {
        self.chunks_resent.saturating_sub(self.chunks_late)
    }
}

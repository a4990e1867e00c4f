//! Bugs for tests of the tests: each can be switched on at run time, one at a time, and must be found.
//!
//! Without the feature `planted-bugs` every question here has a constant answer, and nothing of it is compiled.

/// A bug that can be switched on.
///
/// ```
/// use rakwire::planted::{self, Planted};
///
/// planted::plant(Some(Planted::LostForgotten));
/// planted::plant(None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Planted {
    /// Ordered messages are delivered when they arrive.
    OrderedEarly = 1,
    /// A sequenced message passes although a newer one was delivered.
    SequencedOlder,
    /// The sequence goes on where an ordered message should begin it anew.
    SequenceGoesOn,
    /// The datagram after the one that arrived counts as seen.
    SeenOffByOne,
    /// The numbers that a jump leaves out count as seen.
    GapsSeen,
    /// Datagram numbers are compared as if they never wrapped.
    PlainCompare,
    /// A reliable message that arrived behind a gap is not remembered.
    ArrivalForgotten,
    /// What was lost is not sent again.
    LostForgotten,
    /// An acknowledgement frees the datagram after the one that it names.
    AckOffByOne,
    /// A run of records is one too long.
    RecordTooLong,
    /// The last part of a split message is left out.
    LastPartLeftOut,
    /// The room promised to a message in parts is never given back.
    PromiseKept,
    /// What is in flight when a connection ends is never given back.
    LeakAtEnd,
    /// What the application has read still counts as held.
    ReadStillHeld,
    /// A timer that went off is not set again.
    TimerNotRearmed,
    /// A capsule of no length is taken.
    EmptyCapsule,
    /// A capsule on a channel that does not exist is taken.
    AnyChannel,
    /// Any cookie proves any address.
    AnyCookie,
    /// A farewell does not wait for what was sent before.
    HastyFarewell,
    /// The Game Protocol does not remember which payloads were delivered.
    DeliveryForgotten,
    /// The Game Protocol compares sequences as if they never wrapped.
    PlainSequences,
    /// The Game Protocol acknowledges a chunk that found no memory.
    RefusedAcknowledged,
    /// The Game Protocol does not send a chunk again.
    ChunkForgotten,
    /// The Game Protocol takes an acknowledgement for the next chunk.
    ChunkOffByOne,
    /// The Game Protocol leaves out the last chunk of a payload.
    LastChunkLeftOut,
    /// The Game Protocol sends END before what was sent reliably has arrived.
    HastyEnd,
    /// The Game Protocol takes any four bytes for the answer to its challenge.
    AnySeasoning,
    /// The Game Protocol does not give back what is not acknowledged when a connection ends.
    FlightKept,
    /// The Game Protocol delivers unreliable payloads as reliable ones.
    ReliabilityMixedUp,
}

impl Planted {
    /// Every bug.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: [Self; 29] = [
        Self::OrderedEarly,
        Self::SequencedOlder,
        Self::SequenceGoesOn,
        Self::SeenOffByOne,
        Self::GapsSeen,
        Self::PlainCompare,
        Self::ArrivalForgotten,
        Self::LostForgotten,
        Self::AckOffByOne,
        Self::RecordTooLong,
        Self::LastPartLeftOut,
        Self::PromiseKept,
        Self::LeakAtEnd,
        Self::ReadStillHeld,
        Self::TimerNotRearmed,
        Self::EmptyCapsule,
        Self::AnyChannel,
        Self::AnyCookie,
        Self::HastyFarewell,
        Self::DeliveryForgotten,
        Self::PlainSequences,
        Self::RefusedAcknowledged,
        Self::ChunkForgotten,
        Self::ChunkOffByOne,
        Self::LastChunkLeftOut,
        Self::HastyEnd,
        Self::AnySeasoning,
        Self::FlightKept,
        Self::ReliabilityMixedUp,
    ];
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Planted;

    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    /// Switches one bug on for the whole process, or all off.
    pub fn plant(bug: Option<Planted>) {
        ACTIVE.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
    }

    pub(crate) fn is_on(bug: Planted) -> bool {
        ACTIVE.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(not(feature = "planted-bugs"))]
mod switch {
    use super::Planted;

    pub(crate) const fn is_on(_bug: Planted) -> bool {
        false
    }
}

pub(crate) use switch::is_on;
#[cfg(feature = "planted-bugs")]
pub use switch::plant;

/// The right value, or the wrong one while the bug is on.
#[inline]
pub(crate) fn or<T>(bug: Planted, wrong: T, right: T) -> T {
    if is_on(bug) { wrong } else { right }
}

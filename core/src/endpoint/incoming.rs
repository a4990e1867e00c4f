//! How connections that others opened are counted.

use super::client_limits::{ClientLimits, Origin};
use crate::rate_limit::Ration;

/// How a connection counts among those that others opened. It is kept for each, so it is one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incoming(u8);

const COUNTED: u8 = 1;
const HALF_OPEN: u8 = 2;
const UNVALIDATED: u8 = 4;

impl Incoming {
    /// This end opened it, or it has ended.
    pub(crate) const NO: Self = Self(0);

    /// Another peer opened it, and it has not ended.
    pub(crate) const fn new(is_half_open: bool, is_unvalidated: bool) -> Self {
        let half_open = if is_half_open { HALF_OPEN } else { 0 };
        let unvalidated = if is_unvalidated { UNVALIDATED } else { 0 };
        Self(COUNTED | half_open | unvalidated)
    }

    pub(crate) const fn is_counted(self) -> bool {
        self.0 & COUNTED != 0
    }

    /// Whether the other peer has not introduced itself.
    pub(crate) const fn is_half_open(self) -> bool {
        self.0 & HALF_OPEN != 0
    }

    /// Whether the other peer has not shown that its address is its own.
    pub(crate) const fn is_unvalidated(self) -> bool {
        self.0 & UNVALIDATED != 0
    }

    /// Whether the other peer has shown that its address is its own, if the connection counts like `after` now.
    pub(crate) const fn is_validated_by(self, after: Self) -> bool {
        self.is_unvalidated() && after.is_counted() && !after.is_unvalidated()
    }
}

/// An origin and the limits that it has reached.
pub(crate) type CrowdedOrigin = (Origin, ClientLimits);

/// Origins that are remembered; boards have few connections to look at.
const CROWDED: usize = if cfg!(all(feature = "alloc", feature = "server")) { 2 } else { 0 };

/// The connections of a peer that others opened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IncomingCounts {
    pub(crate) all: u16,
    /// Those of them that are half open.
    pub(crate) half_open: u16,
    /// Those of them, open or not, whose address is not validated.
    pub(crate) unvalidated: u16,
    /// Further ones that may be let in without a validated address, where that depends on the load.
    pub(crate) ration: Ration,
    /// The origins that were found crowded last, by clients without and with a validated address, as long as no connection
    /// counts otherwise than then: further clients of the same origin are refused without looking at all connections.
    crowded: [Option<CrowdedOrigin>; CROWDED],
}

impl IncomingCounts {
    /// A connection that counted like `before` counts like `after`.
    #[cold]
    pub(crate) const fn change(&mut self, before: Incoming, after: Incoming) {
        recount(&mut self.all, before.is_counted(), after.is_counted());
        recount(&mut self.half_open, before.is_half_open(), after.is_half_open());
        recount(&mut self.unvalidated, before.is_unvalidated(), after.is_unvalidated());
        self.crowded = [None; CROWDED];
    }

    pub(crate) fn is_crowded(&self, origin: CrowdedOrigin, is_validated: bool) -> bool {
        self.crowded.get(usize::from(is_validated)) == Some(&Some(origin))
    }

    pub(crate) fn note_crowded(&mut self, origin: CrowdedOrigin, is_validated: bool) {
        if let Some(crowded) = self.crowded.get_mut(usize::from(is_validated)) {
            *crowded = Some(origin);
        }
    }
}

const fn recount(count: &mut u16, before: bool, after: bool) {
    match (before, after) {
        (false, true) => *count = count.saturating_add(1),
        (true, false) => *count = count.saturating_sub(1),
        (false, false) | (true, true) => {}
    }
}

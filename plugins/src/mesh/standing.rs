//! How long the members have been connected, as numbers on which they agree without a common clock.

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::Guid;

/// Whose time comes first has been connected longest; of two equal times the lower GUID comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// When the member joined, in milliseconds of the epoch; before zero if it is older than the epoch.
    pub joined: i64,
    /// The member.
    pub guid: Guid,
}

/// What a member says of the common time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Whose clock it is: the GUID of who began it.
    pub founder: Guid,
    /// How late it is in the epoch, in milliseconds.
    pub now: i64,
}

/// Since when this peer has been connected, in the epoch that it shares with the other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) founder: Guid,
    /// What is added to this peer's clock to get the time in the epoch.
    offset: i64,
    pub(super) joined: i64,
}

fn millis(now: Instant) -> i64 {
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl Standing {
    /// Begins an epoch.
    pub(super) fn found(now: Instant, own: Guid) -> Self {
        Self { founder: own, offset: millis(now).saturating_neg(), joined: 0 }
    }

    /// Joins an epoch, behind all who are in it.
    pub(super) fn join(now: Instant, epoch: Epoch) -> Self {
        let offset = epoch.now.saturating_sub(millis(now));
        Self { founder: epoch.founder, offset, joined: epoch.now.saturating_add(1) }
    }

    /// Takes over another epoch, and keeps the time for which this peer has been connected.
    pub(super) fn move_to(self, now: Instant, epoch: Epoch) -> Self {
        let age = self.now(now).saturating_sub(self.joined);
        let offset = epoch.now.saturating_sub(millis(now));
        Self { founder: epoch.founder, offset, joined: epoch.now.saturating_sub(age) }
    }

    pub(super) fn now(&self, now: Instant) -> i64 {
        millis(now).saturating_add(self.offset)
    }

    pub(super) fn epoch(&self, now: Instant) -> Epoch {
        Epoch { founder: self.founder, now: self.now(now) }
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        let age = self.now(now).saturating_sub(self.joined);
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }
}

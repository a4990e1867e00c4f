//! Join times of the members of a mesh, without a common clock.

use core::time::Duration;

use rakwire::Instant;
use rakwire::raknet::Guid;

/// The seniority of a member: earlier join times come first, and for equal times the lower GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The join time in milliseconds of the epoch; negative if the member joined before the epoch began.
    pub joined: i64,
    /// The member.
    pub guid: Guid,
}

/// The common time of a mesh, as a member announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The GUID of the member that started the epoch. The time of the epoch follows its clock.
    pub founder: Guid,
    /// The current time in the epoch, in milliseconds.
    pub now: i64,
}

/// The join time of this peer, in the epoch that it shares with the other members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) founder: Guid,
    /// The offset from this peer's clock to the time of the epoch.
    offset: i64,
    pub(super) joined: i64,
}

fn millis(now: Instant) -> i64 {
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

impl Membership {
    /// Starts an epoch.
    pub(super) fn founder(now: Instant, own: Guid) -> Self {
        Self { founder: own, offset: millis(now).saturating_neg(), joined: 0 }
    }

    /// Joins an epoch as its newest member.
    pub(super) fn join(now: Instant, epoch: Epoch) -> Self {
        let offset = epoch.now.saturating_sub(millis(now));
        Self { founder: epoch.founder, offset, joined: epoch.now.saturating_add(1) }
    }

    /// Switches to another epoch. The age of this peer does not change.
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

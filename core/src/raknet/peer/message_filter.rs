//! An allow list of message IDs for groups of remote peers (docs/raknet.md#message-filter).

use heapless::Vec;

use crate::cursor::{Chunks, Piece};
use crate::endpoint::{ConnectionId, Event, Hook, MessageIds, Plugin, Verdict};
use crate::raknet::config::RakNet;
use crate::raknet::delivery::Delivery;
use crate::raknet::reason::DisconnectReason;
use crate::time::Instant;

/// A group of remote peers with the same permissions, 0 to 7; 0 is the default group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FilterGroup(pub u8);

impl FilterGroup {
    /// The group of every connection that has not been assigned to another group.
    pub const DEFAULT: Self = Self(0);
}

/// The number of groups, including the default group.
pub const FILTER_GROUPS: usize = 8;

/// A hook and plugin that drops and counts messages with IDs that the group of their sender may not send.
///
/// `MEMBERS` is the maximum number of connections outside the default group.
///
/// ```
/// use rakwire::raknet::{FilterGroup, MessageFilter};
///
/// const GUESTS: FilterGroup = FilterGroup::DEFAULT;
/// const PLAYERS: FilterGroup = FilterGroup(1);
/// let mut filter = MessageFilter::<64>::new();
/// filter.deny_all(GUESTS);
/// filter.allow(GUESTS, 0x86..=0x86); // a guest may only send login messages
/// assert!(filter.is_allowed(PLAYERS, 0x90));
/// assert!(!filter.is_allowed(GUESTS, 0x90));
/// ```
#[derive(Debug)]
pub struct MessageFilter<const MEMBERS: usize> {
    allowed: [MessageIds; FILTER_GROUPS],
    members: Vec<(ConnectionId, FilterGroup), MEMBERS>,
    dropped: u64,
}

impl<const MEMBERS: usize> MessageFilter<MEMBERS> {
    /// Creates a filter that allows every message.
    #[must_use]
    pub const fn new() -> Self {
        Self { allowed: [MessageIds::ALL; FILTER_GROUPS], members: Vec::new(), dropped: 0 }
    }

    /// Allows a group to send messages with these IDs.
    pub fn allow(&mut self, group: FilterGroup, ids: impl IntoIterator<Item = u8>) {
        if let Some(allowed) = self.allowed.get_mut(usize::from(group.0)) {
            ids.into_iter().for_each(|id| allowed.insert(id));
        }
    }

    /// Forbids a group from sending messages with these IDs.
    pub fn deny(&mut self, group: FilterGroup, ids: impl IntoIterator<Item = u8>) {
        if let Some(allowed) = self.allowed.get_mut(usize::from(group.0)) {
            ids.into_iter().for_each(|id| allowed.remove(id));
        }
    }

    /// Forbids a group from sending any message; allow individual IDs afterwards.
    pub fn deny_all(&mut self, group: FilterGroup) {
        self.deny(group, 0..=u8::MAX);
    }

    /// Returns true if a group may send messages with this ID. It is false for a group that does not exist.
    #[must_use]
    pub fn is_allowed(&self, group: FilterGroup, id: u8) -> bool {
        self.allowed.get(usize::from(group.0)).is_some_and(|allowed| allowed.contains(id))
    }

    /// Assigns a connection to a group.
    ///
    /// Returns false if the group does not exist, or if `MEMBERS` connections are already outside the default group.
    /// The connection then stays in its group.
    #[must_use = "a connection that was not assigned keeps the permissions of its group"]
    pub fn set_group(&mut self, id: ConnectionId, group: FilterGroup) -> bool {
        if usize::from(group.0) >= FILTER_GROUPS {
            return false;
        }
        self.forget(id);
        group == FilterGroup::DEFAULT || self.members.push((id, group)).is_ok()
    }

    /// Returns the group of a connection.
    #[must_use]
    pub fn group_of(&self, id: ConnectionId) -> FilterGroup {
        let member = self.members.iter().find(|(member, _)| *member == id);
        member.map_or(FilterGroup::DEFAULT, |(_, group)| *group)
    }

    fn forget(&mut self, id: ConnectionId) {
        self.members.retain(|(member, _)| *member != id);
    }

    fn judge(&mut self, id: ConnectionId, message: &dyn Chunks) -> Verdict {
        let (piece, _) = message.piece(Piece::FIRST);
        if self.is_allowed(self.group_of(id), piece.first().copied().unwrap_or(0)) {
            return Verdict::Pass;
        }
        self.dropped += 1;
        Verdict::Drop
    }

    /// Returns the number of dropped messages.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl<const MEMBERS: usize> Default for MessageFilter<MEMBERS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const MEMBERS: usize> Hook<RakNet> for MessageFilter<MEMBERS> {
    fn on_event(&mut self, _now: Instant, event: &Event<'_, RakNet>) -> Verdict {
        if let Event::Disconnected { id, .. } = event {
            self.forget(*id);
        }
        let Event::Message { id, message, .. } = event else { return Verdict::Pass };
        self.judge(*id, message)
    }
}

impl<const MEMBERS: usize> Plugin<RakNet> for MessageFilter<MEMBERS> {
    fn watches_all(&self) -> bool {
        true
    }

    fn on_disconnected(&mut self, _now: Instant, id: ConnectionId, _reason: DisconnectReason) {
        self.forget(id);
    }

    fn on_message(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        _delivery: Delivery,
        message: &dyn Chunks,
    ) -> Verdict {
        self.judge(id, message)
    }
}

//! What a RakNet peer keeps beside its connections.

use heapless::{Deque, Vec};

use super::bans::BanList;
use super::responder::StatelessResponder;
use crate::endpoint::{self, Connection as _, ConnectionId, Peer, Unconnected, UnconnectedKind, refill};
use crate::raknet::config::{Config, RakNet, SERVER, UNCONNECTED, room};
use crate::raknet::connection::handshake::internal_addresses::StoredAddresses;
#[cfg(feature = "secure")]
use crate::raknet::shared_state::SecureState;
use crate::raknet::shared_state::{KnownVersions, LossHistory, WORDS};
use crate::raknet::wire::Guid;
use crate::raknet::wire::control::MAX_PASSWORD;
use crate::serial::U24;
use crate::storage::{SlotEntry, SlotIndex, Slots};

/// Where the ban list stands.
#[derive(Debug)]
pub(crate) enum Bans<'a> {
    None,
    Lent(&'a mut BanList),
    #[cfg(feature = "alloc")]
    Owned(alloc::boxed::Box<BanList>),
}

impl Bans<'_> {
    pub(super) fn list(&self) -> Option<&BanList> {
        match self {
            Self::None => None,
            Self::Lent(bans) => Some(bans),
            #[cfg(feature = "alloc")]
            Self::Owned(bans) => Some(bans),
        }
    }
}

/// What a peer keeps beside its connections.
#[derive(Debug)]
pub(crate) struct State<'a> {
    pub(super) responder: StatelessResponder,
    pub(super) bans: Bans<'a>,
    /// What clients must say to be let in.
    pub(super) password: Vec<u8, { room(SERVER, MAX_PASSWORD) }>,
    pub(super) unconnected: Deque<Unconnected<RakNet>, { room(UNCONNECTED, 8) }>,
    pub(super) guids: SlotIndex<'a>,
    pub(in crate::raknet) loss_history: LossHistory<'a>,
    pub(in crate::raknet) known_versions: KnownVersions,
    /// The addresses that this peer says are its own.
    pub(in crate::raknet) internal_addresses: StoredAddresses,
    /// What the handshakes of secure connections need.
    #[cfg(feature = "secure")]
    pub(in crate::raknet) secure: SecureState,
    /// Where the counters of new connections start.
    pub(in crate::raknet) first_number: U24,
}

impl<'a> State<'a> {
    /// Whether a client that says this is let in.
    pub(crate) fn accepts_password(&self, given: &[u8]) -> bool {
        is_same_secret(&self.password, given)
    }

    /// The state of a new peer.
    #[inline(always)] // or it is copied
    #[cfg_attr(
        not(feature = "secure"),
        expect(clippy::needless_pass_by_ref_mut, reason = "only secrets are taken")
    )]
    pub(super) fn new(tables: StateTables<'a>, config: &mut Config) -> Self {
        Self {
            responder: StatelessResponder::new(config),
            bans: Bans::None,
            password: Vec::new(),
            unconnected: Deque::new(),
            guids: SlotIndex::new(tables.guids, config.secret),
            loss_history: LossHistory::new(tables.loss_history),
            known_versions: KnownVersions::default(),
            internal_addresses: StoredAddresses::default(),
            #[cfg(feature = "secure")]
            secure: SecureState::new(config),
            first_number: U24::new(0),
        }
    }
}

/// Compares in a time that does not depend on where the difference is.
fn is_same_secret(expected: &[u8], given: &[u8]) -> bool {
    let differences = expected.iter().zip(given).fold(0, |all, (left, right)| all | (left ^ right));
    expected.len() == given.len() && differences == 0
}

impl endpoint::State<RakNet> for State<'_> {
    fn is_idle(&self) -> bool {
        self.responder.is_idle()
    }

    fn on_identity(&mut self, slot: u16, before: Option<Guid>, guid: Option<Guid>) {
        let was_listed = before.is_none_or(|before| self.guids.remove(&before, slot));
        if let (true, Some(guid)) = (was_listed, guid) {
            self.guids.insert(&guid, slot);
        }
    }

    #[inline]
    fn unconnected(&self) -> Option<&Unconnected<RakNet>> {
        self.unconnected.front()
    }

    fn bring_forward(&mut self, wanted: fn(&UnconnectedKind) -> bool) -> bool {
        let Some(at) = self.unconnected.iter().position(|message| wanted(&message.kind)) else {
            return false;
        };
        if at == 0 {
            return true;
        }
        // Every message goes round once, so the others keep their order.
        let mut found = None;
        for place in 0..self.unconnected.len() {
            let message = self.unconnected.pop_front();
            if place == at {
                found = message;
            } else if let Some(message) = message {
                // There is room: one was taken out.
                let _ = self.unconnected.push_back(message);
            }
        }
        found.is_some_and(|message| self.unconnected.push_front(message).is_ok())
    }

    fn pop_unconnected(&mut self) -> Option<Unconnected<RakNet>> {
        self.unconnected.pop_front()
    }
}

impl Peer<'_, RakNet> {
    /// The connection with the peer of this GUID, if there is one.
    #[must_use]
    pub fn connection_of(&self, guid: Guid) -> Option<ConnectionId> {
        self.slot_of(guid).map(|slot| self.id(slot))
    }

    pub(super) fn slot_of(&self, guid: Guid) -> Option<u16> {
        self.state.guids.find(&guid, |slot| {
            self.slot(slot).is_some_and(|slot| slot.is_attached && slot.connection.identity() == guid)
        })
    }
}

/// The tables of [`State`], their sizes forgotten.
#[derive(Debug)]
pub(crate) struct StateTables<'a> {
    guids: Slots<'a, SlotEntry>,
    loss_history: Slots<'a, u32>,
}

/// The memory of [`State`].
#[derive(Debug)]
pub(crate) struct Storage<const CONNECTIONS: usize> {
    guids: Vec<SlotEntry, CONNECTIONS>,
    loss_history: Vec<[u32; WORDS], CONNECTIONS>,
}

impl<const CONNECTIONS: usize> endpoint::Storage<RakNet> for Storage<CONNECTIONS> {
    const EMPTY: Self = Self { guids: Vec::new(), loss_history: Vec::new() };

    fn lend(&mut self) -> StateTables<'_> {
        refill(&mut self.guids);
        while self.loss_history.push([0; WORDS]).is_ok() {}
        StateTables {
            guids: Slots::Lent(&mut self.guids),
            loss_history: Slots::Lent(self.loss_history.as_flattened_mut()),
        }
    }

    #[cfg(feature = "alloc")]
    fn allocate(connections: usize, _blocks: usize) -> StateTables<'static> {
        StateTables { guids: Slots::owned(connections), loss_history: Slots::zeros(0, connections * WORDS) }
    }
}

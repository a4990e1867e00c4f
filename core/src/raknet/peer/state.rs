//! The state of a RakNet peer outside its connections.

use core::net::SocketAddr;

use heapless::{Deque, Vec};

use super::bans::BanList;
use super::responder::StatelessResponder;
use crate::endpoint::{
    self, ConnectionId, ConnectionTable, Peer, PeerStats, Unconnected, UnconnectedEvents, UnconnectedKind,
    refill,
};
use crate::raknet::config::{Config, RakNet, SERVER, UNCONNECTED, room};
use crate::raknet::connection::BlockHeader;
use crate::raknet::connection::handshake::internal_addresses::StoredAddresses;
#[cfg(feature = "secure")]
use crate::raknet::shared_state::SecureState;
use crate::raknet::shared_state::{self, KnownVersions, LossHistory, WORDS};
use crate::raknet::stats::DropReason;
use crate::raknet::wire::control::MAX_PASSWORD;
use crate::raknet::wire::{Guid, PongFraming};
use crate::serial::U24;
use crate::storage::{Pool, SlotEntry, SlotIndex, Slots};
use crate::time::Instant;

/// The owner of the ban list.
#[derive(Debug)]
pub(crate) enum Bans<'a> {
    None,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only servers have a ban list"))]
    Borrowed(&'a mut BanList),
    #[cfg(all(feature = "alloc", feature = "server"))]
    Owned(alloc::boxed::Box<BanList>),
}

impl Bans<'_> {
    pub(super) fn list(&self) -> Option<&BanList> {
        match self {
            Self::None => None,
            Self::Borrowed(bans) => Some(bans),
            #[cfg(all(feature = "alloc", feature = "server"))]
            Self::Owned(bans) => Some(bans),
        }
    }
}

/// The state of a RakNet peer outside its connections.
#[derive(Debug)]
pub(crate) struct State<'a> {
    pub(super) responder: StatelessResponder,
    pub(super) bans: Bans<'a>,
    /// The password that clients must present.
    pub(super) password: Vec<u8, { room(SERVER, MAX_PASSWORD) }>,
    pub(super) unconnected: Deque<Unconnected<RakNet>, { room(UNCONNECTED, 8) }>,
    pub(super) guids: SlotIndex<'a>,
    pub(in crate::raknet) loss_history: LossHistory<'a>,
    pub(in crate::raknet) known_versions: KnownVersions,
    /// The local addresses that this peer announces.
    pub(in crate::raknet) internal_addresses: StoredAddresses,
    /// The state for secure handshakes.
    #[cfg(feature = "secure")]
    pub(in crate::raknet) secure: SecureState,
    /// The initial value of the sequence numbers in new connections.
    pub(in crate::raknet) first_number: U24,
}

impl<'a> State<'a> {
    /// Returns the slot of the connection with this GUID, if there is one.
    pub(super) fn slot_of<C: endpoint::Connection<RakNet>>(
        &self,
        guid: Guid,
        connections: &ConnectionTable<'_, C>,
    ) -> Option<u16> {
        self.guids.find(&guid, |slot| {
            connections.slot(slot).is_some_and(|slot| slot.is_attached && slot.connection.identity() == guid)
        })
    }

    pub(super) fn is_banned(&self, address: SocketAddr, now: Instant) -> bool {
        self.bans.list().is_some_and(|bans| bans.is_banned(address.ip(), now))
    }

    /// Derives the protocol version of a server from its pong, if possible, and remembers it.
    ///
    /// Data with a length prefix indicates Minecraft Bedrock; the configuration determines which version. Data without
    /// a length prefix allows no conclusion.
    pub(super) fn learn_version(&mut self, config: &Config, from: SocketAddr, data: &[u8]) -> Option<u8> {
        let known = self.known_versions.of(from);
        let is_bedrock = PongFraming::of(data) == PongFraming::Prefixed;
        let expects_bedrock = PongFraming::of_version(config.protocol_version) == PongFraming::Prefixed;
        if known.is_some() || !is_bedrock || expects_bedrock {
            return known;
        }
        self.known_versions.remember(from, shared_state::BEDROCK);
        Some(shared_state::BEDROCK)
    }

    /// Stores a message from an unconnected peer until the application reads it.
    pub(super) fn keep_unconnected(
        &mut self,
        pool: &mut Pool<'_, BlockHeader>,
        stats: &mut PeerStats<DropReason>,
        (from, identity): (SocketAddr, Guid),
        kind: UnconnectedKind,
        data: &[u8],
    ) {
        if self.unconnected.is_full() {
            stats.drop(DropReason::AnswersFull);
            return;
        }
        match pool.store_common(data, &BlockHeader::default()) {
            Some(data) => {
                // Cannot fail: the length was just checked.
                let _ = self.unconnected.push_back(Unconnected { from, identity, kind, data });
            }
            None => stats.drop(DropReason::NoMemory),
        }
    }

    /// Returns true if `given` is the password.
    pub(crate) fn accepts_password(&self, given: &[u8]) -> bool {
        is_same_secret(&self.password, given)
    }

    /// Creates the state of a new peer.
    #[inline(always)] // avoids a copy of the value
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

/// Compares two secrets in constant time.
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

    fn bring_forward(&mut self, wanted: UnconnectedEvents) -> bool {
        let Some(at) = self.unconnected.iter().position(|message| wanted.contains(&message.kind)) else {
            return false;
        };
        if at == 0 {
            return true;
        }
        // Rotates the queue once, so the other messages keep their order.
        let mut found = None;
        for place in 0..self.unconnected.len() {
            let message = self.unconnected.pop_front();
            if place == at {
                found = message;
            } else if let Some(message) = message {
                // Cannot fail: a message was just removed.
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
    /// Returns the connection with the remote peer that has this GUID, if there is one.
    #[must_use]
    pub fn connection_of(&self, guid: Guid) -> Option<ConnectionId> {
        let connections = &self.tables.connections;
        self.state.slot_of(guid, connections).map(|slot| connections.id(slot))
    }
}

/// The tables of [`State`], independent of their sizes.
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
            guids: Slots::Borrowed(&mut self.guids),
            loss_history: Slots::Borrowed(self.loss_history.as_flattened_mut()),
        }
    }

    #[cfg(feature = "alloc")]
    fn allocate(connections: usize, _blocks: usize) -> StateTables<'static> {
        StateTables { guids: Slots::owned(connections), loss_history: Slots::zeros(0, connections * WORDS) }
    }
}

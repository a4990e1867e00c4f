//! What a RakNet peer keeps beside its connections.

use core::net::SocketAddr;
use core::time::Duration;

use heapless::{Deque, Vec};

use super::bans::BanList;
use super::config::Config;
use super::connection::BlockHeader;
use super::event::RakNetEvent;
use super::extent::{SERVER, UNCONNECTED, room};
use super::responder::StatelessResponder;
use super::types::RakNet;
use super::wire::Guid;
use super::wire::control::MAX_PASSWORD;
use crate::endpoint::{self, Message, refill};
use crate::serial::U24;
use crate::storage::{Block, Pool, SlotEntry, SlotIndex, Slots};

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

/// What kind of message a peer without a connection sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum UnconnectedKind {
    Pong(Duration),
    OutOfBand,
    Advertisement,
}

/// A message of a peer without a connection that the application was not told yet; its bytes stand in the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unconnected {
    pub(super) from: SocketAddr,
    pub(super) guid: Guid,
    pub(super) kind: UnconnectedKind,
    pub(super) data: Block,
}

/// What a peer keeps beside its connections.
#[derive(Debug)]
pub(crate) struct State<'a> {
    pub(super) responder: StatelessResponder,
    pub(super) bans: Bans<'a>,
    /// What clients must say to be let in.
    pub(super) password: Vec<u8, { room(SERVER, MAX_PASSWORD) }>,
    pub(super) unconnected: Deque<Unconnected, { room(UNCONNECTED, 8) }>,
    pub(super) guids: SlotIndex<'a>,
    /// Where the counters of new connections start.
    pub(super) first_number: U24,
}

impl<'a> State<'a> {
    fn new(guids: Slots<'a, SlotEntry>, config: &Config) -> Self {
        Self {
            responder: StatelessResponder::default(),
            bans: Bans::None,
            password: Vec::new(),
            unconnected: Deque::new(),
            guids: SlotIndex::new(guids, config.secret),
            first_number: U24::new(0),
        }
    }
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

    fn unconnected<'p>(&self, pool: &'p Pool<'p, BlockHeader>) -> Option<RakNetEvent<'p>> {
        let &Unconnected { from, guid, kind, data } = self.unconnected.front()?;
        let data = Message::new(pool, data);
        Some(match kind {
            UnconnectedKind::Pong(latency) => RakNetEvent::Pong { from, guid, latency, data },
            UnconnectedKind::OutOfBand => RakNetEvent::OutOfBand { from, guid, data },
            UnconnectedKind::Advertisement => RakNetEvent::Advertisement { from, guid, data },
        })
    }

    fn unconnected_data(&self) -> Option<Block> {
        self.unconnected.front().map(|unconnected| unconnected.data)
    }

    fn pop_unconnected(&mut self) -> Option<Block> {
        self.unconnected.pop_front().map(|unconnected| unconnected.data)
    }
}

/// The memory of [`State`].
#[derive(Debug)]
pub(crate) struct Storage<const CONNECTIONS: usize>(Vec<SlotEntry, CONNECTIONS>);

impl<const CONNECTIONS: usize> endpoint::Storage<RakNet> for Storage<CONNECTIONS> {
    const EMPTY: Self = Self(Vec::new());

    fn lend(&mut self, config: &Config) -> State<'_> {
        refill(&mut self.0);
        State::new(Slots::Lent(&mut self.0), config)
    }

    #[cfg(feature = "alloc")]
    fn allocate(connections: usize, _blocks: usize, config: &Config) -> State<'static> {
        State::new(Slots::owned(connections), config)
    }
}

//! What a connection borrows from its peer.

use super::block_header::BlockHeader;
use crate::raknet::config::Config;
use crate::raknet::stats::PeerStats;
use crate::storage::{Index, Pool};
use crate::time::Instant;

/// What a connection borrows from its peer for the time of one call.
pub(crate) struct Context<'x, 'a> {
    pub(crate) now: Instant,
    pub(crate) slot: u16,
    pub(crate) config: &'x Config,
    pub(crate) pool: &'x mut Pool<'a, BlockHeader>,
    pub(crate) index: &'x mut Index<'a>,
    pub(crate) stats: &'x mut PeerStats,
    /// The password that clients must send.
    pub(crate) password: &'x [u8],
    /// Blocks that one connection may hold for what it sends.
    pub(crate) send_quota: usize,
    /// Blocks that one connection may hold for what it receives.
    pub(crate) receive_quota: usize,
}

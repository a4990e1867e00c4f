//! The shares of connections in the blocks: a guaranteed part for each direction, and a bounded part of the rest.
//!
//! Of `B` blocks and `C` connections, half of the blocks are guaranteed: each connection gets `G = B / 4C` for what it
//! sends and as many for what it receives, whatever the others do. The rest, `S = B - 2CG`, is common. A direction of a
//! connection that needs more than `G` borrows from it, as long as it has not borrowed more than it leaves free: alone
//! `S / 2`, and each further one that gives nothing back at most half of what is left then. This is the dynamic
//! threshold of Choudhury and Hahne ("Dynamic queue length thresholds for shared-memory packet switches", 1998) with a
//! factor of one. Connections that hold on to their borrowed blocks can take the common part from all others, but never the
//! guaranteed parts: a connection that stays within `G` never waits for others.
//!
//! A peer with a single connection has no others to protect: all its blocks are common and may be borrowed, except that
//! sending leaves a quarter to receiving.
//!
//! Sending begins no further message once a share holds half of what it could, if that is more than [`QUEUED`] blocks. The
//! other half is for messages in parts, which need all their room at once; small messages that fill it, too, no longer fit
//! the caches of a processor when they are sent.
//!
//! Blocks are charged before they are taken and released when they are freed, so a charge that succeeded always finds
//! its blocks.

use super::SEVERAL;

/// Blocks of waiting messages up to which sending is never held back: 4 MiB in blocks of 512 bytes, or 8,192 small messages.
const QUEUED: usize = 8_192;

/// Blocks of a message that have to fit when it begins. So a small message is taken where larger ones of the same sender are not.
const FIRST: usize = 8;

/// The purpose for which blocks are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A message of the application that is to be sent.
    Send,
    /// A message of the protocol itself that is to be sent. The limit of the configuration does not count for it.
    Control,
    /// A message that arrives in its turn.
    Receive,
    /// A message that arrives before its turn. It leaves half of everything to what it waits for.
    Early,
}

/// Blocks that one direction of a connection holds or was promised.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// Blocks of the guaranteed part.
    own: u32,
    /// Blocks of the common part.
    borrowed: u32,
    /// How many of all these are beside the limit of the configuration.
    unlimited: u16,
    /// How many of those are tables that stay for as long as the connection.
    tables: u16,
}

impl Share {
    const fn blocks(&self) -> usize {
        self.own as usize + self.borrowed as usize
    }

    #[cfg(test)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.blocks() == 0 && self.unlimited == 0 && self.tables == 0
    }
}

/// Why blocks cannot be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The share holds all that it may.
    InShare,
    /// The common part has too few free blocks.
    InPool,
}

/// The blocks that the shares of all connections leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Blocks that are guaranteed to each direction of each connection.
    guaranteed: usize,
    /// Blocks of the common part.
    common: usize,
    /// Blocks of the common part that no connection has borrowed.
    free: usize,
    /// Blocks of the common part that sending leaves to receiving.
    reserve: usize,
    /// Tables of the common part that stay for as long as a connection.
    tables: usize,
    /// Blocks of the common part that the peer itself holds for as long as it likes.
    permanent: usize,
    /// The most blocks that a share may hold by the configuration.
    limit: usize,
    /// Blocks with which a share begins no further message.
    queued: usize,
    /// Blocks of the last charge that was refused.
    refused: usize,
    /// Whether there is more than one connection to share with.
    is_shared: bool,
}

impl Shares {
    /// The shares of `connections` connections in a pool of `blocks` blocks, of which none may hold more than `limit` in
    /// a direction.
    pub(crate) fn new(blocks: usize, connections: usize, limit: Option<u32>) -> Self {
        let is_shared = SEVERAL && connections > 1;
        let guaranteed = if is_shared { blocks / 4 / connections } else { 0 };
        let common = blocks - 2 * guaranteed * connections;
        let half = blocks / 2;
        let reserve = if is_shared { 0 } else { blocks / 4 };
        let limit = limit.map_or(half, |limit| half.min(limit as usize));
        let alone = if is_shared { guaranteed + common / 2 } else { common - reserve };
        Self {
            guaranteed,
            common,
            free: common,
            reserve,
            tables: 0,
            permanent: 0,
            limit,
            queued: QUEUED.max(alone.min(limit) / 2),
            refused: 0,
            is_shared,
        }
    }

    /// Whether there is more than one connection to share with.
    const fn is_shared(&self) -> bool {
        SEVERAL && self.is_shared
    }

    /// Blocks that are guaranteed to each direction of each connection.
    const fn guaranteed(&self) -> usize {
        if SEVERAL { self.guaranteed } else { 0 }
    }

    /// Blocks of the last charge that was refused.
    pub(crate) const fn refused(&self) -> usize {
        self.refused
    }

    /// Blocks of the common part that are free.
    pub(crate) const fn free(&self) -> usize {
        self.free
    }

    /// Returns true if no connection has borrowed anything.
    pub(crate) const fn is_whole(&self) -> bool {
        self.free == self.common && self.tables == 0 && self.permanent == 0
    }

    /// How many blocks of the guaranteed part may serve a purpose.
    const fn within(&self, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Send | Purpose::Control | Purpose::Receive => self.guaranteed(),
            Purpose::Early => self.guaranteed() / 2,
        }
    }

    const fn limit(&self, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Send | Purpose::Receive => self.limit,
            Purpose::Early => self.limit / 2,
            Purpose::Control => usize::MAX,
        }
    }

    /// How many of `blocks` blocks would have to be borrowed.
    const fn borrowed_for(&self, share: &Share, blocks: usize, purpose: Purpose) -> usize {
        blocks.saturating_sub(self.within(purpose).saturating_sub(share.own as usize))
    }

    /// Whether a share may hold `blocks` blocks more.
    pub(crate) fn check(&self, share: &Share, blocks: usize, purpose: Purpose) -> Result<(), NoRoom> {
        self.check_limit(share, blocks, purpose)?;
        self.check_room(share, blocks, purpose).map(|_| ())
    }

    /// Whether the limit of the configuration lets a share hold `blocks` blocks more.
    #[cfg_attr(target_pointer_width = "64", inline)]
    fn check_limit(&self, share: &Share, blocks: usize, purpose: Purpose) -> Result<(), NoRoom> {
        if self.is_within_limit(share, blocks, purpose) { Ok(()) } else { Err(NoRoom::InShare) }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    const fn is_within_limit(&self, share: &Share, blocks: usize, purpose: Purpose) -> bool {
        let limited = share.blocks().saturating_sub(share.unlimited as usize);
        let begins = if blocks < FIRST { blocks } else { FIRST };
        let is_full = matches!(purpose, Purpose::Send) && limited.saturating_add(begins) > self.queued;
        !is_full && limited.saturating_add(blocks) <= self.limit(purpose)
    }

    /// How many of `blocks` blocks more a share would borrow, if there is room for them.
    #[cfg_attr(target_pointer_width = "64", inline)]
    fn check_room(&self, share: &Share, blocks: usize, purpose: Purpose) -> Result<usize, NoRoom> {
        let borrow = self.borrowed_for(share, blocks, purpose);
        if borrow == 0 || borrow.saturating_add(self.left(share, borrow, purpose)) <= self.free {
            Ok(borrow)
        } else if self.is_shared() && borrow <= self.free {
            Err(NoRoom::InShare)
        } else {
            Err(NoRoom::InPool)
        }
    }

    /// How many blocks of the common part must stay free when a share borrows `borrow` blocks more.
    #[cfg_attr(target_pointer_width = "64", inline)]
    const fn left(&self, share: &Share, borrow: usize, purpose: Purpose) -> usize {
        if self.is_shared() {
            let held = (share.borrowed as usize).saturating_add(borrow);
            if matches!(purpose, Purpose::Early) { held.saturating_mul(3) } else { held }
        } else if matches!(purpose, Purpose::Send) {
            self.reserve
        } else {
            0
        }
    }

    /// Charges `blocks` blocks to a share.
    #[cfg_attr(target_pointer_width = "64", inline)]
    pub(crate) fn charge(
        &mut self,
        share: &mut Share,
        blocks: usize,
        purpose: Purpose,
    ) -> Result<(), NoRoom> {
        let checked = self.check_limit(share, blocks, purpose);
        match checked.and_then(|()| self.check_room(share, blocks, purpose)) {
            Ok(borrow) => {
                self.take(share, blocks, borrow);
                Ok(())
            }
            Err(no_room) => {
                self.refused = blocks;
                Err(no_room)
            }
        }
    }

    /// How many blocks of the common part must be free for a share to send a message of `blocks` blocks.
    pub(crate) const fn needed(&self, share: &Share, blocks: usize) -> usize {
        let borrow = self.borrowed_for(share, blocks, Purpose::Send);
        borrow.saturating_add(self.left(share, borrow, Purpose::Send))
    }

    /// Bounds the free blocks of the common part, to see which connections fit beside others.
    pub(crate) const fn bounded(mut self, free: usize) -> Self {
        if self.free > free {
            self.free = free;
        }
        self
    }

    /// Whether others can make room for a message of `blocks` blocks that a share may not hold now.
    pub(crate) fn depends_on_others(&self, share: &Share, blocks: usize, purpose: Purpose) -> bool {
        self.is_within_limit(share, blocks, purpose)
    }

    /// Charges `blocks` blocks, of which `borrow` are borrowed.
    const fn take(&mut self, share: &mut Share, blocks: usize, borrow: usize) {
        self.free -= borrow;
        share.borrowed += borrow as u32;
        share.own += (blocks - borrow) as u32;
    }

    /// Charges blocks that the limit of the configuration does not count.
    pub(crate) fn charge_unlimited(&mut self, share: &mut Share, blocks: usize, purpose: Purpose) -> bool {
        let Ok(borrow) = self.check_room(share, blocks, purpose) else { return false };
        self.take(share, blocks, borrow);
        share.unlimited += blocks as u16;
        true
    }

    /// Charges the blocks of a table that stays for as long as the connection.
    pub(crate) fn charge_table(&mut self, share: &mut Share, blocks: usize, purpose: Purpose) -> bool {
        let charged = self.charge_unlimited(share, blocks, purpose);
        if charged {
            self.tables -= self.common_tables(share);
            share.tables += blocks as u16;
            self.tables += self.common_tables(share);
        }
        charged
    }

    /// How many blocks of its tables a share has to borrow even when it holds nothing else.
    const fn common_tables(&self, share: &Share) -> usize {
        (share.tables as usize).saturating_sub(self.guaranteed())
    }

    /// Releases blocks to the share that they were charged to. What is guaranteed to a share beyond half comes back first,
    /// since messages in their turn alone may take it; then what it borrowed.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn release(&mut self, share: &mut Share, blocks: usize) {
        debug_assert!(blocks <= share.blocks(), "{blocks} blocks were not charged to {share:?}");
        let blocks = blocks.min(share.blocks()) as u32;
        let first = blocks.min(share.own.saturating_sub(self.within(Purpose::Early) as u32));
        let borrowed = share.borrowed.min(blocks - first);
        share.own -= blocks - borrowed;
        share.borrowed -= borrowed;
        self.free += borrowed as usize;
    }

    /// Releases all that a share still holds, once its tables were freed.
    pub(crate) fn close(&mut self, share: &mut Share) {
        debug_assert!(share.tables == 0, "tables were not freed: {share:?}");
        self.release(share, share.blocks());
        *share = Share::default();
    }

    /// Releases blocks that [`charge_unlimited`](Self::charge_unlimited) charged.
    pub(crate) fn release_unlimited(&mut self, share: &mut Share, blocks: usize) {
        self.release(share, blocks);
        share.unlimited = share.unlimited.saturating_sub(blocks as u16);
    }

    /// Releases the blocks of a table.
    pub(crate) fn release_table(&mut self, share: &mut Share, blocks: usize) {
        self.release_unlimited(share, blocks);
        self.tables -= self.common_tables(share);
        share.tables = share.tables.saturating_sub(blocks as u16);
        self.tables += self.common_tables(share);
    }

    /// Charges blocks that belong to no connection to the common part.
    pub(crate) const fn charge_common(&mut self, blocks: usize) -> bool {
        let fits = blocks <= self.free;
        if fits {
            self.free -= blocks;
        }
        fits
    }

    /// Releases blocks to the common part.
    pub(crate) const fn release_common(&mut self, blocks: usize) {
        self.free += blocks;
    }

    /// Says how many of the blocks that were charged to the common part do not come back by themselves.
    pub(crate) const fn set_permanent(&mut self, blocks: usize) {
        self.permanent = blocks;
    }

    /// Whether a share could hold a message of `blocks` blocks, and a table of `missing` blocks that it needs, once all
    /// connections hold only tables.
    pub(crate) fn could_hold(&self, share: &Share, blocks: usize, missing: usize, purpose: Purpose) -> bool {
        let mut with_table = *share;
        with_table.tables = share.tables.saturating_add(missing as u16);
        let added = self.common_tables(&with_table) - self.common_tables(share);
        let after = Self { tables: self.tables + added, ..*self };
        missing <= self.guaranteed() + self.common && blocks <= after.most(&with_table, purpose)
    }

    /// The most blocks that a share could hold beside its tables once all connections hold only tables.
    pub(crate) fn most(&self, share: &Share, purpose: Purpose) -> usize {
        let own = self.within(purpose).saturating_sub(usize::from(share.tables));
        // The window of message numbers may hold one block for as long as nothing arrives.
        let free = self.common.saturating_sub(self.tables + self.permanent + 1);
        let borrowed = match purpose {
            Purpose::Send if !self.is_shared() => free.saturating_sub(self.reserve),
            _ if !self.is_shared() => free,
            Purpose::Early => free / 4,
            Purpose::Send | Purpose::Control | Purpose::Receive => {
                free.saturating_sub(self.common_tables(share)) / 2
            }
        };
        self.limit(purpose).min(own + borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Charges one block after the other until there is no room, and returns how many.
    fn fill(shares: &mut Shares, share: &mut Share, purpose: Purpose) -> usize {
        core::iter::from_fn(|| shares.charge(share, 1, purpose).ok()).count()
    }

    #[test]
    fn however_many_take_all_they_can_the_guarantee_is_left() {
        // Ten connections with 32 blocks in each direction, 640 common ones.
        let mut shares = Shares::new(1_280, 10, None);
        let (mut sent, mut received) = ([Share::default(); 9], [Share::default(); 9]);
        for share in &mut sent {
            fill(&mut shares, share, Purpose::Send);
        }
        for share in &mut received {
            fill(&mut shares, share, Purpose::Receive);
        }
        assert_eq!(shares.free(), 1, "{shares:?}");
        let mut honest = Share::default();
        for _ in 0..100 {
            assert_eq!(shares.charge(&mut honest, 32, Purpose::Send), Ok(()));
            shares.release(&mut honest, 32);
        }
        // Borrowed blocks come back, and then there is more for others again.
        shares.close(&mut sent[0]);
        assert!(fill(&mut shares, &mut honest, Purpose::Send) > 32 + 100);
        for share in sent.iter_mut().chain(&mut received).chain([&mut honest]) {
            shares.close(share);
        }
        assert!(shares.is_whole());
    }

    #[test]
    fn one_connection_beside_idle_ones_holds_its_guarantee_and_half_of_the_rest() {
        let mut shares = Shares::new(1_280, 10, None);
        let mut share = Share::default();
        assert_eq!(shares.most(&share, Purpose::Send), 32 + 319);
        assert_eq!(fill(&mut shares, &mut share, Purpose::Send), 32 + 320);
        assert_eq!(shares.check(&share, 1, Purpose::Send), Err(NoRoom::InShare));
        assert_eq!(shares.check(&Share::default(), 400, Purpose::Send), Err(NoRoom::InPool));
    }

    #[test]
    fn small_messages_leave_half_of_a_large_share_to_messages_in_parts() {
        for (blocks, connections) in [(32_768, 1), (65_536, 64)] {
            let mut shares = Shares::new(blocks, connections, None);
            let mut share = Share::default();
            let queued = fill(&mut shares, &mut share, Purpose::Send);
            assert!((8_192..8_500).contains(&queued), "{queued}");
            assert_eq!(shares.check(&share, 1, Purpose::Send), Err(NoRoom::InShare));
            // A question beside a transfer.
            shares.release(&mut share, 2);
            assert_eq!(shares.check(&share, 3, Purpose::Send), Err(NoRoom::InShare));
            assert_eq!(shares.charge(&mut share, 2, Purpose::Send), Ok(()));
            assert!(!shares.depends_on_others(&share, 1, Purpose::Send));
            shares.release(&mut share, FIRST);
            assert_eq!(shares.charge(&mut share, 8_000, Purpose::Send), Ok(()));
        }
    }

    #[test]
    fn what_the_peer_itself_holds_is_no_room_for_a_message() {
        let mut shares = Shares::new(16, 1, None);
        let share = Share::default();
        assert!(shares.could_hold(&share, 8, 0, Purpose::Send));
        assert!(shares.charge_common(5));
        shares.set_permanent(5);
        assert!(!shares.could_hold(&share, 8, 0, Purpose::Send));
        assert!(shares.could_hold(&share, 6, 0, Purpose::Send));
        shares.set_permanent(0);
        shares.release_common(5);
        assert!(shares.is_whole());
    }

    #[test]
    fn a_single_connection_may_hold_all_but_leaves_a_quarter_of_it_to_receiving() {
        let mut shares = Shares::new(16, 1, None);
        let (mut sent, mut received) = (Share::default(), Share::default());
        assert_eq!(shares.check(&sent, 9, Purpose::Send), Err(NoRoom::InShare));
        assert_eq!(fill(&mut shares, &mut sent, Purpose::Send), 8);
        assert!(shares.charge_table(&mut sent, 4, Purpose::Send));
        assert_eq!(fill(&mut shares, &mut received, Purpose::Receive), 4);
        assert_eq!(shares.check(&received, 1, Purpose::Receive), Err(NoRoom::InPool));
        shares.release_table(&mut sent, 4);
        shares.close(&mut sent);
        assert_eq!(shares.check(&sent, 5, Purpose::Send), Ok(()));
        assert_eq!(fill(&mut shares, &mut received, Purpose::Receive), 4);
    }

    #[test]
    fn what_waits_for_its_turn_leaves_half_to_what_it_waits_for() {
        let mut shares = Shares::new(1_280, 10, None);
        let mut share = Share::default();
        assert_eq!(fill(&mut shares, &mut share, Purpose::Early), 16 + 160);
        // Another connection takes the common part, as far as it may.
        let rest = shares.free();
        assert!(shares.charge_common(rest));
        for _ in 0..100 {
            assert_eq!(fill(&mut shares, &mut share, Purpose::Receive), 16);
            shares.release(&mut share, 16);
        }
        assert_eq!(fill(&mut shares, &mut share, Purpose::Early), 0);
    }

    #[test]
    fn tables_and_the_protocols_own_messages_are_beside_the_limit() {
        let mut shares = Shares::new(1_280, 10, Some(8));
        let mut share = Share::default();
        assert!(shares.charge_table(&mut share, 6, Purpose::Receive));
        assert!(shares.charge_unlimited(&mut share, 1, Purpose::Receive));
        assert_eq!(fill(&mut shares, &mut share, Purpose::Send), 8);
        assert_eq!(shares.charge(&mut share, 2, Purpose::Control), Ok(()));
        assert!(
            shares.could_hold(&share, 8, 0, Purpose::Send) && !shares.could_hold(&share, 9, 0, Purpose::Send)
        );
        shares.release(&mut share, 10);
        shares.release_unlimited(&mut share, 1);
        shares.release_table(&mut share, 6);
        assert!(share.is_empty() && shares.is_whole());
    }
}

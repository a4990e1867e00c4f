//! Memory accounting: each direction of a connection has a guaranteed part, and may borrow from a shared part.
//!
//! With `B` blocks and `C` connections, half of the blocks are guaranteed: each connection has `G = B / 4C` in each
//! direction, regardless of the others. The rest, `S = B - 2CG`, is shared. A direction that needs more than `G`
//! borrows from the shared part. It may borrow a block if at least as many shared blocks then remain free as it has
//! borrowed. A single borrower thus gets `S / 2`, and each further borrower at most half of the remainder. This is the
//! dynamic threshold of Choudhury and Hahne ("Dynamic queue length thresholds for shared-memory packet switches", 1998)
//! with a factor of one. Connections that hold on to borrowed blocks can use up the shared part, but never a guaranteed
//! part: a connection that stays within `G` never waits for others.
//!
//! With a single connection there are no others to protect. All blocks are shared and may be borrowed, except that
//! sending leaves a quarter to receiving.
//!
//! No further message is accepted for sending once a share holds half of its maximum, if that is more than [`QUEUED`]
//! blocks. The other half is for split messages, which need all their blocks at once. If small messages filled the
//! other half as well, they would no longer fit into the processor's caches when they are sent.
//!
//! Blocks are charged before they are taken and released when they are freed, so taking charged blocks never fails.

use super::SEVERAL;

/// The number of queued blocks up to which sending is never limited: 4 MiB in blocks of 512 bytes.
const QUEUED: usize = 8_192;

/// The maximum number of blocks of a message for which there must be space below the limit of queued blocks.
///
/// A longer message may exceed the limit by its remaining blocks.
const FIRST: usize = 8;

/// The purpose for which blocks are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An outgoing message from the application.
    Send,
    /// An outgoing message of the protocol itself, exempt from the configured limit.
    Control,
    /// An incoming message that is next in order.
    Receive,
    /// An incoming message that cannot be delivered before earlier messages.
    ///
    /// Such messages may use only half of the share; the other half is for the missing messages before them.
    Early,
}

/// The blocks that one direction of a connection holds or has reserved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    /// Blocks of the guaranteed part.
    own: u32,
    /// Blocks borrowed from the shared part.
    borrowed: u32,
    /// Blocks exempt from the configured limit.
    unlimited: u16,
    /// The part of `unlimited` that holds tables, which exist until the connection closes.
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

/// The reason why blocks cannot be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The share has reached its limit.
    InShare,
    /// The shared part has too few free blocks.
    InPool,
}

/// The accounts of all shares, and the free blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Blocks guaranteed to each direction of each connection.
    guaranteed: usize,
    /// The total number of blocks of the shared part.
    common: usize,
    /// The number of free blocks of the shared part.
    free: usize,
    /// The number of blocks of the shared part that sending leaves to receiving.
    reserve: usize,
    /// The number of blocks of the shared part held by tables, which exist until their connection closes.
    tables: usize,
    /// The number of blocks of the shared part that the peer itself holds permanently.
    permanent: usize,
    /// The configured maximum number of blocks in a share.
    limit: usize,
    /// The limit of queued blocks, at which a share accepts no further message for sending.
    queued: usize,
    /// The size of the last refused charge in blocks.
    refused: usize,
    /// True if there is more than one connection.
    is_shared: bool,
}

impl Shares {
    /// Creates the accounts of `connections` connections in a pool of `blocks` blocks.
    ///
    /// A share is limited to `limit` blocks.
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

    /// Returns true if there is more than one connection.
    const fn is_shared(&self) -> bool {
        SEVERAL && self.is_shared
    }

    /// Returns the number of blocks guaranteed to each direction of each connection.
    const fn guaranteed(&self) -> usize {
        if SEVERAL { self.guaranteed } else { 0 }
    }

    /// Returns the size of the last refused charge, in blocks.
    pub(crate) const fn refused(&self) -> usize {
        self.refused
    }

    /// Returns the number of free blocks in the shared part.
    pub(crate) const fn free(&self) -> usize {
        self.free
    }

    /// Returns true if every block of the shared part is free.
    pub(crate) const fn is_whole(&self) -> bool {
        self.free == self.common && self.tables == 0 && self.permanent == 0
    }

    /// Returns the number of guaranteed blocks that `purpose` may use.
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

    /// Returns how many of `blocks` blocks would have to be borrowed.
    const fn borrowed_for(&self, share: &Share, blocks: usize, purpose: Purpose) -> usize {
        blocks.saturating_sub(self.within(purpose).saturating_sub(share.own as usize))
    }

    /// Checks whether a share may hold `blocks` more blocks.
    pub(crate) fn check(&self, share: &Share, blocks: usize, purpose: Purpose) -> Result<(), NoRoom> {
        self.check_limit(share, blocks, purpose)?;
        self.check_room(share, blocks, purpose).map(|_| ())
    }

    /// Checks the configured limit for `blocks` more blocks.
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

    /// Returns how many of `blocks` more blocks a share would borrow, or an error if they are not available.
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

    /// Returns the number of shared blocks that must stay free when a share borrows `borrow` more blocks.
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

    /// Returns how many shared blocks must be free before a share can send a message of `blocks` blocks.
    pub(crate) const fn needed(&self, share: &Share, blocks: usize) -> usize {
        let borrow = self.borrowed_for(share, blocks, Purpose::Send);
        borrow.saturating_add(self.left(share, borrow, Purpose::Send))
    }

    /// Returns the accounts with at most `free` free shared blocks, to find connections that fit together.
    pub(crate) const fn bounded(mut self, free: usize) -> Self {
        if self.free > free {
            self.free = free;
        }
        self
    }

    /// Returns true if a message of `blocks` blocks does not fit now, but would if other connections freed blocks.
    pub(crate) fn depends_on_others(&self, share: &Share, blocks: usize, purpose: Purpose) -> bool {
        self.is_within_limit(share, blocks, purpose)
    }

    /// Charges `blocks` blocks; `borrow` of them are borrowed.
    const fn take(&mut self, share: &mut Share, blocks: usize, borrow: usize) {
        self.free -= borrow;
        share.borrowed += borrow as u32;
        share.own += (blocks - borrow) as u32;
    }

    /// Charges blocks that are exempt from the configured limit.
    pub(crate) fn charge_unlimited(&mut self, share: &mut Share, blocks: usize, purpose: Purpose) -> bool {
        let Ok(borrow) = self.check_room(share, blocks, purpose) else { return false };
        self.take(share, blocks, borrow);
        share.unlimited += blocks as u16;
        true
    }

    /// Charges the blocks of a table, which exists until the connection closes.
    pub(crate) fn charge_table(&mut self, share: &mut Share, blocks: usize, purpose: Purpose) -> bool {
        let charged = self.charge_unlimited(share, blocks, purpose);
        if charged {
            self.tables -= self.common_tables(share);
            share.tables += blocks as u16;
            self.tables += self.common_tables(share);
        }
        charged
    }

    /// Returns how many table blocks of a share do not fit into its guaranteed part.
    const fn common_tables(&self, share: &Share) -> usize {
        (share.tables as usize).saturating_sub(self.guaranteed())
    }

    /// Releases blocks from the share to which they were charged.
    ///
    /// The guaranteed blocks of the upper half are released first, because only messages that are next in order may use
    /// them. Borrowed blocks follow.
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

    /// Releases everything that a share still holds. Precondition: its tables were freed.
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

    /// Charges blocks that belong to no connection to the shared part.
    pub(crate) const fn charge_common(&mut self, blocks: usize) -> bool {
        let fits = blocks <= self.free;
        if fits {
            self.free -= blocks;
        }
        fits
    }

    /// Releases blocks of the shared part that belong to no connection.
    pub(crate) const fn release_common(&mut self, blocks: usize) {
        self.free += blocks;
    }

    /// Sets how many of the blocks charged to the shared part the peer itself holds permanently.
    pub(crate) const fn set_permanent(&mut self, blocks: usize) {
        self.permanent = blocks;
    }

    /// Returns true if a share could hold a message of `blocks` blocks once all connections hold only tables.
    ///
    /// `missing` is the number of blocks of a table that the message needs.
    pub(crate) fn could_hold(&self, share: &Share, blocks: usize, missing: usize, purpose: Purpose) -> bool {
        let mut with_table = *share;
        with_table.tables = share.tables.saturating_add(missing as u16);
        let added = self.common_tables(&with_table) - self.common_tables(share);
        let after = Self { tables: self.tables + added, ..*self };
        missing <= self.guaranteed() + self.common && blocks <= after.most(&with_table, purpose)
    }

    /// Returns the maximum number of blocks in a share, in addition to its tables, once all connections hold only
    /// tables.
    pub(crate) fn most(&self, share: &Share, purpose: Purpose) -> usize {
        let own = self.within(purpose).saturating_sub(usize::from(share.tables));
        // The window of message numbers may hold one block even if no message is queued.
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
    use std::vec;
    use std::vec::Vec;

    use bolero::produce;

    use super::*;

    const PURPOSES: [Purpose; 4] = [Purpose::Send, Purpose::Control, Purpose::Receive, Purpose::Early];

    /// Charges never exceed the number of blocks, a share within its guaranteed part is never refused, and all blocks
    /// are free after the last release.
    #[test]
    fn charges_never_exceed_the_pool_or_violate_guarantees() {
        // The numbers are small, because bolero generates values from at most 4,096 bytes.
        let operation = (0..20_u8, 0..4_u8, 1..200_u8, produce::<bool>());
        let operations = produce::<Vec<(u8, u8, u8, bool)>>().with().len(0..300_usize).values(operation);
        let input = (4..2_000_usize, 1..20_usize, operations);
        bolero::check!().with_iterations(if cfg!(miri) { 2 } else { 256 }).with_generator(input).for_each(
            |(blocks, connections, operations)| {
                let (blocks, connections) = (*blocks, *connections);
                let mut shares = Shares::new(blocks, connections, None);
                let mut held = vec![Share::default(); 2 * connections];
                for &(at, purpose, count, is_release) in operations {
                    let (at, count) = (usize::from(at) % held.len(), usize::from(count));
                    let purpose = PURPOSES[usize::from(purpose)];
                    let share = &mut held[at];
                    let before = share.blocks();
                    if is_release {
                        shares.release(share, count.min(before));
                    } else {
                        let is_guaranteed =
                            before + count <= shares.within(purpose) && purpose != Purpose::Early;
                        let charged = shares.charge(share, count, purpose);
                        assert!(
                            charged.is_ok() || !is_guaranteed,
                            "{count} blocks for {purpose:?}, {before} held: {charged:?}"
                        );
                        assert_eq!(share.blocks(), if charged.is_ok() { before + count } else { before });
                    }
                    let borrowed: usize = held.iter().map(|share| share.borrowed as usize).sum();
                    assert_eq!(borrowed + shares.free, shares.common);
                    assert!(held.iter().all(|share| share.own as usize <= shares.guaranteed()));
                    assert!(held.iter().map(Share::blocks).sum::<usize>() <= blocks);
                }
                held.iter_mut().for_each(|share| shares.close(share));
                assert!(shares.is_whole());
            },
        );
    }

    /// Charges one block at a time until a charge is refused; returns how many.
    fn fill(shares: &mut Shares, share: &mut Share, purpose: Purpose) -> usize {
        core::iter::from_fn(|| shares.charge(share, 1, purpose).ok()).count()
    }

    #[test]
    fn connections_that_borrow_leave_guaranteed_blocks_for_others() {
        // Ten connections with 32 blocks in each direction, and 640 shared blocks.
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
        // Released blocks can be borrowed by others.
        shares.close(&mut sent[0]);
        assert!(fill(&mut shares, &mut honest, Purpose::Send) > 32 + 100);
        for share in sent.iter_mut().chain(&mut received).chain([&mut honest]) {
            shares.close(share);
        }
        assert!(shares.is_whole());
    }

    #[test]
    fn a_single_borrower_gets_its_guarantee_and_half_of_the_shared_part() {
        let mut shares = Shares::new(1_280, 10, None);
        let mut share = Share::default();
        // The window of message numbers may take one of the 320 shared blocks.
        assert_eq!(shares.most(&share, Purpose::Send), 32 + 319);
        assert_eq!(fill(&mut shares, &mut share, Purpose::Send), 32 + 320);
        assert_eq!(shares.check(&share, 1, Purpose::Send), Err(NoRoom::InShare));
        assert_eq!(shares.check(&Share::default(), 400, Purpose::Send), Err(NoRoom::InPool));
    }

    #[test]
    fn half_of_a_large_share_is_reserved_for_split_messages() {
        for (blocks, connections) in [(32_768, 1), (65_536, 64)] {
            let mut shares = Shares::new(blocks, connections, None);
            let mut share = Share::default();
            let queued = fill(&mut shares, &mut share, Purpose::Send);
            assert!((8_192..8_500).contains(&queued), "{queued}");
            assert_eq!(shares.check(&share, 1, Purpose::Send), Err(NoRoom::InShare));
            // Without `FIRST` free blocks below the limit, only small messages are accepted.
            shares.release(&mut share, 2);
            assert_eq!(shares.check(&share, 3, Purpose::Send), Err(NoRoom::InShare));
            assert_eq!(shares.charge(&mut share, 2, Purpose::Send), Ok(()));
            assert!(!shares.depends_on_others(&share, 1, Purpose::Send));
            shares.release(&mut share, FIRST);
            assert_eq!(shares.charge(&mut share, 8_000, Purpose::Send), Ok(()));
        }
    }

    #[test]
    fn blocks_held_permanently_are_not_available_to_messages() {
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
    fn sending_on_a_single_connection_leaves_a_quarter_to_receiving() {
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
    fn out_of_order_messages_use_at_most_half_of_the_share() {
        let mut shares = Shares::new(1_280, 10, None);
        let mut share = Share::default();
        assert_eq!(fill(&mut shares, &mut share, Purpose::Early), 16 + 160);
        // The rest of the shared part is taken.
        let rest = shares.free();
        assert!(shares.charge_common(rest));
        for _ in 0..100 {
            assert_eq!(fill(&mut shares, &mut share, Purpose::Receive), 16);
            shares.release(&mut share, 16);
        }
        assert_eq!(fill(&mut shares, &mut share, Purpose::Early), 0);
    }

    #[test]
    fn tables_and_control_messages_are_exempt_from_the_limit() {
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

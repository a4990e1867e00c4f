//! Who is told that there is room again: senders that were refused, and none but them.

use super::protocol::{Blocked, Connection, Peer, Protocol};
use super::types::ConnectionId;
use crate::storage::{Claim, SEVERAL};

/// Blocked connections that are looked at for each call that asks for a writable one.
const AT_A_TIME: usize = 16;

impl<P: Protocol> Peer<'_, P> {
    /// The next connection that has room for the smallest message which it refused with
    /// [`QuotaExceeded`](super::SendError::QuotaExceeded) or [`PoolExhausted`](super::SendError::PoolExhausted). It is
    /// named once for all messages that it refused before; if it refuses another one it is named again when there is
    /// room for that.
    ///
    /// Connections that wait for what others hold are named in turns, and no more at once than there is room for. Each
    /// call looks at 16 of them at the most; [`poll_timeout`](Self::poll_timeout) tells when there are more to look at. So
    /// a driver that asks a few times a turn does bounded work, however many wait.
    ///
    /// ```
    /// use rakwire::Instant;
    /// use rakwire::endpoint::{ConnectionId, Peer, Protocol, SendError};
    ///
    /// /// Sends `message` again on each connection that refused it and has room now.
    /// fn send_again<P: Protocol>(peer: &mut Peer<'_, P>, now: Instant, message: &[u8]) -> Result<(), SendError> {
    ///     while let Some(id) = peer.poll_writable() {
    ///         peer.send(now, id, message, P::Delivery::default())?;
    ///     }
    ///     Ok(())
    /// }
    /// # use rakwire::raknet::{Config, Resources};
    /// # let mut resources = Resources::<1, 32, 128>::new();
    /// # let mut peer = Peer::new(&mut resources, Config::new([7; 32]));
    /// # assert_eq!(send_again(&mut peer, Instant::ZERO, b"\x86"), Ok(()));
    /// ```
    pub fn poll_writable(&mut self) -> Option<ConnectionId> {
        if SEVERAL && self.tables.writable.is_empty() {
            self.examine_blocked();
        }
        let at = self.tables.writable.front()?;
        self.tables.writable.pop();
        if let Some(slot) = self.slot_mut(at) {
            slot.in_writable = false;
        }
        Some(self.id(at))
    }

    /// A message was refused.
    #[cold]
    pub(crate) fn note_refused(&mut self, at: u16) {
        let shares = &self.tables.pool.shares;
        let refused = u32::try_from(shares.refused()).unwrap_or(u32::MAX).max(1);
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        slot.wanted = if slot.wanted == 0 { refused } else { slot.wanted.min(refused) };
        let (share, wanted) = (slot.connection.send_share(), slot.wanted as usize);
        if SEVERAL && shares.depends_on_others(share, wanted, Claim::Send) {
            self.blocked.needed = self.blocked.needed.min(shares.needed(share, wanted));
            if !core::mem::replace(&mut slot.in_blocked, true) {
                self.tables.blocked.push(at);
            }
        }
    }

    /// Lists a connection that refused a message and has changed, if it has room now.
    #[inline]
    pub(crate) fn list_writable(&mut self, at: u16) {
        let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
        if slot.wanted == 0 {
            return;
        }
        if slot.connection.is_over() {
            slot.wanted = 0;
            return;
        }
        let (share, wanted) = (slot.connection.send_share(), slot.wanted as usize);
        if self.tables.pool.shares.check(share, wanted, Claim::Send).is_err() {
            return;
        }
        slot.wanted = 0;
        if !core::mem::replace(&mut slot.in_writable, true) {
            self.tables.writable.push(at);
        }
    }

    /// Lists some of the connections that wait for what others hold, if so much is free that it may be enough for one.
    fn examine_blocked(&mut self) {
        self.begin_round();
        let mut shares = self.tables.pool.shares.bounded(self.blocked.room);
        for _ in 0..AT_A_TIME.min(self.blocked.unexamined) {
            self.blocked.unexamined -= 1;
            let Some(at) = self.tables.blocked.front() else { return };
            self.tables.blocked.pop();
            let Some(slot) = self.tables.slots.get_mut(usize::from(at)) else { return };
            let (mut share, wanted) = (*slot.connection.send_share(), slot.wanted as usize);
            // Each one that is named takes its room here, so that not all are named for the same blocks.
            if wanted > 0 && shares.charge(&mut share, wanted, Claim::Send).is_err() {
                self.blocked.needed = self.blocked.needed.min(shares.needed(&share, wanted));
                self.tables.blocked.push(at);
                continue;
            }
            slot.in_blocked = false;
            if core::mem::take(&mut slot.wanted) > 0 && !core::mem::replace(&mut slot.in_writable, true) {
                self.tables.writable.push(at);
            }
        }
        self.blocked.room = shares.free();
        // Those that were named need not take their room: then it is for others.
        self.begin_round();
    }

    /// Begins to look at all that wait for room of others, if it may be enough for one of them.
    fn begin_round(&mut self) {
        let free = self.tables.pool.shares.free();
        if self.blocked.unexamined == 0 && free >= self.blocked.needed {
            let unexamined = self.tables.blocked.len();
            self.blocked = Blocked { unexamined, room: free, needed: usize::MAX };
        }
    }
}

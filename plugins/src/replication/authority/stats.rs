//! The counters of an authority, and of one client.

use crate::replication::wire::Record;

/// Counters of an authority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthorityStats {
    /// Messages that say nothing, or of ticks to come.
    pub malformed: u64,
    /// States of entities that their sender does not own.
    pub unauthorised: u64,
    /// Connections that were left out, since the plugin was made for fewer than the peer can have.
    pub without_room: u64,
    /// Clients whose classes are others. They are sent nothing.
    pub mismatched: u64,
}

/// What a client was sent, from which a graph of its bandwidth can be drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Messages that were sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bits of records with everything of an entity.
    pub full_bits: u64,
    /// Bits of records with what has changed.
    pub delta_bits: u64,
    /// Bits of records that remove entities.
    pub removed_bits: u64,
    /// Entities that are in scope.
    pub in_scope: u32,
    /// Entities of which there was something to send in the last tick, and no room for it.
    pub waiting: u32,
}

impl PeerStats {
    pub(super) fn count(&mut self, record: &Record, bits: usize) {
        let total = match record {
            Record::Full(_) => &mut self.full_bits,
            Record::Delta(_) => &mut self.delta_bits,
            Record::Removed { .. } => &mut self.removed_bits,
        };
        *total = total.saturating_add(bits as u64);
    }
}

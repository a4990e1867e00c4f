//! The counters of an authority and of its clients.

use crate::replication::wire::Record;

/// Counters of an authority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuthorityStats {
    /// Messages that are malformed or acknowledge future ticks.
    pub malformed: u64,
    /// States for entities that the sender does not own.
    pub unauthorised: u64,
    /// Connections that are ignored because the plugin has fewer slots than the peer has connections.
    pub over_capacity: u64,
    /// Clients with different classes, which receive no entities.
    pub mismatched: u64,
}

/// Counters of the data sent to a client, for example for a bandwidth graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStats {
    /// Messages that were sent.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Bits of records with a full entity.
    pub full_bits: u64,
    /// Bits of records with changes.
    pub delta_bits: u64,
    /// Bits of records that remove entities.
    pub removed_bits: u64,
    /// Entities in scope.
    pub in_scope: u32,
    /// Entities with changes that did not fit into the last tick.
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

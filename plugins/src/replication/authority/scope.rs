//! Decides which client sees which entity.

use core::num::NonZeroU16;

use rakwire::endpoint::ConnectionId;

use crate::replication::id::NetworkId;

/// An entity at the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityInfo<'e> {
    /// The identifier of the entity.
    pub id: NetworkId,
    /// The index of the entity's class.
    pub class: u8,
    /// The application's number for the entity.
    pub handle: u32,
    /// The client that owns the entity; `None` is the authority.
    pub owner: Option<ConnectionId>,
    /// The values of the fields. Values beyond the fields of the class are meaningless.
    pub values: &'e [u32],
}

/// The size of a record in a message to a client, in bits. The message header and the distances between
/// entity indices are not attributed to entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBits<'b> {
    /// The number of bits of each field of the class; 0 for fields that were not sent.
    pub fields: &'b [u16],
    /// All other bits: the kind of record, the identity of the entity, and the number of fields.
    pub header: u16,
}

/// Decides which client sees which entity.
pub trait Scope {
    /// Returns the priority of an entity for a client; `None` hides the entity from the client.
    ///
    /// An entity that does not fit into a tick accumulates its priority. An entity is always in the scope of its
    /// owner.
    fn priority(&mut self, to: ConnectionId, entity: &EntityInfo<'_>) -> Option<NonZeroU16>;

    /// Returns true if [`on_sent`](Self::on_sent) should be called, which makes each update more expensive.
    fn watches_bandwidth(&self) -> bool {
        false
    }

    /// Handles a record that was sent to a client, for example to draw a graph of the bandwidth.
    fn on_sent(&mut self, to: ConnectionId, entity: &EntityInfo<'_>, bits: SentBits<'_>) {
        let _ = (to, entity, bits);
    }
}

/// A scope in which all clients see all entities with the same priority.
#[derive(Clone, Copy, Debug, Default)]
pub struct EverythingInScope;

impl Scope for EverythingInScope {
    fn priority(&mut self, _to: ConnectionId, _entity: &EntityInfo<'_>) -> Option<NonZeroU16> {
        Some(NonZeroU16::MIN)
    }
}

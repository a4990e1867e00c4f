//! Who sees what.

use core::num::NonZeroU16;

use rakwire::endpoint::ConnectionId;

use crate::replication::id::NetworkId;

/// An entity, as its authority shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityInfo<'e> {
    /// Its name.
    pub id: NetworkId,
    /// Its class, by its place among the classes.
    pub class: u8,
    /// The application's number for it.
    pub handle: u32,
    /// The client that says how it is; nothing is the authority itself.
    pub owner: Option<ConnectionId>,
    /// Its fields; those behind the fields of its class mean nothing.
    pub values: &'e [u32],
}

/// What a record took in a message to a client. The header of the message and the distances between the indices of its entities are
/// no entity's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBits<'b> {
    /// Bits of each field of the class; 0 of those that were not sent.
    pub fields: &'b [u16],
    /// All other bits: what kind of record it is, which entity, and how many fields.
    pub header: u16,
}

/// Who sees what.
pub trait Scope {
    /// How much it matters that a client knows how an entity is now; nothing if the client is not to know of it at all. What
    /// finds no room in one tick counts so much more in the next. Each entity is in the scope of its owner.
    fn priority(&mut self, to: ConnectionId, entity: &EntityInfo<'_>) -> Option<NonZeroU16>;

    /// Whether [`on_sent`](Self::on_sent) is called, which makes each update some work.
    fn watches_bandwidth(&self) -> bool {
        false
    }

    /// A client was sent how an entity is: what a graph of the bandwidth is drawn from, by field, class, entity or client.
    fn on_sent(&mut self, to: ConnectionId, entity: &EntityInfo<'_>, bits: SentBits<'_>) {
        let _ = (to, entity, bits);
    }
}

/// Everybody sees everything, and all of it matters alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct EverythingInScope;

impl Scope for EverythingInScope {
    fn priority(&mut self, _to: ConnectionId, _entity: &EntityInfo<'_>) -> Option<NonZeroU16> {
        Some(NonZeroU16::MIN)
    }
}

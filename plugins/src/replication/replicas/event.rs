//! What clients are told of entities.

/// Why an entity is not here any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveReason {
    /// The authority has ended it.
    Destroyed,
    /// It has left the scope of this peer, and may come back.
    OutOfScope,
    /// The connection to the authority has ended.
    Disconnected,
}

/// What has become of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaEvent {
    /// It is here.
    Created,
    /// Its fields have changed, once or several times.
    Changed,
    /// Whether this peer owns it now, and so says how it is.
    OwnerChanged(bool),
    /// It is not here any more. One that has come and gone since events were asked for last is told of by none.
    Removed(RemoveReason),
}

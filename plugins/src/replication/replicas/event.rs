//! Events of replicated entities.

/// The reason why an entity was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveReason {
    /// The authority despawned the entity.
    Destroyed,
    /// The entity left the scope of this peer, and may return.
    OutOfScope,
    /// The connection to the authority was closed.
    Disconnected,
}

/// A change of an entity since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaEvent {
    /// The entity was created.
    Created,
    /// The fields of the entity changed, once or several times.
    Changed,
    /// This peer gained (true) or lost (false) the ownership of the entity.
    OwnerChanged(bool),
    /// The entity was removed. An entity that is created and removed between two polls is not reported.
    Removed(RemoveReason),
}

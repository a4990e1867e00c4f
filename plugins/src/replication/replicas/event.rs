//! Events of replicated entities.

/// The reason why an entity was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoveReason {
    /// The authority despawned it.
    Destroyed,
    /// It left the scope of this peer, and may return.
    OutOfScope,
    /// The connection to the authority was closed.
    Disconnected,
}

/// A change of an entity since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaEvent {
    /// It was created.
    Created,
    /// Its fields changed, once or several times.
    Changed,
    /// This peer gained (true) or lost (false) its ownership.
    OwnerChanged(bool),
    /// It was removed. An entity that was created and removed between two polls is not reported.
    Removed(RemoveReason),
}

//! Peers that run in a thread.

/// A peer that its thread calls repeatedly.
pub(super) trait Turn {
    /// Handles incoming datagrams and expired timers.
    fn turn(&mut self);
}

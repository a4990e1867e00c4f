//! Peers of a thread.

/// A peer that handles incoming datagrams repeatedly.
pub(super) trait Turn {
    /// Handles incoming datagrams and expired timers.
    fn turn(&mut self);
}

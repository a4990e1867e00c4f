//! The interface of model peers that run in a thread.

/// A peer with a thread that calls it repeatedly.
pub(super) trait Turn {
    /// Handles incoming datagrams and expired timers.
    fn turn(&mut self);
}

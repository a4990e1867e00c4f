//! Peers of a thread.

/// A peer that handles what has arrived, again and again.
pub(super) trait Turn {
    /// Handles what has arrived, and what is due by time.
    fn turn(&mut self);
}

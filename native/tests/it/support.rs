//! What the tests of all kinds need.

use std::time::Duration;

/// Longer than anything here takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

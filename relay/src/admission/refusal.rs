//! Why a client is refused.

use crate::close::CloseReason;

/// Why a client is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its page may not connect.
    Origin,
    /// Its address is banned.
    Banned,
    /// What a close code tells, because a page sees nothing else.
    Close(CloseReason),
}

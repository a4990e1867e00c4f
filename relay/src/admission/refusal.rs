//! Why a client is refused.

use crate::close::CloseReason;

/// Why a client is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not for this client at all.
    Forbidden(Forbidden),
    /// What a close code tells, because a page sees nothing else.
    Close(CloseReason),
}

/// Who may not connect whatever they ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// Pages of other origins.
    Origin,
    /// Banned addresses.
    Banned,
}

impl From<CloseReason> for Refusal {
    fn from(reason: CloseReason) -> Self {
        Self::Close(reason)
    }
}

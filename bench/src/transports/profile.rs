//! How the page recovers from losses.

use serde::Serialize;

/// How losses are recovered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Profile {
    /// As it suits what carries the datagrams.
    Carrier,
    /// As over datagrams, whatever carries them.
    Datagrams,
}

impl Profile {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Carrier => "carrier",
            Self::Datagrams => "datagrams",
        }
    }
}

//! The loss recovery of the page.

use serde::Serialize;

/// The kind of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Profile {
    /// The one that suits the carrier of the datagrams.
    Carrier,
    /// The one for datagrams, whatever the carrier is.
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

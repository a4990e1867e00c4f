//! The loss recovery that the page selects.

use serde::Serialize;

/// The loss recovery of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Profile {
    /// The loss recovery that suits the transport.
    Carrier,
    /// The loss recovery for unreliable datagrams, with any transport.
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

//! What the first byte of a datagram tells.

use super::datagram::VALID;

/// What kind of datagram the first byte announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstByte {
    Connected,
    Offline,
}

impl FirstByte {
    pub(crate) const fn classify(datagram: &[u8]) -> Option<Self> {
        match datagram {
            [] | [_] | [_, _] => None,
            [first, ..] if *first & VALID != 0 => Some(Self::Connected),
            [..] => Some(Self::Offline),
        }
    }
}

//! The length of the lists of addresses in the messages that open a connection.

/// How many addresses a list has: peers that read a fixed number take no other, and misread what follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListLength {
    /// The original, up to protocol version 8.
    #[default]
    Ten,
    /// Minecraft Bedrock, from protocol version 9 on.
    Twenty,
}

impl ListLength {
    /// The newest protocol version with ten addresses.
    const NEWEST_TEN: u8 = 8;

    /// The length of the lists of peers that speak `version`.
    pub(super) const fn of_version(version: u8) -> Self {
        if version <= Self::NEWEST_TEN { Self::Ten } else { Self::Twenty }
    }

    /// The length of the lists of all peers that speak one of these versions, if it is the same.
    pub(super) fn of_versions(versions: &[u8]) -> Option<Self> {
        let mut lengths = versions.iter().map(|version| Self::of_version(*version));
        let first = lengths.next()?;
        lengths.all(|length| length == first).then_some(first)
    }

    /// As one bit, which a cookie brings back.
    pub(super) const fn is_twenty(self) -> bool {
        matches!(self, Self::Twenty)
    }

    pub(super) const fn from_bit(is_twenty: bool) -> Self {
        if is_twenty { Self::Twenty } else { Self::Ten }
    }

    /// The number of addresses.
    pub(super) const fn addresses(self) -> usize {
        match self {
            Self::Ten => 10,
            Self::Twenty => 20,
        }
    }
}

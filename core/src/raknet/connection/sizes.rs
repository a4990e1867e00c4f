//! How much fits: the arithmetic of MTU, datagram, capsule and part (docs/raknet.md#sizes).

use crate::raknet::wire::capsule::MAX_HEADER;
use crate::raknet::wire::datagram::DATA_HEADER;
use crate::raknet::wire::{IP_UDP_OVERHEAD, MIN_MTU};

/// The original counts nine bytes for the header of a datagram, of which four exist.
const COUNTED_HEADER: usize = 9;

/// MTUs to which a path may shrink during a connection: `BASE_PLPMTU` of RFC 8899 section 5.1.2, which links of 1,280 bytes carry
/// over IPv6, too, and the smallest of RakNet. There is none in between: what was cut for it would be lost for ever on a path that
/// carries less.
const SMALLER_MTUS: [u16; 2] = [1_200, MIN_MTU];

/// What fits at the MTU of a path, which may be smaller than the one that the peers agreed on, with `overhead` bytes in each datagram that belong to a secure mode (0 in plain mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    mtu: u16,
    agreed: u16,
    overhead: u16,
}

impl Sizes {
    pub(crate) const fn new(mtu: u16, overhead: u16) -> Self {
        Self { mtu, agreed: mtu, overhead }
    }

    /// The same for another MTU on which the peers agree.
    pub(crate) const fn with_mtu(self, mtu: u16) -> Self {
        Self::new(mtu, self.overhead)
    }

    /// The same for the MTU on which the peers agreed, by which the other one sends.
    pub(crate) const fn agreed(self) -> Self {
        Self::new(self.agreed, self.overhead)
    }

    pub(crate) const fn mtu(self) -> u16 {
        self.mtu
    }

    /// What fits at the next smaller MTU, if any, for a path that does not carry this one.
    pub(crate) fn smaller(self) -> Option<Self> {
        SMALLER_MTUS.into_iter().find(|mtu| *mtu < self.mtu).map(|mtu| Self { mtu, ..self })
    }

    /// Bytes of a datagram without IP and UDP headers and without the overhead; zero where there is no MTU.
    pub(crate) const fn datagram(self) -> usize {
        self.mtu.saturating_sub(IP_UDP_OVERHEAD).saturating_sub(self.overhead) as usize
    }

    /// Bytes of capsules in a datagram. The overhead is subtracted twice, as in the original.
    pub(crate) const fn body(self) -> usize {
        self.datagram().saturating_sub(COUNTED_HEADER + self.overhead as usize)
    }

    /// Bytes of a whole data datagram.
    pub(crate) const fn data_datagram(self) -> usize {
        DATA_HEADER + self.body()
    }

    /// Bytes of the longest message that needs no splitting, and of every part but the last of one that does.
    pub(crate) const fn part(self) -> usize {
        self.body().saturating_sub(MAX_HEADER)
    }

    /// Bytes of the longest part that another implementation may send, by which a receiver promises memory.
    pub(crate) const fn foreign_part(self) -> usize {
        self.agreed().datagram().saturating_sub(DATA_HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of docs/raknet.md#sizes.
    #[test]
    fn table() {
        for (mtu, body, part, original_part, our_part) in
            [(1492, 1455, 1432, 1410, 1394), (1200, 1163, 1140, 1118, 1102), (576, 539, 516, 494, 478)]
        {
            assert_eq!((Sizes::new(mtu, 0).body(), Sizes::new(mtu, 0).part()), (body, part));
            assert_eq!(Sizes::new(mtu, 11).part(), original_part);
            assert_eq!(Sizes::new(mtu, 19).part(), our_part);
        }
    }

    #[test]
    fn nothing_fits_a_vacant_slot() {
        let sizes = Sizes::default();
        assert_eq!([sizes.datagram(), sizes.body(), sizes.part(), sizes.foreign_part()], [0; 4]);
    }
}

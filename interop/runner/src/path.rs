//! The path between the peers, which applies faults to datagrams. A seed determines the faults.

use crate::capture::{End, Fate};
use crate::dissect::{Packet, dissect};
use rakwire_conformance::wire::UDP_OVERHEAD;

/// The maximum datagram length of the path [`Kind::Narrow`], including IP and UDP headers.
pub const NARROW_MTU: usize = 1_200;

/// The faults of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Forwards everything immediately.
    Clean,
    /// Drops 10 % of the datagrams.
    Loss,
    /// Holds back 25 % of the datagrams, so that later datagrams overtake them.
    Reorder,
    /// Duplicates 25 % of the datagrams.
    Duplicate,
    /// Drops datagrams longer than [`NARROW_MTU`].
    Narrow,
}

/// One direction of a path.
///
/// Its faults start with the first datagram that carries an application message, and always affect that
/// datagram. The handshake is therefore identical in all cases, and every run has a fault.
#[derive(Clone, Debug)]
pub struct Path {
    kind: Kind,
    state: u64,
    has_begun: bool,
}

impl Path {
    /// Creates a direction.
    #[must_use]
    pub fn new(kind: Kind, seed: u64, from: End) -> Self {
        let state = seed.wrapping_mul(2).wrapping_add(u64::from(from == End::Server));
        Self { kind, state, has_begun: false }
    }

    /// Returns the fate of the next datagram.
    pub fn decide(&mut self, datagram: &[u8]) -> Fate {
        let (fate, one_in) = match self.kind {
            Kind::Clean => return Fate::Passed,
            Kind::Narrow if datagram.len() + UDP_OVERHEAD > NARROW_MTU => return Fate::Dropped,
            Kind::Narrow => return Fate::Passed,
            Kind::Loss => (Fate::Dropped, 10),
            Kind::Reorder => (Fate::Held, 4),
            Kind::Duplicate => (Fate::Doubled, 4),
        };
        let draw = self.draw();
        if self.has_begun {
            return if draw.is_multiple_of(one_in) { fate } else { Fate::Passed };
        }
        self.has_begun = carries_a_message(datagram);
        if self.has_begun { fate } else { Fate::Passed }
    }

    /// Returns the next random number, by SplitMix64.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// Returns true if a datagram carries an application message or a part of it.
#[must_use]
pub fn carries_a_message(datagram: &[u8]) -> bool {
    match dissect(datagram) {
        Packet::Data { capsules, .. } => capsules.iter().any(|placed| placed.is_of_an_application()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rakwire_conformance::wire::{self, Capsule};

    fn message(number: u32) -> Vec<u8> {
        wire::data(0x84, number, &[Capsule::reliable(number, vec![0xfe, 1])])
    }

    fn fates(kind: Kind, seed: u64) -> Vec<Fate> {
        let mut path = Path::new(kind, seed, End::Client);
        let control = wire::data(0x84, 0, &[Capsule::reliable(0, vec![0x09])]);
        [control].into_iter().chain((1..400).map(message)).map(|bytes| path.decide(&bytes)).collect()
    }

    #[test]
    fn faults_begin_with_the_first_message_and_depend_on_the_seed() {
        for (kind, fate, share) in [
            (Kind::Loss, Fate::Dropped, 40),
            (Kind::Reorder, Fate::Held, 100),
            (Kind::Duplicate, Fate::Doubled, 100),
        ] {
            let fates = fates(kind, 7);
            assert_eq!(fates[..2], [Fate::Passed, fate]);
            let met = fates.iter().filter(|&&one| one == fate).count();
            assert!((share / 2..share * 2).contains(&met), "{kind:?}: {met}");
            assert_eq!(fates, self::fates(kind, 7));
            assert_ne!(fates, self::fates(kind, 8));
        }
        assert!(fates(Kind::Clean, 7).iter().all(|&fate| fate == Fate::Passed));
    }

    #[test]
    fn a_path_with_a_small_mtu_drops_longer_datagrams() {
        let mut path = Path::new(Kind::Narrow, 0, End::Client);
        assert_eq!(path.decide(&[0; NARROW_MTU - 28]), Fate::Passed);
        assert_eq!(path.decide(&[0; NARROW_MTU - 27]), Fate::Dropped);
    }

    #[test]
    fn the_two_directions_have_different_faults() {
        let draws = |from| {
            let mut path = Path::new(Kind::Loss, 3, from);
            (0..200).map(|number| path.decide(&message(number))).collect::<Vec<_>>()
        };
        assert_ne!(draws(End::Client), draws(End::Server));
    }
}

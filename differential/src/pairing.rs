//! The library that each peer of a script uses.

use std::fmt;

/// The library that a peer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The original C++ RakNet.
    Original,
    /// rakwire.
    Rakwire,
}

/// The libraries of a run: one for the first peer of the script, and one for all other peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The library of the first peer, which most scripts use as a server.
    pub first: Library,
    /// The library of all other peers.
    pub others: Library,
}

impl Pairing {
    /// The reference: all peers use the original.
    pub const REFERENCE: Self = Self { first: Library::Original, others: Library::Original };
    /// The pairings that are compared with the reference.
    pub const COMPARED: [Self; 3] = [
        Self { first: Library::Original, others: Library::Rakwire },
        Self { first: Library::Rakwire, others: Library::Original },
        Self { first: Library::Rakwire, others: Library::Rakwire },
    ];

    /// Returns the library of a peer.
    #[must_use]
    pub const fn library(self, peer: usize) -> Library {
        if peer == 0 { self.first } else { self.others }
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |library| if library == Library::Original { "original" } else { "rakwire" };
        write!(formatter, "{}-{}", name(self.first), name(self.others))
    }
}

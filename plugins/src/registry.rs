//! The owners of message ids. A message id is the first byte of a message.
//!
//! Plugins that are wire-compatible with a plugin of C++ RakNet use its ids. The other plugins use ids that C++ RakNet
//! leaves free. Applications start at [`FIRST_APPLICATION_ID`].

/// The first id for messages of applications; `ID_USER_PACKET_ENUM` in C++ RakNet.
pub const FIRST_APPLICATION_ID: u8 = 134;

/// The owner of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// RakNet itself.
    RakNet,
    /// A plugin of C++ RakNet with which this crate is wire-compatible.
    Original,
    /// A plugin of C++ RakNet that this crate does not implement. Do not use its ids for anything else.
    OriginalOnly,
    /// A plugin of this crate with its own wire format.
    Rakwire,
    /// Unassigned: reserved for future plugins of this crate.
    Free,
    /// The application.
    Application,
}

/// Consecutive message ids with the same purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The first id.
    pub first: u8,
    /// The last id.
    pub last: u8,
    /// The owner of these ids.
    pub owner: Owner,
    /// The purpose of these ids.
    pub purpose: &'static str,
}

const fn claim(first: u8, last: u8, owner: Owner, purpose: &'static str) -> Claim {
    Claim { first, last, owner, purpose }
}

/// All message ids, in ascending order.
pub const REGISTRY: [Claim; 35] = [
    claim(0, 30, Owner::RakNet, "RakNet itself"),
    claim(31, 33, Owner::Original, "connection graph"),
    claim(34, 37, Owner::OriginalOnly, "file list and directory transfer"),
    claim(38, 38, Owner::OriginalOnly, "transport string"),
    claim(39, 43, Owner::OriginalOnly, "replica manager"),
    claim(44, 47, Owner::OriginalOnly, "voice"),
    claim(48, 57, Owner::OriginalOnly, "autopatcher"),
    claim(58, 67, Owner::OriginalOnly, "NAT punch-through"),
    claim(68, 71, Owner::Original, "ready event"),
    claim(72, 72, Owner::OriginalOnly, "lobby"),
    claim(73, 74, Owner::Original, "remote procedure calls of the original"),
    claim(75, 75, Owner::OriginalOnly, "file list references"),
    claim(76, 76, Owner::Original, "ready event, forced"),
    claim(77, 79, Owner::OriginalOnly, "rooms"),
    claim(80, 81, Owner::OriginalOnly, "lobby, version 2"),
    claim(82, 91, Owner::OriginalOnly, "fully connected mesh"),
    claim(92, 92, Owner::OriginalOnly, "UDP proxy"),
    claim(93, 95, Owner::OriginalOnly, "SQLite"),
    claim(96, 97, Owner::OriginalOnly, "NAT type detection"),
    claim(98, 101, Owner::OriginalOnly, "router"),
    claim(102, 106, Owner::OriginalOnly, "teams"),
    claim(107, 107, Owner::OriginalOnly, "Lightspeed"),
    claim(108, 108, Owner::OriginalOnly, "Xbox lobby"),
    claim(109, 114, Owner::OriginalOnly, "two-way authentication"),
    claim(115, 121, Owner::OriginalOnly, "cloud"),
    claim(122, 122, Owner::OriginalOnly, "voice, version 2"),
    claim(123, 123, Owner::OriginalOnly, "relay plugin"),
    claim(124, 125, Owner::OriginalOnly, "NAT addresses"),
    claim(126, 126, Owner::OriginalOnly, "fully connected mesh, contexts"),
    claim(crate::calls::MESSAGE_ID, crate::calls::MESSAGE_ID, Owner::Rakwire, "remote calls"),
    claim(crate::files::REQUEST_ID, crate::files::REPLY_ID, Owner::Rakwire, "file transfer"),
    claim(crate::replication::UPDATE_ID, crate::replication::REPLY_ID, Owner::Rakwire, "replication"),
    claim(crate::mesh::MEMBER_ID, crate::mesh::MEMBER_ID, Owner::Rakwire, "mesh"),
    claim(crate::nat::NAT_ID, crate::nat::NAT_ID, Owner::Rakwire, "NAT traversal"),
    claim(FIRST_APPLICATION_ID, 255, Owner::Application, "messages of the application"),
];

/// Returns the claim that contains an id. Every id has one.
///
/// ```
/// use rakwire_plugins::registry::{Owner, lookup};
///
/// assert_eq!(lookup(68).map(|claim| claim.purpose), Some("ready event"));
/// assert_eq!(lookup(0x86).map(|claim| claim.owner), Some(Owner::Application));
/// ```
#[must_use]
pub fn lookup(id: u8) -> Option<&'static Claim> {
    REGISTRY.iter().find(|claim| (claim.first..=claim.last).contains(&id))
}

//! Which message ids, that is first bytes of messages, are whose.
//!
//! The ids of RakNet's own plugins keep their meaning: what of them speaks the same wire here has the original's ids, what
//! does not has ids that the original keeps free. An application's ids begin at [`FIRST_OF_APPLICATIONS`].

/// The first id that applications use for messages of their own; the original's `ID_USER_PACKET_ENUM`.
pub const FIRST_OF_APPLICATIONS: u8 = 134;

/// Whose an id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// RakNet itself.
    RakNet,
    /// A plugin of the original, whose wire is spoken here.
    Original,
    /// A plugin of the original that is not here: nothing else may use its ids.
    OriginalOnly,
    /// A plugin of this crate, with a wire of its own.
    Rakwire,
    /// Nobody: free for plugins of this crate to come.
    Free,
    /// The application.
    Application,
}

/// Ids that follow each other and have one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The first id.
    pub first: u8,
    /// The last id.
    pub last: u8,
    /// Whose they are.
    pub owner: Owner,
    /// What they are for.
    pub purpose: &'static str,
}

const fn claim(first: u8, last: u8, owner: Owner, purpose: &'static str) -> Claim {
    Claim { first, last, owner, purpose }
}

/// Every id, in order.
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
    claim(FIRST_OF_APPLICATIONS, 255, Owner::Application, "messages of the application"),
];

/// What an id is for.
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

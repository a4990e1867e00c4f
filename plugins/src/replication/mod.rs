//! Replication: the entities of one peer, as others have them.
//!
//! The [authority](Authority) makes entities, each of a [class](Class) with fields of fixed widths, and calls
//! [`Authority::tick`] some times in a second. In each tick every client is sent what has changed since what it has acknowledged,
//! of the entities in its [scope](Scope), those that matter most first, up to a budget of bytes. The [replicas](Replicas) of a
//! client are at each tick that arrives exactly what they were at the authority. An entity can be given to a client, which then
//! says how it is. `docs/plugins/replication.md` has the messages.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::{Delivery, RakNet};
//! use rakwire_plugins::replication::{Class, EverythingInScope, Field, FixedAuthority};
//!
//! /// Where a player is, by the centimetre, and which way it looks; both change a little at a time.
//! static CLASSES: [Class; 1] = [Class {
//!     fields: &[Field::new(16).or_short(6), Field::new(16).or_short(6), Field::new(10).or_short(5)],
//! }];
//!
//! // 8 clients, 64 entities of up to 3 fields, short forms for 16 ticks, messages of up to 1,024 bytes.
//! let delivery = Delivery::UNRELIABLE;
//! let mut authority = FixedAuthority::<RakNet, _, 8, 64, 3, 16, 1_024>::new(&CLASSES, EverythingInScope, delivery)?;
//! let player = authority.spawn(0, 7, &[5_000, 5_000, 0])?;
//! authority.set(player, 0, 5_010)?;
//! authority.tick();
//! assert_eq!(authority.find(7).map(|entity| entity.id), Some(player));
//! let mut host = PluginHost::<_, 1>::new();
//! host.attach::<RakNet>(authority)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `alloc` `HeapAuthority` and `HeapReplicas` have their sizes from a configuration, and never stand on a stack:
//! `plugins/examples/replication.rs` has both sides. The peers compare a fingerprint of their classes first; an authority sends
//! nothing to a client with others, and [`Authority::poll_mismatch`] and [`Replicas::poll_mismatch`] say so.

mod authority;
mod class;
mod error;
mod id;
mod received;
mod replicas;
mod rows;
mod wire;

pub use self::authority::{
    Authority, AuthorityMemory, AuthorityStats, EntityInfo, EverythingInScope, FixedAuthority,
    FixedAuthorityMemory, PeerStats, Scope, SentBits,
};
#[cfg(feature = "alloc")]
pub use self::authority::{AuthorityConfig, HeapAuthority, HeapAuthorityMemory};
pub use self::class::{Class, ClassError, Field, MAX_FIELDS};
pub use self::error::{SetError, SpawnError};
pub use self::id::NetworkId;
pub use self::replicas::{
    FixedReplicas, FixedReplicasMemory, RemoveReason, ReplicaEvent, ReplicaInfo, Replicas, ReplicasMemory,
    ReplicasStats,
};
#[cfg(feature = "alloc")]
pub use self::replicas::{HeapReplicas, HeapReplicasMemory, ReplicasConfig};
pub use self::wire::{REPLY_ID, UPDATE_ID};

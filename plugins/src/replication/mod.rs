//! Replication: copies the entities of one peer to others.
//!
//! - The [authority](Authority) spawns entities, each of a [class](Class) with fields of fixed widths, and
//!   calls [`Authority::tick`] several times per second.
//! - Each tick sends every client the changes since the tick that it last acknowledged, for the entities in
//!   its [scope](Scope). The highest priority comes first, up to a budget of bytes.
//! - The [replicas](Replicas) of a client equal the entities of the authority at each tick that arrives.
//! - A client can become the owner of an entity, and then sets its values.
//!
//! `docs/plugins/replication.md` describes the messages.
//!
//! ```
//! use rakwire::endpoint::PluginHost;
//! use rakwire::raknet::{Delivery, RakNet};
//! use rakwire_plugins::replication::{Class, EverythingInScope, Field, FixedAuthority};
//!
//! /// The position of a player in centimetres, and its heading; both change in small steps.
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
//! With the feature `alloc`, `HeapAuthority` and `HeapReplicas` take their sizes from a configuration and are
//! never on a stack: `plugins/examples/replication.rs` shows both sides. The peers first compare a
//! fingerprint of their classes. An authority sends nothing to a client with other classes;
//! [`Authority::poll_mismatch`] and [`Replicas::poll_mismatch`] report this.

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

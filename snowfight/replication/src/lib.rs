//! The world of the snowball fight by replication instead of snapshots (docs/game.md#replication).
//!
//! It uses the [replication](rakwire_plugins::replication) of `rakwire-plugins`.
//!
//! - [`ReplicatedWorld`] copies the world of a server to an authority.
//! - [`NearPlayers`] is the scope of a player's client: the entities near the player, the nearest first.
//! - [`entities`] returns the entities of the game in the replicas of a client.
//!
//! ```
//! use rakwire::raknet::{Delivery, RakNet};
//! use snowfight::world::World;
//! use snowfight_replication::{ReplicatedWorld, WorldAuthority, authority};
//!
//! let mut authority: WorldAuthority<RakNet, 1> = authority(Delivery::UNRELIABLE)?;
//! let (mut world, mut replicated) = (World::new(7), ReplicatedWorld::new());
//! world.join();
//! while !replicated.record(&mut authority, world.time(), &world.entities(), []) {
//!     world.tick();
//! }
//! assert_eq!(authority.iter().count(), 301);
//! # Ok::<(), rakwire_plugins::replication::ClassError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod class;
#[cfg(feature = "alloc")]
mod near_players;
#[cfg(feature = "alloc")]
mod world;

use rakwire::endpoint::Protocol;
#[cfg(feature = "alloc")]
use rakwire_plugins::replication::{AuthorityConfig, HeapAuthority};
use rakwire_plugins::replication::{ClassError, FixedReplicas};
use snowfight::message::Entity;
use snowfight::world::{MAX_OBJECTS, MAX_PLAYERS, TICKS_PER_SECOND};

pub use class::{FIELDS, NEAR, POSITION_SCALE};
#[cfg(feature = "alloc")]
pub use near_players::NearPlayers;
#[cfg(feature = "alloc")]
pub use world::ReplicatedWorld;

/// The maximum number of entities in a world.
pub const ENTITIES: usize = MAX_PLAYERS + MAX_OBJECTS;
/// The interval of updates in ticks of the world, which is that of snapshots of changes.
pub const UPDATE_TICKS: u32 = 2;
/// Updates per second.
pub const UPDATES_PER_SECOND: u32 = TICKS_PER_SECOND / UPDATE_TICKS;
/// The maximum length of an update, in bytes. It fits into a datagram.
pub const BYTES: usize = 1_024;
/// The number of updates, half a second, for which changes have a short form.
#[cfg(feature = "alloc")]
const HISTORY: usize = 16;

/// The authority of a server with `PEERS` connections. Each of them takes about 20 KB.
#[cfg(feature = "alloc")]
pub type WorldAuthority<P, const PEERS: usize> = HeapAuthority<P, NearPlayers<PEERS>>;

/// The replicas of a client.
pub type WorldReplicas<P> = FixedReplicas<P, ENTITIES, FIELDS, BYTES>;

/// Creates an authority without entities. The delivery of its messages should be unreliable.
///
/// # Errors
/// Never: the classes are those of this crate.
#[cfg(feature = "alloc")]
pub fn authority<P: Protocol, const PEERS: usize>(
    delivery: P::Delivery,
) -> Result<WorldAuthority<P, PEERS>, ClassError> {
    let config =
        AuthorityConfig { connections: PEERS, entities: ENTITIES, history: HISTORY, max_message: BYTES };
    HeapAuthority::new(&class::CLASSES, NearPlayers::new(), delivery, &config)
}

/// Creates replicas without entities. The delivery of their acknowledgements should be unreliable.
///
/// # Errors
/// Never: the classes are those of this crate.
pub fn replicas<P: Protocol>(delivery: P::Delivery) -> Result<WorldReplicas<P>, ClassError> {
    FixedReplicas::new(&class::CLASSES, delivery)
}

/// Returns the entities of the game that a client has, players first.
pub fn entities<P: Protocol>(replicas: &WorldReplicas<P>) -> impl Iterator<Item = Entity> {
    let all = || replicas.iter();
    let players = all().filter(|replica| replica.class == class::PLAYER);
    let others = all().filter(|replica| replica.class != class::PLAYER);
    players.chain(others).filter_map(|replica| class::entity(replica.class, replica.values))
}

/// Returns the tick of the world in the newest update; 0 before the first.
#[must_use]
pub const fn time<P: Protocol>(replicas: &WorldReplicas<P>) -> u32 {
    replicas.tick().wrapping_mul(UPDATE_TICKS)
}

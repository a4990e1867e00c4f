//! Replicates the world of the snowball fight to clients instead of sending snapshots (docs/game.md#replication).
//!
//! The protocol is the [replication](rakwire_plugins::replication) plugin of `rakwire-plugins`.
//!
//! - [`ReplicatedWorld`] copies a server's world to its replication authority.
//! - [`NearPlayers`] selects the entities for a client: those near its player, the nearest first.
//! - [`entities`] returns the game's entities from a client's replicas.
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
/// The interval between updates, in ticks. Delta snapshots have the same interval.
pub const UPDATE_TICKS: u32 = 2;
/// Updates per second.
pub const UPDATES_PER_SECOND: u32 = TICKS_PER_SECOND / UPDATE_TICKS;
/// The maximum length of an update, in bytes. An update fits into one datagram.
pub const BYTES: usize = 1_024;
/// The number of updates (half a second) within which a change can be encoded relative to an acknowledged value.
#[cfg(feature = "alloc")]
const HISTORY: usize = 16;

/// The replication authority of a server with up to `PEERS` connections, with about 20 KB for each.
#[cfg(feature = "alloc")]
pub type WorldAuthority<P, const PEERS: usize> = HeapAuthority<P, NearPlayers<PEERS>>;

/// The replicas of a client.
pub type WorldReplicas<P> = FixedReplicas<P, ENTITIES, FIELDS, BYTES>;

/// Creates an authority without entities. `delivery` applies to its updates and should be unreliable.
///
/// # Errors
/// Never fails: the entity classes are valid constants of this crate.
#[cfg(feature = "alloc")]
pub fn authority<P: Protocol, const PEERS: usize>(
    delivery: P::Delivery,
) -> Result<WorldAuthority<P, PEERS>, ClassError> {
    let config =
        AuthorityConfig { connections: PEERS, entities: ENTITIES, history: HISTORY, max_message: BYTES };
    HeapAuthority::new(&class::CLASSES, NearPlayers::new(), delivery, &config)
}

/// Creates replicas without entities. `delivery` applies to their acknowledgements and should be unreliable.
///
/// # Errors
/// Never fails: the entity classes are valid constants of this crate.
pub fn replicas<P: Protocol>(delivery: P::Delivery) -> Result<WorldReplicas<P>, ClassError> {
    FixedReplicas::new(&class::CLASSES, delivery)
}

/// Returns the game's entities in a client's replicas, players first.
pub fn entities<P: Protocol>(replicas: &WorldReplicas<P>) -> impl Iterator<Item = Entity> {
    let all = || replicas.iter();
    let players = all().filter(|replica| replica.class == class::PLAYER);
    let others = all().filter(|replica| replica.class != class::PLAYER);
    players.chain(others).filter_map(|replica| class::entity(replica.class, replica.values))
}

/// Returns the server's tick in the newest update; 0 before the first update.
#[must_use]
pub const fn time<P: Protocol>(replicas: &WorldReplicas<P>) -> u32 {
    replicas.tick().wrapping_mul(UPDATE_TICKS)
}

//! The world of the snowball fight by the [replication](rakwire_plugins::replication) of `rakwire-plugins`, in place of snapshots
//! (docs/game.md#replication).
//!
//! - [`ReplicatedWorld`] tells an authority how the world of a server is.
//! - [`NearPlayers`] is what the client of a player sees: what is near the player, the nearest first.
//! - [`entities`] are those of the game that replicas show.
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

/// The entities that a world has at once.
pub const ENTITIES: usize = MAX_PLAYERS + MAX_OBJECTS;
/// The interval of updates in ticks of the world, that of snapshots of changes.
pub const UPDATE_TICKS: u32 = 2;
/// Updates per second.
pub const UPDATES_PER_SECOND: u32 = TICKS_PER_SECOND / UPDATE_TICKS;
/// The size of an update in bytes, at most. It fits into a datagram.
pub const BYTES: usize = 1_024;
/// For so many updates, half a second, changes have a short form.
#[cfg(feature = "alloc")]
const HISTORY: usize = 16;

/// The authority of a server with so many connections, which takes about 20 KB for each of them.
#[cfg(feature = "alloc")]
pub type WorldAuthority<P, const PEERS: usize> = HeapAuthority<P, NearPlayers<PEERS>>;

/// What a client has of the world.
pub type WorldReplicas<P> = FixedReplicas<P, ENTITIES, FIELDS, BYTES>;

/// An authority without entities, whose messages travel by this delivery, which should be unreliable.
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

/// Replicas without entities, whose acknowledgements travel by this delivery, which should be unreliable.
///
/// # Errors
/// Never: the classes are those of this crate.
pub fn replicas<P: Protocol>(delivery: P::Delivery) -> Result<WorldReplicas<P>, ClassError> {
    FixedReplicas::new(&class::CLASSES, delivery)
}

/// The entities of the game that a client has, players first.
pub fn entities<P: Protocol>(replicas: &WorldReplicas<P>) -> impl Iterator<Item = Entity> {
    let all = || replicas.iter();
    let players = all().filter(|replica| replica.class == class::PLAYER);
    let others = all().filter(|replica| replica.class != class::PLAYER);
    players.chain(others).filter_map(|replica| class::entity(replica.class, replica.values))
}

/// The tick of the world that the newest update shows; 0 before the first.
#[must_use]
pub const fn time<P: Protocol>(replicas: &WorldReplicas<P>) -> u32 {
    replicas.tick().wrapping_mul(UPDATE_TICKS)
}

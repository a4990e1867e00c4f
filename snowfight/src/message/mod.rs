//! The messages of the Game Protocol (docs/game.md#messages).
//!
//! They are packed as [Rabbit](rakwire::codec::rabbit) by `#[derive(Pack, Unpack)]`.
//!
//! ```
//! use rakwire::codec::rabbit::{pack, unpack};
//! use snowfight::message::{Action, ActionKind, ClientMessage, Direction, Move};
//!
//! let movement = Move { direction: Direction::NORTH | Direction::EAST };
//! let message = ClientMessage::Action(Action { kind: ActionKind::Move(movement) });
//! let mut buffer = [0; 8];
//! let bytes = pack(&message, &mut buffer)?;
//! assert_eq!(bytes, [0x4D, 0x00]);
//! assert_eq!(unpack(bytes), Ok(message));
//! # Ok::<(), rakwire::codec::rabbit::Error>(())
//! ```

mod client;
mod delivery;
mod direction;
mod entity;
mod id;
mod point;
mod scope;
#[cfg(feature = "serde")]
mod serialize;
mod server;
mod snapshot_ack;
mod trailer;

pub use client::{Action, ActionKind, Break, ClientMessage, Move, Request, RequestKind, Throw};
pub use delivery::Delivery;
pub use direction::Direction;
pub use entity::{Entity, EntityKind, Object, ObjectKind, Player};
pub use id::{Channel, EntityId, PlayerId};
pub use point::Point;
pub use scope::Scope;
pub use server::{Connect, Event, EventKind, GameOver, Response, ResponseKind, ServerMessage, Snapshot};
pub use snapshot_ack::SnapshotAck;

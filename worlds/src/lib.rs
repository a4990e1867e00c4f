//! Simulated worlds in one process: clients, routers, a relay, a front and a game server with one virtual clock.
//!
//! The code under test is the product's own: the peers of the core, and the flows and the front of the relay, all without
//! I/O. Networks, routers and clocks are simulated.
//!
//! A [`plan::Plan`] is derived from a seed and lists the clients and faults of a world. [`world::World`] runs the plan,
//! and checks the guarantees of delivery and the bounds of memory. At the end the faults stop. Within two minutes all
//! clients must then be connected and all messages delivered.
//!
//! ```text
//! cargo run --release -p rakwire-worlds -- --worlds 1000
//! cargo run --release -p rakwire-worlds -- --plants
//! cargo run --release -p rakwire-worlds -- --soak 8
//! ```

#[macro_use]
#[path = "../../relay/src/flow/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the relay uses the rest")]
mod flow;

#[path = "../../relay/src/protocol/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the relay uses the rest")]
mod protocol;

#[path = "../../relay/src/front/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the relay uses the rest")]
mod front;

#[path = "../../relay/src/time.rs"]
#[allow(dead_code, unreachable_pub, reason = "the relay uses the rest")]
mod time;

#[path = "../../core/tests/model/ledger.rs"]
#[allow(dead_code, unreachable_pub, reason = "the models use the rest")]
mod ledger;

#[path = "../../core/tests/model/random.rs"]
#[allow(dead_code, unreachable_pub, reason = "the models use the rest")]
mod random;

mod access;
mod application;
pub mod batch;
mod carry;
mod client;
mod edge;
mod faults;
mod host;
mod peers;
pub mod plan;
pub mod plant;
pub mod shrink;
pub mod soak;
mod traffic;
mod usage;
pub mod world;

/// A description of the violated guarantee.
pub type Broken = String;

/// The result of a check.
pub type Kept = Result<(), Broken>;

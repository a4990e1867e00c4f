//! What the fuzz targets share with the tests of the core and of the game. A target for another protocol brings a model
//! of its own, a line in `Cargo.toml`, and one in [`targets::ALL`].

#[path = "../../core/tests/model/mod.rs"]
pub mod model;

#[path = "../../snowfight/tests/model/mod.rs"]
pub mod snowfight;

#[macro_use]
#[path = "../../relay/src/counted.rs"]
mod counted;

#[path = "../../relay/src/protocol/mod.rs"]
pub mod protocol;

#[path = "../../relay/src/flow/mod.rs"]
pub mod flow;

#[path = "../../relay/tests/model/mod.rs"]
pub mod relay;

pub mod awareness;

pub mod targets;

#[cfg(test)]
mod replay;

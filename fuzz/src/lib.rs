//! What the fuzz targets share with the tests of the core and of the game, and a flow of the relay. A target for another
//! protocol brings a model of its own, a line in `Cargo.toml`, and one in [`targets::ALL`].

#[path = "../../core/tests/model/mod.rs"]
pub mod model;

#[path = "../../snowfight/tests/model/mod.rs"]
pub mod snowfight;

pub mod relay;

pub mod targets;

#[cfg(test)]
mod replay;

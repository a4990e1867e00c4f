//! What the fuzz targets share with the tests of the core. A target for another protocol brings a model of its own and
//! a line in `Cargo.toml`.

#[path = "../../core/tests/model/mod.rs"]
pub mod model;

#[path = "../../snowfight/tests/model/mod.rs"]
pub mod snowfight;

/// Ends the process, as a finding, when a promise was broken.
pub fn hold(kept: model::Kept) {
    if let Err(broken) = kept {
        panic!("{broken}");
    }
}

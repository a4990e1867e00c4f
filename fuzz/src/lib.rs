//! The models that the fuzz targets share with the tests.

#[path = "../../core/tests/model/mod.rs"]
pub mod model;

#[path = "../../snowfight/tests/model/mod.rs"]
pub mod snowfight;

/// Panics if a property was violated.
pub fn hold(kept: model::Kept) {
    if let Err(broken) = kept {
        panic!("{broken}");
    }
}

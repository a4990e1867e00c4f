//! The guarantees of the relay's flows, and runs that check them. The tests and the fuzz targets share these files.

pub mod operations;
pub mod random;
pub mod resumption;

/// A description of the violated guarantee.
pub type Broken = String;

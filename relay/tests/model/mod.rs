//! What is promised, and runs that hold the flows of the relay to it. The tests here and the fuzz targets share these
//! files.

pub mod operations;
pub mod random;
pub mod resumption;

/// Which promise was broken, in words.
pub type Broken = String;

//! What is promised, and runs that hold a peer to it. The tests here and the fuzz targets share these files.

mod forge;
pub mod game;
pub mod ledger;
pub mod operation;
pub mod rabbit;
pub mod random;
pub mod route;
pub mod secure;
pub mod secure_crossing;
pub mod secure_peers;
pub mod shrink;
pub mod soak;
pub mod wire;
pub mod world;

/// Which promise was broken, in words.
pub type Broken = String;
pub type Kept = Result<(), Broken>;

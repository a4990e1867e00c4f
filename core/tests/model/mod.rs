//! Models of peers that check their guarantees under arbitrary operations. Tests and fuzz targets share these files.

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

/// A description of the violated guarantee.
pub type Broken = String;
/// The result of a check: an error describes the violated guarantee.
pub type Kept = Result<(), Broken>;

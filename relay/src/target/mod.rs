//! Game servers: their names, and which addresses they may have.

mod address;
mod name;

pub use address::AddressError;
pub(crate) use address::{AddressClass, canonical, classify, is_neighbour};
pub use name::{HostPort, TargetName, TargetSpec, TargetSyntaxError};

//! Helpers shared by several tests.

pub(crate) mod cubic;
pub(crate) mod forged;
pub(crate) mod game_entries;
pub(crate) mod game_protocol;
pub(crate) mod game_vectors;
pub(crate) mod raknet;
pub(crate) mod recorder;
pub(crate) mod secure;
pub(crate) mod star;
pub(crate) mod test_protection;
pub(crate) mod ticking;
pub(crate) mod vectors;

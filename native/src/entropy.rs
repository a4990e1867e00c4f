//! Random bytes from the system.

use std::io;

/// The random bytes for the keys of a configuration.
pub(crate) fn entropy() -> io::Result<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entropy)
}

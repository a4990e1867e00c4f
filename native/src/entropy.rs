//! Random bytes from the system.

use std::io;

use rakwire::secure::SeededRandom;
use zeroize::Zeroizing;

/// The random bytes for the keys of a configuration.
pub(crate) fn entropy() -> io::Result<[u8; 32]> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(entropy)
}

/// A generator of random bytes for keys and connect tokens, which begins with those of the system.
///
/// # Errors
/// If the system provides no random bytes.
///
/// ```
/// use rakwire_native::secure::TokenKey;
/// use rakwire_native::system_random;
///
/// let key = TokenKey::generate(&mut system_random()?);
/// # drop(key);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn system_random() -> io::Result<SeededRandom> {
    let entropy = Zeroizing::new(entropy()?);
    Ok(SeededRandom::new(*entropy))
}

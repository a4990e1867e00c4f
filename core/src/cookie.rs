//! Cookies: what a stateless server gives a client to prove that its address is its own.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use siphasher::sip::SipHasher24;

use crate::storage::AddressKey;
use crate::time::Instant;

/// How long a cookie is made; it is accepted for one to two such epochs.
const EPOCH_MICROS: u64 = 5_000_000;

/// A keyed hash of address, port and epoch, cut to the 32 bits that the wire has room for.
fn cookie(secret: &[u8; 16], address: &SocketAddr, epoch: u64) -> u32 {
    let mut hasher = SipHasher24::new_with_key(secret);
    AddressKey(*address).hash(&mut hasher);
    hasher.write_u64(epoch);
    let hash = hasher.finish();
    u32::try_from(hash >> 32).unwrap_or(0)
}

/// The cookie for `address` at `now`.
pub(crate) fn issue(secret: &[u8; 16], address: &SocketAddr, now: Instant) -> u32 {
    cookie(secret, address, now.as_micros() / EPOCH_MICROS)
}

/// Whether `given` was issued to `address` in this epoch or the one before.
pub(crate) fn verify(secret: &[u8; 16], address: &SocketAddr, now: Instant, given: u32) -> bool {
    // Both differences are always computed, so the time taken tells nothing of either.
    let [current, previous] = live(secret, address, now).map(|cookie| cookie ^ given);
    (current == 0) | (previous == 0)
}

/// The cookies of `address` that are accepted at `now`: this epoch's and the last one's.
pub(crate) fn live(secret: &[u8; 16], address: &SocketAddr, now: Instant) -> [u32; 2] {
    let epoch = now.as_micros() / EPOCH_MICROS;
    [epoch, epoch.wrapping_sub(1)].map(|epoch| cookie(secret, address, epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    #[test]
    fn a_cookie_holds_for_its_address_and_a_while() {
        let address = SocketAddr::from(([192, 0, 2, 1], 1_000));
        let now = Instant::from_micros(7 * EPOCH_MICROS + 1);
        let cookie = issue(&SECRET, &address, now);
        assert!(verify(&SECRET, &address, now, cookie));
        assert!(verify(&SECRET, &address, Instant::from_micros(8 * EPOCH_MICROS), cookie));
        assert!(!verify(&SECRET, &address, Instant::from_micros(9 * EPOCH_MICROS), cookie));
        assert!(!verify(&SECRET, &SocketAddr::from(([192, 0, 2, 1], 1_001)), now, cookie));
        assert!(!verify(&SECRET, &SocketAddr::from(([192, 0, 2, 2], 1_000)), now, cookie));
        assert!(!verify(&[4; 16], &address, now, cookie));
        assert!(!verify(&SECRET, &address, now, cookie ^ 1));
    }
}

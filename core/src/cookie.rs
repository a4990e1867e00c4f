//! Cookies: what a stateless server gives a client to prove that its address is its own. A cookie brings back one of two
//! kinds, by which the server remembers what it does not keep.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use siphasher::sip::SipHasher24;

use crate::storage::AddressKey;
use crate::time::Instant;

/// How long a cookie is made; it is accepted for one to two such epochs.
const EPOCH_MICROS: u64 = 5_000_000;

/// A keyed hash of address, port and epoch in two halves, each the 32 bits that the wire has room for: the cookies of the
/// two kinds.
fn cookies(secret: &[u8; 16], address: &SocketAddr, epoch: u64) -> [u32; 2] {
    let mut hasher = SipHasher24::new_with_key(secret);
    AddressKey(*address).hash(&mut hasher);
    hasher.write_u64(epoch);
    let hash = hasher.finish();
    [hash >> 32, hash & 0xFFFF_FFFF].map(|half| u32::try_from(half).unwrap_or(0))
}

/// The cookie of one kind for `address` at `now`.
pub(crate) fn issue(secret: &[u8; 16], address: &SocketAddr, now: Instant, kind: bool) -> u32 {
    let [of_first, of_second] = cookies(secret, address, now.as_micros() / EPOCH_MICROS);
    if kind { of_second } else { of_first }
}

/// The kind of `given` if it was issued to `address` in this epoch or the one before.
pub(crate) fn verify(secret: &[u8; 16], address: &SocketAddr, now: Instant, given: u32) -> Option<bool> {
    // All differences are always computed, so the time taken tells nothing of any.
    let [now, before] = epochs(now).map(|epoch| cookies(secret, address, epoch).map(|cookie| cookie ^ given));
    let is_first = (now[0] == 0) | (before[0] == 0);
    let is_second = (now[1] == 0) | (before[1] == 0);
    (is_first | is_second).then_some(is_second)
}

/// A number that a peer at `address` knows only if it receives what is sent there, for one connection with it: 52 bits, so that
/// a time in milliseconds and this number together have at most 53, which every type for numbers keeps.
pub(crate) fn nonce(secret: &[u8; 16], address: &SocketAddr, connection: u64) -> u64 {
    let mut hasher = SipHasher24::new_with_key(secret);
    AddressKey(*address).hash(&mut hasher);
    hasher.write_u64(connection);
    // Cookies are hashes of one byte less.
    hasher.write_u8(0);
    hasher.finish() >> 12
}

/// The cookies of the first kind that are accepted of `address` at `now`: this epoch's and the last one's.
pub(crate) fn live(secret: &[u8; 16], address: &SocketAddr, now: Instant) -> [u32; 2] {
    epochs(now).map(|epoch| cookies(secret, address, epoch)[0])
}

/// The epoch of `now` and the one before.
const fn epochs(now: Instant) -> [u64; 2] {
    let epoch = now.as_micros() / EPOCH_MICROS;
    [epoch, epoch.wrapping_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    #[test]
    fn a_cookie_holds_for_its_address_and_a_while() {
        let address = SocketAddr::from(([192, 0, 2, 1], 1_000));
        let now = Instant::from_micros(7 * EPOCH_MICROS + 1);
        for kind in [false, true] {
            let cookie = issue(&SECRET, &address, now, kind);
            assert_eq!(verify(&SECRET, &address, now, cookie), Some(kind));
            let later = Instant::from_micros(8 * EPOCH_MICROS);
            assert_eq!(verify(&SECRET, &address, later, cookie), Some(kind));
            let too_late = Instant::from_micros(9 * EPOCH_MICROS);
            assert_eq!(verify(&SECRET, &address, too_late, cookie), None);
            assert_eq!(verify(&SECRET, &SocketAddr::from(([192, 0, 2, 1], 1_001)), now, cookie), None);
            assert_eq!(verify(&SECRET, &SocketAddr::from(([192, 0, 2, 2], 1_000)), now, cookie), None);
            assert_eq!(verify(&[4; 16], &address, now, cookie), None);
            assert_eq!(verify(&SECRET, &address, now, cookie ^ 1), None);
        }
    }
}

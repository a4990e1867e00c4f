//! Stateless cookies, by which a client proves that it receives datagrams at its source address.
//!
//! A cookie has one of two kinds. The kind is one bit that the server would otherwise store for each client: the client
//! returns it with the cookie.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use siphasher::sip::SipHasher24;

use crate::storage::AddressKey;
use crate::time::Instant;

/// The length of an epoch. A cookie is accepted in its own epoch and the next one.
const EPOCH_MICROS: u64 = 5_000_000;

/// Computes the cookies of both kinds: the 32-bit halves of a keyed hash of address, port and epoch.
fn cookies(secret: &[u8; 16], address: &SocketAddr, epoch: u64) -> [u32; 2] {
    let mut hasher = SipHasher24::new_with_key(secret);
    AddressKey(*address).hash(&mut hasher);
    hasher.write_u64(epoch);
    let hash = hasher.finish();
    [hash >> 32, hash & 0xFFFF_FFFF].map(|half| u32::try_from(half).unwrap_or(0))
}

/// Returns the cookie of one kind for `address` at `now`.
pub(crate) fn issue(secret: &[u8; 16], address: &SocketAddr, now: Instant, kind: bool) -> u32 {
    let [of_first, of_second] = cookies(secret, address, now.as_micros() / EPOCH_MICROS);
    if kind { of_second } else { of_first }
}

/// Returns the kind of the cookie `given`, or `None` unless it was issued to `address` in the current or the previous
/// epoch.
pub(crate) fn verify(secret: &[u8; 16], address: &SocketAddr, now: Instant, given: u32) -> Option<bool> {
    // Constant time: every comparison is made, so the run time reveals nothing.
    let [now, before] = epochs(now).map(|epoch| cookies(secret, address, epoch).map(|cookie| cookie ^ given));
    let is_first = (now[0] == 0) | (before[0] == 0);
    let is_second = (now[1] == 0) | (before[1] == 0);
    (is_first | is_second).then_some(is_second)
}

/// Returns a nonce for one connection, which the peer at `address` knows only if it receives datagrams there.
///
/// The nonce has 52 bits: added to a time in milliseconds it fits in 53 bits, which JavaScript numbers represent
/// exactly.
pub(crate) fn nonce(secret: &[u8; 16], address: &SocketAddr, connection: u64) -> u64 {
    let mut hasher = SipHasher24::new_with_key(secret);
    AddressKey(*address).hash(&mut hasher);
    hasher.write_u64(connection);
    // Domain separation: the input of a cookie hash is one byte shorter.
    hasher.write_u8(0);
    hasher.finish() >> 12
}

/// Returns the cookies of the first kind that are accepted from `address` at `now`: the cookie of the current epoch,
/// then the cookie of the previous epoch.
pub(crate) fn live(secret: &[u8; 16], address: &SocketAddr, now: Instant) -> [u32; 2] {
    epochs(now).map(|epoch| cookies(secret, address, epoch)[0])
}

/// Returns the numbers of the current and the previous epoch.
const fn epochs(now: Instant) -> [u64; 2] {
    let epoch = now.as_micros() / EPOCH_MICROS;
    [epoch, epoch.wrapping_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    #[test]
    fn a_cookie_is_valid_for_its_address_until_it_expires() {
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

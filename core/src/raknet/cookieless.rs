//! Sources that were asked for no cookie with reply 1, and the lists of addresses that they read.

use core::hash::{Hash, Hasher};
use core::net::SocketAddr;

use siphasher::sip::SipHasher13;

use super::features::{SERVER, room};
use super::list_length::ListLength;
use crate::rate_limit::Bucket;
use crate::storage::AddressKey;
use crate::time::Instant;

/// Sources that are kept.
const SOURCES: usize = room(SERVER, if cfg!(feature = "alloc") { 1_024 } else { 64 });
/// How many of them are added in a second before a server asks for cookies: with as many, a source is still there after a
/// round trip of 100 ms with a probability of 98 %.
const SOURCES_PER_SECOND: u16 = if cfg!(feature = "alloc") { 200 } else { 12 };

/// Sources whose last first request was answered without a cookie, by a keyed hash. A newer one takes the place of an older one
/// and changes nothing else of it: the source without a place repeats its first request.
///
/// A second request does not say its version, nor what its sender was asked.
#[derive(Debug)]
pub(super) struct CookielessSources {
    /// Fifteen bits of a hash, which are not zero, and one for the lists; zero for none.
    entries: [u16; SOURCES],
    added: Bucket,
}

impl Default for CookielessSources {
    fn default() -> Self {
        Self { entries: [0; SOURCES], added: Bucket::default() }
    }
}

impl CookielessSources {
    /// The place of a source, and what stands there if it is that of this source, but for the last bit.
    fn place(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<(&mut u16, u16)> {
        let mut hasher = SipHasher13::new_with_key(secret);
        AddressKey(*source).hash(&mut hasher);
        let hash = hasher.finish();
        let place = usize::try_from((hash & 0xFFFF_FFFF) % SOURCES as u64).unwrap_or(0);
        let tag = u16::try_from(hash >> 49).unwrap_or(0).max(1) << 1;
        Some((self.entries.get_mut(place)?, tag))
    }

    /// Whether another one may be added now without harm to others.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        self.added.fill_up(SOURCES_PER_SECOND, now)
    }

    pub(super) fn add(&mut self, secret: &[u8; 16], now: Instant, source: &SocketAddr, reads: ListLength) {
        self.added.take(SOURCES_PER_SECOND, now);
        if let Some((entry, tag)) = self.place(secret, source) {
            *entry = tag | u16::from(reads.is_twenty());
        }
    }

    /// The lists that a source reads; none if it is not kept.
    pub(super) fn list_length(&mut self, secret: &[u8; 16], source: &SocketAddr) -> Option<ListLength> {
        let (entry, tag) = self.place(secret, source)?;
        (*entry & !1 == tag).then(|| ListLength::from_bit(*entry & 1 != 0))
    }

    /// Forgets a source, which is asked for a cookie now; false if it is not kept.
    pub(super) fn remove(&mut self, secret: &[u8; 16], source: &SocketAddr) -> bool {
        let Some((entry, tag)) = self.place(secret, source) else { return false };
        let is_kept = *entry & !1 == tag;
        if is_kept {
            *entry = 0;
        }
        is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: [u8; 16] = [3; 16];

    fn source(number: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], number))
    }

    #[test]
    fn a_source_takes_the_place_of_others_and_changes_nothing_of_them() {
        let mut sources = CookielessSources::default();
        for number in 0..20_000_u16 {
            let reads = ListLength::from_bit(number % 3 == 0);
            sources.add(&SECRET, Instant::ZERO, &source(number), reads);
            assert_eq!(sources.list_length(&SECRET, &source(number)), Some(reads));
        }
        let kept = (0..20_000_u16).filter(|number| {
            let found = sources.list_length(&SECRET, &source(*number));
            // One of 32,767 has the hash of another one.
            found == Some(ListLength::from_bit(number % 3 == 0))
        });
        assert!((SOURCES * 9 / 10..=SOURCES + 2).contains(&kept.count()));
    }

    #[test]
    fn a_source_that_is_asked_is_forgotten() {
        let mut sources = CookielessSources::default();
        sources.add(&SECRET, Instant::ZERO, &source(1), ListLength::Twenty);
        assert!(!sources.remove(&SECRET, &source(2)));
        assert!(sources.remove(&SECRET, &source(1)));
        assert!(!sources.remove(&SECRET, &source(1)));
        assert_eq!(sources.list_length(&SECRET, &source(1)), None);
    }

    #[test]
    fn a_flood_leaves_no_room_until_it_is_over() {
        let mut sources = CookielessSources::default();
        let mut now = Instant::from_micros(1_000_000);
        for number in 0..SOURCES_PER_SECOND {
            assert!(sources.has_room(now));
            sources.add(&SECRET, now, &source(number), ListLength::Ten);
        }
        assert!(!sources.has_room(now));
        now = Instant::from_micros(1_500_000);
        assert!(sources.has_room(now));
    }
}

//! A table that finds the connection of an address or of a GUID.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;

use super::{SEVERAL, Slots};

/// One entry: the head of a bucket, and for the connection of the same number the next one in its bucket. Slots are
/// kept plus one; zero is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotEntry {
    bucket: u16,
    next: u16,
}

/// A hash table from keys to connection slots. The hash is keyed, since others choose the keys. Where there is one slot at the
/// most, nothing is kept: whoever looks checks that slot.
#[derive(Debug)]
pub(crate) struct SlotIndex<'a> {
    entries: Slots<'a, SlotEntry>,
    secret: [u8; 16],
}

impl<'a> SlotIndex<'a> {
    pub(crate) const fn new(entries: Slots<'a, SlotEntry>, secret: [u8; 16]) -> Self {
        Self { entries, secret }
    }

    /// A pure client chooses the few that it knows: one bucket does for them.
    fn bucket(&self, key: &impl Hash) -> usize {
        if !cfg!(feature = "server") {
            return 0;
        }
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        key.hash(&mut hasher);
        let hash = hasher.finish() >> 32;
        usize::try_from((hash * self.entries.len() as u64) >> 32).unwrap_or(0)
    }

    /// The slot under `key` of which `is_it` is true.
    pub(crate) fn find(&self, key: &impl Hash, is_it: impl Fn(u16) -> bool) -> Option<u16> {
        if !SEVERAL {
            return is_it(0).then_some(0);
        }
        let mut at = self.entries.get(self.bucket(key))?.bucket;
        while let Some(slot) = at.checked_sub(1) {
            if is_it(slot) {
                return Some(slot);
            }
            at = self.entries.get(usize::from(slot))?.next;
        }
        None
    }

    pub(crate) fn insert(&mut self, key: &impl Hash, slot: u16) {
        if !SEVERAL {
            return;
        }
        let bucket = self.bucket(key);
        debug_assert!(
            usize::from(slot).max(bucket) < self.entries.len(),
            "no slot {slot} or no bucket {bucket}"
        );
        let Some(head) = self.entries.get_mut(bucket) else {
            return;
        };
        let next = core::mem::replace(&mut head.bucket, slot.saturating_add(1));
        if let Some(entry) = self.entries.get_mut(usize::from(slot)) {
            entry.next = next;
        }
    }

    /// Takes a slot out; false if it does not stand under `key`.
    pub(crate) fn remove(&mut self, key: &impl Hash, slot: u16) -> bool {
        if !SEVERAL {
            return true;
        }
        let bucket = self.bucket(key);
        let link = slot.saturating_add(1);
        debug_assert!(
            usize::from(slot).max(bucket) < self.entries.len(),
            "no slot {slot} or no bucket {bucket}"
        );
        let Some(rest) = self.entries.get(usize::from(slot)).map(|entry| entry.next) else { return false };
        let mut at = match self.entries.get_mut(bucket) {
            Some(head) if head.bucket == link => {
                head.bucket = rest;
                return true;
            }
            Some(head) => head.bucket,
            None => return false,
        };
        while let Some(before) =
            at.checked_sub(1).and_then(|before| self.entries.get_mut(usize::from(before)))
        {
            if before.next == link {
                before.next = rest;
                return true;
            }
            at = before.next;
        }
        false
    }
}

/// An address as a key: an IPv6 address is the same whatever flow or scope it came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressKey(pub(crate) SocketAddr);

impl Hash for AddressKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.0.ip() {
            IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write_u16(self.0.port());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapless::Vec;

    #[test]
    fn addresses_are_found_until_removed() {
        let mut entries: Vec<SlotEntry, 8> = Vec::new();
        entries.resize_default(8).expect("as long as its capacity");
        let mut index = SlotIndex::new(Slots::Lent(&mut entries), [7; 16]);
        let address = |slot: u16| AddressKey(SocketAddr::from(([10, 0, 0, 1], 1_000 + slot)));
        for slot in 0..8 {
            index.insert(&address(slot), slot);
        }
        for gone in [3, 7, 0, 5, 1, 2, 4, 6] {
            assert_eq!(index.find(&address(gone), |slot| slot == gone), Some(gone));
            index.remove(&address(gone), gone);
            assert_eq!(index.find(&address(gone), |slot| slot == gone), None);
        }
    }
}

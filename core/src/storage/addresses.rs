//! A table that finds the connection of an address.

use core::hash::Hasher;
use core::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;

use super::Slots;

/// One entry: the head of a bucket, and for the connection of the same number the next one in its bucket. Slots are
/// kept plus one; zero is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddressEntry {
    bucket: u16,
    next: u16,
}

/// A hash table from addresses to connection slots. The hash is keyed, since addresses can be forged.
#[derive(Debug)]
pub(crate) struct AddressIndex<'a> {
    entries: Slots<'a, AddressEntry>,
    secret: [u8; 16],
}

impl<'a> AddressIndex<'a> {
    pub(crate) const fn new(entries: Slots<'a, AddressEntry>, secret: [u8; 16]) -> Self {
        Self { entries, secret }
    }

    fn bucket(&self, address: &SocketAddr) -> usize {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        write_address(&mut hasher, address);
        let hash = hasher.finish() >> 32;
        usize::try_from((hash * self.entries.len() as u64) >> 32).unwrap_or(0)
    }

    /// The slot under `address` of which `is_it` is true.
    pub(crate) fn find(&self, address: &SocketAddr, is_it: impl Fn(u16) -> bool) -> Option<u16> {
        let mut at = self.entries.get(self.bucket(address))?.bucket;
        while let Some(slot) = at.checked_sub(1) {
            if is_it(slot) {
                return Some(slot);
            }
            at = self.entries.get(usize::from(slot))?.next;
        }
        None
    }

    pub(crate) fn insert(&mut self, address: &SocketAddr, slot: u16) {
        let bucket = self.bucket(address);
        let Some(head) = self.entries.get_mut(bucket) else {
            return;
        };
        let next = core::mem::replace(&mut head.bucket, slot.saturating_add(1));
        if let Some(entry) = self.entries.get_mut(usize::from(slot)) {
            entry.next = next;
        }
    }

    pub(crate) fn remove(&mut self, address: &SocketAddr, slot: u16) {
        let bucket = self.bucket(address);
        let Some(entry) = self.entries.get_mut(usize::from(slot)) else {
            return;
        };
        let rest = core::mem::take(&mut entry.next);
        let Some(head) = self.entries.get_mut(bucket) else {
            return;
        };
        if head.bucket == slot.saturating_add(1) {
            head.bucket = rest;
            return;
        }
        let mut at = head.bucket;
        while let Some(before) =
            at.checked_sub(1).and_then(|before| self.entries.get_mut(usize::from(before)))
        {
            if before.next == slot.saturating_add(1) {
                before.next = rest;
                return;
            }
            at = before.next;
        }
    }
}

/// Feeds an address to a hash, the same whatever form the address came in.
pub(crate) fn write_address(hasher: &mut impl Hasher, address: &SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => hasher.write_u32(ip.to_bits()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    }
    hasher.write_u16(address.port());
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapless::Vec;

    #[test]
    fn addresses_are_found_until_removed() {
        let mut entries: Vec<AddressEntry, 8> = Vec::new();
        entries.resize_default(8).expect("as long as its capacity");
        let mut index = AddressIndex::new(Slots::Lent(entries.as_mut_view()), [7; 16]);
        let address = |slot: u16| SocketAddr::from(([10, 0, 0, 1], 1_000 + slot));
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

//! Lookup tables: messages by number, connections by address or GUID, and deadlines.

use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;

use super::{Block, BlockLink, Pool, RawLink, SEVERAL, Slots};
use crate::time::Instant;

/// A hash table of messages, shared by all connections.
///
/// It has as many buckets as the pool has blocks, or fewer in a large pool. Remote peers choose some of the keys. The
/// keys are multiplied by a secret, so a peer cannot choose keys that all fall into one bucket.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    buckets: Slots<'a, RawLink>,
    multiplier: u64,
}

impl<'a> Index<'a> {
    pub(crate) const fn new(buckets: Slots<'a, RawLink>, secret: u64) -> Self {
        Self { buckets, multiplier: secret | 1 }
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn bucket(&mut self, key: u64) -> Option<&mut RawLink> {
        let hash = key.wrapping_add(1).wrapping_mul(self.multiplier) >> 32;
        let place = (hash * self.buckets.len() as u64) >> 32;
        debug_assert!(place < self.buckets.len() as u64 || self.buckets.is_empty(), "no bucket {place}");
        usize::try_from(place).ok().and_then(|place| self.buckets.get_mut(place))
    }

    /// Adds a message under `key`.
    #[inline]
    pub(crate) fn insert<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, key: u64, message: Block) {
        let Some(bucket) = self.bucket(key) else {
            debug_assert!(false, "a message for a table without buckets");
            return;
        };
        pool.node_mut(message).bucket = Block::from_raw(*bucket);
        *bucket = Block::to_raw(Some(message));
    }

    /// Returns the first message under `key` for which `is_it` returns true.
    #[inline]
    pub(crate) fn find<H: Copy + Default>(
        &mut self,
        pool: &Pool<'_, H>,
        key: u64,
        is_it: impl Fn(&H) -> bool,
    ) -> BlockLink {
        let mut at = Block::from_raw(*self.bucket(key)?);
        while let Some(message) = at {
            if is_it(pool.header(message)) {
                return Some(message);
            }
            at = pool.node(message).bucket;
        }
        None
    }

    /// Removes a message.
    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    pub(crate) fn remove<H: Copy + Default>(&mut self, pool: &mut Pool<'_, H>, key: u64, message: Block) {
        let Some(bucket) = self.bucket(key) else {
            debug_assert!(false, "a message in a table without buckets");
            return;
        };
        let rest = pool.node_mut(message).bucket.take();
        let mut at = Block::from_raw(*bucket);
        if at == Some(message) {
            *bucket = Block::to_raw(rest);
            return;
        }
        while let Some(before) = at {
            at = pool.node(before).bucket;
            if at == Some(message) {
                pool.node_mut(before).bucket = rest;
                return;
            }
        }
        debug_assert!(false, "a message that is not in the table");
    }
}

/// An entry with two uses: the head of a bucket and, for the connection in this slot, the next connection in its
/// bucket.
///
/// A slot is stored as its number plus one; 0 means none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotEntry {
    bucket: u16,
    next: u16,
}

/// A hash table from keys to connection slots.
///
/// The hash function is keyed, because remote peers choose the keys of the table. With a single slot nothing is stored,
/// and the caller checks that slot.
#[derive(Debug)]
pub(crate) struct SlotIndex<'a> {
    entries: Slots<'a, SlotEntry>,
    secret: [u8; 16],
}

impl<'a> SlotIndex<'a> {
    pub(crate) const fn new(entries: Slots<'a, SlotEntry>, secret: [u8; 16]) -> Self {
        Self { entries, secret }
    }

    /// Returns the bucket of `key`.
    ///
    /// A pure client itself chooses the few addresses that it connects to, so one bucket suffices.
    fn bucket(&self, key: &impl Hash) -> usize {
        if !cfg!(feature = "server") {
            return 0;
        }
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        key.hash(&mut hasher);
        let hash = hasher.finish() >> 32;
        usize::try_from((hash * self.entries.len() as u64) >> 32).unwrap_or(0)
    }

    /// Returns the slot under `key` for which `is_it` returns true.
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

    /// Removes a slot; returns false if it is not stored under `key`.
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

/// An address as a hash key. IPv6 flow labels and scope ids are not hashed.
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

/// An entry with two uses: an element of the heap, and an entry of the table of heap positions.
///
/// As an element of the heap it contains a deadline and its slot. As the entry at a slot's index it contains the
/// position of that slot in the heap plus one; 0 means that the slot has no deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    at: Instant,
    slot: u16,
    place: u16,
}

/// A binary heap with at most one deadline for each slot. Setting a deadline takes logarithmic time.
#[derive(Debug)]
pub(crate) struct Deadlines<'a> {
    entries: Slots<'a, Deadline>,
    length: usize,
}

impl<'a> Deadlines<'a> {
    pub(crate) const fn new(entries: Slots<'a, Deadline>) -> Self {
        Self { entries, length: 0 }
    }

    /// Returns the earliest deadline and its slot.
    pub(crate) fn first(&self) -> Option<(Instant, u16)> {
        if self.length == 0 {
            return None;
        }
        self.entries.first().map(|entry| (entry.at, entry.slot))
    }

    /// Sets or clears the deadline of a slot.
    pub(crate) fn set(&mut self, slot: u16, at: Option<Instant>) {
        if !SEVERAL {
            self.set_only(at);
            return;
        }
        let place = self.place(slot);
        match (place, at) {
            (None, None) => {}
            (None, Some(at)) => {
                let end = self.length;
                self.length += 1;
                self.put(end, at, slot);
                self.rise(end);
            }
            (Some(place), Some(at)) if self.at(place) == at => {}
            (Some(place), Some(at)) => {
                self.put(place, at, slot);
                self.restore_order(place);
            }
            (Some(place), None) => self.remove(place, slot),
        }
    }

    /// Sets or clears the deadline of the only slot.
    fn set_only(&mut self, at: Option<Instant>) {
        self.length = usize::from(at.is_some());
        if let (Some(at), Some(entry)) = (at, self.entries.first_mut()) {
            entry.at = at;
        }
    }

    fn remove(&mut self, place: usize, slot: u16) {
        self.length = self.length.saturating_sub(1);
        let end = self.length;
        if let Some(entry) = self.entries.get_mut(usize::from(slot)) {
            entry.place = 0;
        }
        if place < end {
            let (at, moved) = (self.at(end), self.slot(end));
            self.put(place, at, moved);
            self.restore_order(place);
        }
    }

    fn place(&self, slot: u16) -> Option<usize> {
        self.entries.get(usize::from(slot))?.place.checked_sub(1).map(usize::from)
    }

    fn at(&self, place: usize) -> Instant {
        debug_assert!(place < self.entries.len(), "no entry {place}");
        self.entries.get(place).map_or(Instant::ZERO, |entry| entry.at)
    }

    fn slot(&self, place: usize) -> u16 {
        debug_assert!(place < self.entries.len(), "no entry {place}");
        self.entries.get(place).map_or(0, |entry| entry.slot)
    }

    fn put(&mut self, place: usize, at: Instant, slot: u16) {
        debug_assert!(place.max(slot.into()) < self.entries.len(), "no entry {place} or no slot {slot}");
        if let Some(entry) = self.entries.get_mut(place) {
            entry.at = at;
            entry.slot = slot;
        }
        if let Some(entry) = self.entries.get_mut(usize::from(slot)) {
            entry.place = u16::try_from(place + 1).unwrap_or(u16::MAX);
        }
    }

    fn swap(&mut self, left: usize, right: usize) {
        let (left_entry, right_entry) =
            ((self.at(left), self.slot(left)), (self.at(right), self.slot(right)));
        self.put(left, right_entry.0, right_entry.1);
        self.put(right, left_entry.0, left_entry.1);
    }

    fn restore_order(&mut self, place: usize) {
        self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.at(parent) <= self.at(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            if left >= self.length {
                return;
            }
            let right = left + 1;
            let child = if right < self.length && self.at(right) < self.at(left) { right } else { left };
            if self.at(place) <= self.at(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use heapless::Vec;

    use super::super::pool::tests::with_pool;
    use super::*;

    #[test]
    fn messages_are_found_until_removed() {
        with_pool(|pool| {
            let mut buckets: Vec<RawLink, 4> = Vec::new();
            buckets.resize_default(4).expect("a length within the capacity");
            let mut index = Index::new(Slots::Borrowed(&mut buckets), 0x9E37_79B9_7F4A_7C15);
            for key in 0..16_u32 {
                let message = pool.store(b"x", &key).expect("enough space");
                index.insert(pool, key.into(), message);
            }
            for key in [3, 0, 15, 7, 8, 1, 2, 4, 5, 6, 9, 10, 11, 12, 13, 14] {
                let found = index.find(pool, key.into(), |header| *header == key).expect("a message");
                index.remove(pool, key.into(), found);
                pool.free(found);
                assert!(index.find(pool, key.into(), |header| *header == key).is_none());
            }
            assert_eq!(pool.available(), 16);
        });
    }

    #[test]
    fn addresses_are_found_until_removed() {
        let mut entries: Vec<SlotEntry, 8> = Vec::new();
        entries.resize_default(8).expect("a length within the capacity");
        let mut index = SlotIndex::new(Slots::Borrowed(&mut entries), [7; 16]);
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

    /// Compares the heap with a plain list of deadlines over many changes.
    #[test]
    fn the_first_deadline_is_always_the_earliest() {
        let mut entries: Vec<Deadline, 12> = Vec::new();
        entries.resize_default(12).expect("a length within the capacity");
        let mut deadlines = Deadlines::new(Slots::Borrowed(&mut entries));
        let mut model = [None; 12];
        let mut state = 1_u32;
        for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (state >> 24) as usize % 12;
            let at = (state & 0x300 != 0).then(|| Instant::from_micros(u64::from(state >> 16) % 50));
            model[slot] = at;
            deadlines.set(u16::try_from(slot).expect("a slot below 12"), at);
            let earliest = model.iter().flatten().min().copied();
            assert_eq!(deadlines.first().map(|(at, _)| at), earliest);
            if let Some((at, slot)) = deadlines.first() {
                assert_eq!(model[usize::from(slot)], Some(at));
            }
        }
    }
}

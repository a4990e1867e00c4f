//! The next deadline of every connection, as a binary heap over a lent table.

use super::{SEVERAL, Slots};
use crate::time::Instant;

/// One entry. As the heap's element: a deadline and the slot that it belongs to. As the slot of the same number: its
/// place in the heap plus one, zero while it has no deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadline {
    at: Instant,
    slot: u16,
    place: u16,
}

/// A heap of deadlines, at most one a slot; setting one costs the logarithm of their number.
#[derive(Debug)]
pub(crate) struct Deadlines<'a> {
    entries: Slots<'a, Deadline>,
    length: usize,
}

impl<'a> Deadlines<'a> {
    pub(crate) const fn new(entries: Slots<'a, Deadline>) -> Self {
        Self { entries, length: 0 }
    }

    /// The earliest deadline and its slot.
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

    /// Sets or clears the deadline of the only slot there is.
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
        debug_assert!(place < self.entries.len(), "no place {place}");
        self.entries.get(place).map_or(Instant::ZERO, |entry| entry.at)
    }

    fn slot(&self, place: usize) -> u16 {
        debug_assert!(place < self.entries.len(), "no place {place}");
        self.entries.get(place).map_or(0, |entry| entry.slot)
    }

    fn put(&mut self, place: usize, at: Instant, slot: u16) {
        debug_assert!(place.max(slot.into()) < self.entries.len(), "no place {place} or no slot {slot}");
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
    use super::*;
    use heapless::Vec;

    /// Compares the heap with a plain list of deadlines over many changes.
    #[test]
    fn the_first_is_always_the_earliest() {
        let mut entries: Vec<Deadline, 12> = Vec::new();
        entries.resize_default(12).expect("as long as its capacity");
        let mut deadlines = Deadlines::new(Slots::Lent(&mut entries));
        let mut model = [None; 12];
        let mut state = 1_u32;
        for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (state >> 24) as usize % 12;
            let at = (state & 0x300 != 0).then(|| Instant::from_micros(u64::from(state >> 16) % 50));
            model[slot] = at;
            deadlines.set(u16::try_from(slot).expect("below 12"), at);
            let earliest = model.iter().flatten().min().copied();
            assert_eq!(deadlines.first().map(|(at, _)| at), earliest);
            if let Some((at, slot)) = deadlines.first() {
                assert_eq!(model[usize::from(slot)], Some(at));
            }
        }
    }
}

//! Numbers that are unique within the process. Each handle contains one, so that a handle of another endpoint is detected.

use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The number of serial numbers that an endpoint reserves at once for its messages.
const RESERVED: u64 = 256;

/// Returns a handle that no other call returns. Its low 16 bits are `slot`.
///
/// The other 48 bits last for years at a million handles per second. They are never 0.
pub(crate) fn handle(slot: u16) -> u64 {
    in_slot(NEXT.fetch_add(1, Ordering::Relaxed), slot)
}

const fn in_slot(serial: u64, slot: u16) -> u64 {
    serial << 16 | slot as u64
}

/// Creates handles like [`handle`], for messages. Reserves numbers in advance, so that a message needs no atomic operation.
#[derive(Debug, Default)]
pub(crate) struct Serials {
    next: u64,
    end: u64,
}

impl Serials {
    /// Returns a handle that no other call returns. Its low 16 bits are `slot`.
    #[inline]
    pub(crate) fn handle(&mut self, slot: u16) -> u64 {
        if self.next == self.end {
            self.reserve();
        }
        let serial = self.next;
        self.next += 1;
        in_slot(serial, slot)
    }

    #[cold]
    fn reserve(&mut self) {
        self.next = NEXT.fetch_add(RESERVED, Ordering::Relaxed);
        self.end = self.next + RESERVED;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn handles_are_unique_across_endpoints_and_kinds() {
        let (mut one, mut other) = (Serials::default(), Serials::default());
        let mut seen = HashSet::new();
        for _ in 0..3 * RESERVED {
            for handle in [one.handle(7), other.handle(7), handle(7)] {
                assert!(seen.insert(handle), "{handle:#x}");
                assert_eq!((handle as u16, handle >> 16 > 0), (7, true));
            }
        }
    }
}

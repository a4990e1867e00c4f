//! The window of datagram numbers: which arrived, which are to be acknowledged, and which are missing.

use crate::cursor::{WireError, Writer};
use crate::raknet::wire::Wire;
use crate::raknet::wire::datagram::{ACK_HEADER, DatagramHeader, MAX_RECORD, Record};
use crate::serial::U24;

/// Datagrams behind the newest that are remembered.
const WINDOW: u32 = 1024;
/// The longest jump ahead that is accepted (docs/raknet.md#gaps).
const MAX_JUMP: u32 = 50_000;
/// How many of the numbers before a jump are reported missing (docs/raknet.md#gaps).
const MAX_MISSING: u32 = 1_000;

/// How many acknowledgements name a datagram that arrived. Nobody acknowledges an acknowledgement, so one that is lost
/// would otherwise make all that it names look lost. A repeated number lengthens a record instead of adding one, unless a
/// datagram beside it is missing; numbers that a peer knows no more mean nothing to it (docs/raknet.md#acknowledgements).
const TIMES_NAMED: usize = 3;

/// What a datagram number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum DatagramStatus {
    New,
    /// Arrived before: acknowledged again, but not read again.
    Duplicate,
    /// Arrived before, but there was no memory for some of its reliable messages.
    Deferred,
    /// Too far ahead or behind: as if it had never arrived.
    OutsideWindow,
}

/// Which of the two lists a datagram of records is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Ack,
    Nack,
}

/// One bit for each number of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Bits([u32; (WINDOW / 32) as usize]);

impl Bits {
    fn word(number: U24) -> (usize, u32) {
        let bit = number.get() % WINDOW;
        ((bit / 32) as usize, 1 << (bit % 32))
    }

    fn get(&self, number: U24) -> bool {
        let (word, mask) = Self::word(number);
        self.0.get(word).is_some_and(|word| word & mask != 0)
    }

    fn set(&mut self, number: U24, value: bool) {
        let (word, mask) = Self::word(number);
        if let Some(word) = self.0.get_mut(word) {
            *word = if value { *word | mask } else { *word & !mask };
        }
    }

    /// How many of the bits from `number` on are clear, up to the end of their word.
    fn clear_run(&self, number: U24) -> u32 {
        let bit = number.get() % WINDOW;
        let word = self.0.get((bit / 32) as usize).copied().unwrap_or(0) >> (bit % 32);
        word.trailing_zeros().min(32 - bit % 32)
    }
}

/// The receive window.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct AckTracker {
    /// One more than the newest number that arrived.
    next: U24,
    /// Datagrams that arrived and whose messages were all taken.
    received: Bits,
    /// Set for a received datagram: it is to be acknowledged. Set for another one: it was deferred.
    pending: Bits,
    /// Datagrams that a negative acknowledgement is to name.
    missing: Bits,
    /// What `next` was when the last acknowledgements were composed, the oldest first.
    named_until: [U24; TIMES_NAMED],
    unacknowledged_count: u32,
    missing_count: u32,
    /// The oldest number that was deferred and that no negative acknowledgement has named since.
    oldest_deferred: Option<U24>,
}

impl AckTracker {
    /// Lets a new window expect `start` first.
    pub(super) const fn start_numbers_at(&mut self, start: U24) {
        self.next = start;
        self.named_until = [start; TIMES_NAMED];
    }

    pub(super) const fn unacknowledged(&self) -> u32 {
        self.unacknowledged_count
    }

    pub(super) const fn missing(&self) -> u32 {
        self.missing_count
    }

    /// What `number` means, without remembering it.
    pub(in super::super) fn classify(&self, number: U24) -> DatagramStatus {
        let is_older = number.is_older_than(self.next);
        if !is_older {
            return if number.since(self.next) > MAX_JUMP {
                DatagramStatus::OutsideWindow
            } else {
                DatagramStatus::New
            };
        }
        if self.next.since(number) > WINDOW {
            DatagramStatus::OutsideWindow
        } else if self.received.get(number) {
            DatagramStatus::Duplicate
        } else if self.pending.get(number) {
            DatagramStatus::Deferred
        } else {
            DatagramStatus::New
        }
    }

    /// Whether `number` is the one behind the newest so far: nothing is missing before it that was not missing already.
    pub(super) fn is_next(&self, number: U24) -> bool {
        number == self.next
    }

    /// Remembers that `number` arrived and is to be acknowledged. It must not be [`DatagramStatus::OutsideWindow`].
    pub(super) fn commit(&mut self, number: U24) {
        if !number.is_older_than(self.next) {
            self.advance_to(number);
        }
        if !self.is_unacknowledged(number) {
            self.unacknowledged_count += 1;
        }
        self.received.set(number, true);
        self.pending.set(number, true);
        self.forget_missing(number);
    }

    /// Remembers that `number` arrived and that there was no memory for some of its messages. It is neither acknowledged
    /// nor reported missing: it would be sent again in vain before there is memory.
    pub(super) fn defer(&mut self, number: U24) {
        if !number.is_older_than(self.next) {
            self.advance_to(number);
        }
        self.pending.set(number, true);
        self.forget_missing(number);
        if self.oldest_deferred.is_none_or(|oldest| number.is_older_than(oldest)) {
            self.oldest_deferred = Some(number);
        }
    }

    /// Whether numbers were deferred that no negative acknowledgement has named since.
    pub(super) const fn has_deferred(&self) -> bool {
        self.oldest_deferred.is_some()
    }

    /// Reports deferred datagrams missing, since there is memory for them now. The other peer sends them again at once,
    /// where it would wait for a timeout otherwise.
    pub(super) fn nack_deferred(&mut self) {
        let Some(deferred) = self.oldest_deferred.take() else { return };
        let oldest = self.next.minus(WINDOW);
        let first = if deferred.is_older_than(oldest) { oldest } else { deferred };
        for offset in 0..self.next.since(first).min(WINDOW) {
            let number = first.plus(offset);
            if self.pending.get(number) && !self.received.get(number) && !self.missing.get(number) {
                self.missing.set(number, true);
                self.missing_count += 1;
            }
        }
    }

    /// Makes `number` the newest one. The numbers that it jumps over are missing; those behind the window are forgotten.
    fn advance_to(&mut self, number: U24) {
        let jump = number.since(self.next);
        for behind in (0..=jump.min(WINDOW - 1)).rev() {
            let passed = number.minus(behind);
            self.forget_unacknowledged(passed);
            self.forget_missing(passed);
            self.received.set(passed, false);
            self.pending.set(passed, false);
            if behind > 0 && behind <= MAX_MISSING {
                self.missing.set(passed, true);
                self.missing_count += 1;
            }
        }
        self.next = number.next();
    }

    fn is_unacknowledged(&self, number: U24) -> bool {
        self.pending.get(number) && self.received.get(number)
    }

    fn forget_unacknowledged(&mut self, number: U24) {
        if self.is_unacknowledged(number) {
            self.pending.set(number, false);
            self.unacknowledged_count -= 1;
        }
    }

    fn forget_missing(&mut self, number: U24) {
        if self.missing.get(number) {
            self.missing.set(number, false);
            self.missing_count -= 1;
        }
    }

    /// Composes a datagram of records in at most `limit` bytes. What it names is forgotten; the rest waits for the next one.
    pub(super) fn write(
        &mut self,
        kind: RecordKind,
        writer: &mut Writer<'_>,
        limit: usize,
    ) -> Result<(), WireError> {
        header(kind, 0).write(writer)?;
        let mut records = 0;
        for (first, last) in self.segments() {
            let mut at = first;
            while let Some(record) = self.next_run(kind, at, last) {
                if writer.written() + MAX_RECORD > limit {
                    break;
                }
                record.write(writer)?;
                records += 1;
                self.forget(kind, record);
                if record.last == last {
                    break;
                }
                at = record.last.next();
            }
        }
        if kind == RecordKind::Ack {
            self.named_until.rotate_left(1);
            self.named_until[TIMES_NAMED - 1] = self.next;
        }
        writer.patch_u16(ACK_HEADER - 2, records)
    }

    /// The numbers of the window as runs that do not wrap, in numeric order. The original refuses an acknowledgement
    /// of the last number and all records after it (docs/raknet.md#records), so that number comes alone and last.
    fn segments(&self) -> impl Iterator<Item = (U24, U24)> + use<> {
        let (oldest, newest) = (self.next.minus(WINDOW), self.next.minus(1));
        let top = U24::new(0xFF_FFFF);
        let parts = if oldest.get() <= newest.get() && newest != top {
            [Some((oldest, newest)), None, None]
        } else if newest == top {
            [Some((oldest, top.minus(1))), Some((top, top)), None]
        } else {
            let below_top = (oldest != top).then(|| (oldest, top.minus(1)));
            [Some((U24::new(0), newest)), below_top, Some((top, top))]
        };
        parts.into_iter().flatten()
    }

    /// The first run of listed numbers from `at` to `last`.
    fn next_run(&self, kind: RecordKind, mut at: U24, last: U24) -> Option<Record> {
        let repeat_from = self.named_until[0];
        let is_listed = |number: U24| match kind {
            RecordKind::Ack if number.is_older_than(repeat_from) => self.is_unacknowledged(number),
            RecordKind::Ack => self.received.get(number),
            RecordKind::Nack => self.missing.get(number),
        };
        while !is_listed(at) {
            let skip = match kind {
                RecordKind::Ack if at.is_older_than(repeat_from) => {
                    self.pending.clear_run(at).min(repeat_from.since(at))
                }
                RecordKind::Ack => self.received.clear_run(at),
                RecordKind::Nack => self.missing.clear_run(at),
            };
            let skip = skip.max(1);
            if skip > last.since(at) {
                return None;
            }
            at = at.plus(skip);
        }
        let first = at;
        while at != last && is_listed(at.next()) {
            at = at.next();
        }
        Some(Record { first, last: at })
    }

    fn forget(&mut self, kind: RecordKind, record: Record) {
        let mut offset = 0;
        while offset <= record.last.since(record.first) {
            let number = record.first.plus(offset);
            let clear = match kind {
                RecordKind::Ack => self.pending.clear_run(number),
                RecordKind::Nack => self.missing.clear_run(number),
            };
            match kind {
                _ if clear > 0 => {}
                RecordKind::Ack => self.forget_unacknowledged(number),
                RecordKind::Nack => self.forget_missing(number),
            }
            offset += clear.max(1);
        }
    }
}

const fn header(kind: RecordKind, records: u16) -> DatagramHeader {
    match kind {
        RecordKind::Ack => DatagramHeader::Ack { arrival_speed: None, records },
        RecordKind::Nack => DatagramHeader::Nack { records },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Reader, Source};
    use std::vec::Vec;

    fn starting_at(start: U24) -> AckTracker {
        let mut ack_tracker = AckTracker::default();
        ack_tracker.start_numbers_at(start);
        ack_tracker
    }

    fn listed(ack_tracker: &mut AckTracker, kind: RecordKind) -> Vec<(u32, u32)> {
        let mut buffer = [0; 1464];
        let mut writer = Writer::new(&mut buffer);
        ack_tracker.write(kind, &mut writer, 1464).expect("room for records");
        let mut reader = Reader::new(writer.finish());
        let header = DatagramHeader::read(&mut reader).expect("a header");
        let (DatagramHeader::Ack { records: count, .. } | DatagramHeader::Nack { records: count }) = header
        else {
            panic!("{header:?}")
        };
        let records = (0..count).map(|_| Record::read(&mut reader).expect("a record"));
        let records = records.map(|record| (record.first.get(), record.last.get())).collect();
        assert_eq!(reader.remaining(), 0);
        records
    }

    #[test]
    fn gaps_are_reported_once_and_datagrams_acknowledged_three_times() {
        let mut ack_tracker = AckTracker::default();
        for number in [0, 1, 2, 5, 4, 9] {
            assert_eq!(ack_tracker.classify(U24::new(number)), DatagramStatus::New);
            ack_tracker.commit(U24::new(number));
        }
        assert_eq!(ack_tracker.classify(U24::new(4)), DatagramStatus::Duplicate);
        assert_eq!(ack_tracker.classify(U24::new(3)), DatagramStatus::New);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(3, 3), (6, 8)]);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(0, 2), (4, 5), (9, 9)]);
        assert_eq!((ack_tracker.missing(), ack_tracker.unacknowledged()), (0, 0));
        assert!(listed(&mut ack_tracker, RecordKind::Nack).is_empty());
        for _ in 1..TIMES_NAMED {
            assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(0, 2), (4, 5), (9, 9)]);
        }
        assert!(listed(&mut ack_tracker, RecordKind::Ack).is_empty());
    }

    #[test]
    fn what_was_acknowledged_before_lengthens_the_record_of_what_follows() {
        let mut ack_tracker = starting_at(U24::new(0xFF_FFFC));
        let mut first = U24::new(0xFF_FFFC);
        for _ in 0..300 {
            (0..4).for_each(|step| ack_tracker.commit(first.plus(step)));
            let records = listed(&mut ack_tracker, RecordKind::Ack);
            let named: u32 = records.iter().map(|(first, last)| last - first + 1).sum();
            assert!(named <= 12 && records.len() <= 3, "{records:?}");
            assert!(records.iter().any(|(_, last)| *last == first.plus(3).get()), "{records:?}");
            first = first.plus(4);
        }
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(1_188, 1_195)]);
    }

    /// The limits of docs/raknet.md#gaps: 2000 to 2999 for a jump to 3000, nothing for a jump to 60000.
    #[test]
    fn jumps_are_bounded() {
        let mut ack_tracker = AckTracker::default();
        ack_tracker.commit(U24::new(0));
        assert_eq!(ack_tracker.classify(U24::new(60_000)), DatagramStatus::OutsideWindow);
        ack_tracker.commit(U24::new(3_000));
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(2_000, 2_999)]);
        assert_eq!(ack_tracker.classify(U24::new(1_900)), DatagramStatus::OutsideWindow);
        assert_eq!(ack_tracker.classify(U24::new(1_999)), DatagramStatus::New);
    }

    #[test]
    fn records_do_not_wrap_and_the_last_number_comes_last() {
        let mut ack_tracker = starting_at(U24::new(0xFF_FFFC));
        for step in 0..8 {
            ack_tracker.commit(U24::new(0xFF_FFFC).plus(step));
        }
        assert_eq!(
            listed(&mut ack_tracker, RecordKind::Ack),
            [(0, 3), (0xFF_FFFC, 0xFF_FFFE), (0xFF_FFFF, 0xFF_FFFF)]
        );
        let mut ack_tracker = starting_at(U24::new(0xFF_FFFE));
        ack_tracker.commit(U24::new(0xFF_FFFE));
        ack_tracker.commit(U24::new(0xFF_FFFF));
        assert_eq!(
            listed(&mut ack_tracker, RecordKind::Ack),
            [(0xFF_FFFE, 0xFF_FFFE), (0xFF_FFFF, 0xFF_FFFF)]
        );
    }

    #[test]
    fn what_was_refused_is_called_missing_once_there_is_room() {
        let mut ack_tracker = AckTracker::default();
        ack_tracker.commit(U24::new(0));
        for number in [1, 3, 4] {
            ack_tracker.defer(U24::new(number));
        }
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(2, 2)]);
        assert!(ack_tracker.has_deferred());
        assert_eq!(ack_tracker.classify(U24::new(3)), DatagramStatus::Deferred);
        ack_tracker.commit(U24::new(3));
        ack_tracker.nack_deferred();
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(1, 1), (4, 4)]);
        assert!(!ack_tracker.has_deferred());
        ack_tracker.defer(U24::new(6));
        ack_tracker.nack_deferred();
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(5, 6)]);
    }

    #[test]
    fn refusals_that_fell_behind_the_window_are_forgotten() {
        let mut ack_tracker = starting_at(U24::new(0xFF_FFF0));
        ack_tracker.defer(U24::new(0xFF_FFF0));
        (1..1_100).for_each(|step| ack_tracker.commit(U24::new(0xFF_FFF0).plus(step)));
        ack_tracker.nack_deferred();
        assert_eq!(ack_tracker.missing(), 0);
    }

    #[test]
    fn what_does_not_fit_waits_for_the_next_datagram() {
        let mut ack_tracker = AckTracker::default();
        (0..20).for_each(|number| ack_tracker.commit(U24::new(number * 2)));
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        ack_tracker.write(RecordKind::Ack, &mut writer, 64).expect("room for some");
        assert_eq!(writer.finish().len(), ACK_HEADER + 14 * 4);
        assert_eq!(ack_tracker.unacknowledged(), 6);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack).len(), 20);
        assert_eq!(ack_tracker.unacknowledged(), 0);
    }
}

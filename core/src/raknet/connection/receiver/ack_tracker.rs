//! The receive window of datagram numbers: received, to be acknowledged, or missing.

use crate::cursor::{WireError, Writer};
use crate::raknet::shared_state::WINDOW_WORDS;
use crate::raknet::wire::Wire;
use crate::raknet::wire::datagram::{ACK_HEADER, DatagramHeader, MAX_RECORD, Record};
use crate::serial::U24;

/// The maximum accepted jump of the datagram number (docs/raknet.md#gaps).
const MAX_JUMP: u32 = 50_000;
/// The maximum number of datagrams before a jump that are reported missing (docs/raknet.md#gaps).
const MAX_MISSING: u32 = 1_000;

/// The number of acknowledgements that name each received datagram.
///
/// Acknowledgements are not acknowledged. Without repetition, the loss of an acknowledgement would make its datagrams
/// look lost. A repeated number usually extends a record and adds no bytes. Peers ignore numbers that they no longer
/// track (docs/raknet.md#acknowledgements).
const TIMES_NAMED: usize = 3;

/// The maximum datagram number.
const TOP: U24 = U24::new(0xFF_FFFF);

/// The classification of a datagram number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum DatagramStatus {
    New,
    /// Received before. It is acknowledged again, and parsed for reliable messages that the first copy did not
    /// contain.
    Duplicate,
    /// Received before, but some of its reliable messages did not fit into memory.
    Deferred,
    /// Outside the receive window; dropped.
    OutsideWindow,
}

/// The list of numbers from which an acknowledgement datagram is composed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Ack,
    Nack,
}

/// The receive window. Without loss and reordering, the per-number states are neither read nor written.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct AckTracker {
    /// The highest received number plus one.
    next: U24,
    /// The highest missing or deferred number within the window plus one; the states are valid while it is set.
    gap_end: Option<U24>,
    /// The values of `next` at the last acknowledgements, oldest first.
    named_until: [U24; TIMES_NAMED],
    /// The oldest number not yet acknowledged: received since the last acknowledgement, or omitted from it for lack of
    /// space. The next acknowledgement names all received numbers from this one on.
    unnamed: Option<U24>,
    /// The number of datagrams received since the last acknowledgement.
    unacknowledged_count: u32,
    missing_count: u32,
    /// The oldest deferred number that no negative acknowledgement has named since it was deferred.
    oldest_deferred: Option<U24>,
    /// Negative acknowledgements also name the deferred numbers from this one on. These numbers stay deferred,
    /// because the unreliable messages of their datagrams must not be delivered again.
    names_deferred_from: Option<U24>,
}

impl AckTracker {
    /// Sets the first expected number of a new window.
    pub(super) const fn start_numbers_at(&mut self, start: U24) {
        self.next = start;
        self.named_until = [start; TIMES_NAMED];
    }

    /// Returns the number of received datagrams to acknowledge, including duplicates.
    pub(super) const fn unacknowledged(&self) -> u32 {
        self.unacknowledged_count
    }

    /// Returns true if a negative acknowledgement is to be sent.
    pub(super) const fn has_missing(&self) -> bool {
        self.missing_count > 0 || self.names_deferred_from.is_some()
    }

    /// Classifies `number` without recording it.
    pub(in super::super) fn classify(&self, states: &RecvStates<'_>, number: U24) -> DatagramStatus {
        let is_older = number.is_older_than(self.next);
        if !is_older {
            return if number.since(self.next) > MAX_JUMP {
                DatagramStatus::OutsideWindow
            } else {
                DatagramStatus::New
            };
        }
        if self.next.since(number) > WINDOW {
            return DatagramStatus::OutsideWindow;
        }
        match self.word(states, number).0.first() {
            RecvState::Unknown | RecvState::Missing => DatagramStatus::New,
            RecvState::Received => DatagramStatus::Duplicate,
            RecvState::Deferred => DatagramStatus::Deferred,
        }
    }

    /// Returns the states of `number` and of some numbers after it, and the count of these states.
    fn word(&self, states: &RecvStates<'_>, number: U24) -> (Word, u32) {
        if self.gap_end.is_some() { states.word(number) } else { Word::RECEIVED }
    }

    /// Returns true if `number` follows the highest received one, so that it opens no gap.
    pub(super) fn is_next(&self, number: U24) -> bool {
        number == self.next
    }

    /// Records that `number` was received and is to be acknowledged. It must not be
    /// [`DatagramStatus::OutsideWindow`].
    pub(super) fn commit(&mut self, states: &mut RecvStates<'_>, number: U24) {
        self.reach(states, number);
        self.set(states, number, RecvState::Received);
        self.unacknowledged_count = self.unacknowledged_count.saturating_add(1);
        if self.unnamed.is_none_or(|unnamed| number.is_older_than(unnamed)) {
            self.unnamed = Some(number);
        }
    }

    /// Records that `number` was received but some messages of its datagram did not fit into memory.
    ///
    /// The number is neither acknowledged nor reported missing, because a retransmission would not fit either.
    pub(super) fn defer(&mut self, states: &mut RecvStates<'_>, number: U24) {
        self.reach(states, number);
        self.begin_gap(states, number.next());
        self.set(states, number, RecvState::Deferred);
        if self.oldest_deferred.is_none_or(|oldest| number.is_older_than(oldest)) {
            self.oldest_deferred = Some(number);
        }
    }

    /// Returns true if there are deferred numbers that no negative acknowledgement has named since they were deferred.
    pub(super) const fn has_deferred(&self) -> bool {
        self.oldest_deferred.is_some()
    }

    /// Reports deferred datagrams as missing once there is memory for them. The remote peer retransmits them
    /// immediately, instead of after a timeout.
    pub(super) fn nack_deferred(&mut self, states: &RecvStates<'_>) {
        let Some(deferred) = self.oldest_deferred.take() else { return };
        let from = self.names_deferred_from.unwrap_or(deferred);
        let from = self.within_window(if deferred.is_older_than(from) { deferred } else { from });
        self.names_deferred_from = Some(from);
        // The deferred numbers may have left the window.
        if self.first_listed(states, RecordKind::Nack, from, self.next.minus(1)).is_none() {
            self.names_deferred_from = None;
        }
    }

    fn set(&mut self, states: &mut RecvStates<'_>, number: U24, state: RecvState) {
        if self.gap_end.is_none() {
            return;
        }
        self.missing_count -= u32::from(states.get(number) == RecvState::Missing);
        self.missing_count += u32::from(state == RecvState::Missing);
        states.set(number, state);
    }

    /// Advances the window to `number` if it is ahead. Skipped numbers are missing; numbers that leave the window are
    /// forgotten.
    fn reach(&mut self, states: &mut RecvStates<'_>, number: U24) {
        if number.is_older_than(self.next) {
            return;
        }
        let jump = number.since(self.next);
        self.next = number.next();
        if jump > 0 {
            self.begin_gap(states, number);
        }
        if self.gap_end.is_some() {
            self.reach_in_gap(states, number, jump);
        }
        if self.unnamed.is_some_and(|unnamed| self.next.since(unnamed) > WINDOW) {
            self.forget_unnamed(states);
        }
    }

    fn reach_in_gap(&mut self, states: &mut RecvStates<'_>, number: U24, jump: u32) {
        for behind in 1..=jump.min(WINDOW - 1) {
            let is_missing = behind <= MAX_MISSING;
            self.set(
                states,
                number.minus(behind),
                if is_missing { RecvState::Missing } else { RecvState::Unknown },
            );
        }
        self.set(states, number, RecvState::Unknown);
        self.gap_end = self.gap_end.filter(|end| self.next.since(*end) < WINDOW);
    }

    /// Records that at least one number before `end` is missing or deferred.
    fn begin_gap(&mut self, states: &mut RecvStates<'_>, end: U24) {
        if self.gap_end.is_none() {
            states.fill();
        }
        if self.gap_end.is_none_or(|known| known.is_older_than(end)) {
            self.gap_end = Some(end);
        }
    }

    /// Called when numbers that no acknowledgement has named have left the window.
    #[cold]
    fn forget_unnamed(&mut self, states: &RecvStates<'_>) {
        let oldest = self.next.minus(WINDOW);
        self.unnamed = self.first_listed(states, RecordKind::Ack, oldest, self.next.minus(1));
        if self.unnamed.is_none() {
            self.unacknowledged_count = 0;
        }
    }

    /// Returns `number`, or the oldest number in the window if that is newer.
    fn within_window(&self, number: U24) -> U24 {
        if self.next.since(number) > WINDOW { self.next.minus(WINDOW) } else { number }
    }

    /// Writes records in at most `limit` bytes. Named numbers are removed from the list; the rest is left for the
    /// next datagram.
    pub(super) fn write(
        &mut self,
        states: &mut RecvStates<'_>,
        kind: RecordKind,
        writer: &mut Writer<'_>,
        limit: usize,
    ) -> Result<(), WireError> {
        header(kind, 0).write(writer)?;
        let (mut records, newest) = (0, self.next.minus(1));
        let (first, last) = self.segment(states, kind, self.oldest_to_name(kind), newest);
        let mut rest = self.first_listed(states, kind, first, last);
        while let Some(at) = rest {
            if writer.written() + MAX_RECORD > limit {
                break;
            }
            let record = Record { first: at, last: self.end_of_run(states, kind, at, last) };
            record.write(writer)?;
            records += 1;
            self.forget(states, kind, record);
            rest = if record.last == last {
                None
            } else {
                self.first_listed(states, kind, record.last.next(), last)
            };
        }
        let behind =
            || if last == newest { None } else { self.first_listed(states, kind, last.next(), newest) };
        let rest = rest.or_else(behind);
        match kind {
            RecordKind::Ack => self.on_acknowledged(rest),
            RecordKind::Nack => self.names_deferred_from = self.names_deferred_from.and(rest),
        }
        writer.patch_u16(ACK_HEADER - 2, records)
    }

    fn oldest_to_name(&self, kind: RecordKind) -> U24 {
        let [repeated, ..] = self.named_until;
        match kind {
            RecordKind::Ack => {
                let repeated = self.within_window(repeated);
                let unnamed = self.unnamed.map_or(repeated, |unnamed| self.within_window(unnamed));
                if unnamed.is_older_than(repeated) { unnamed } else { repeated }
            }
            RecordKind::Nack => self.next.minus(WINDOW),
        }
    }

    /// Returns the part of a range that one datagram can name: ascending numbers without a wrap.
    fn segment(&self, states: &RecvStates<'_>, kind: RecordKind, oldest: U24, newest: U24) -> (U24, U24) {
        if oldest.get() <= newest.get() {
            return (oldest, newest);
        }
        let begins_before_the_wrap = match kind {
            RecordKind::Ack => self.unnamed.is_none_or(|unnamed| unnamed.get() > newest.get()),
            RecordKind::Nack => self.first_listed(states, kind, oldest, TOP).is_some(),
        };
        if begins_before_the_wrap { (oldest, TOP) } else { (U24::new(0), newest) }
    }

    /// Called when an acknowledgement was written, which names all numbers, or those before `rest` if some did not fit.
    fn on_acknowledged(&mut self, rest: Option<U24>) {
        self.unnamed = rest;
        if let Some(rest) = rest {
            // The next acknowledgement begins with the rest, and does not repeat the numbers just named.
            self.named_until = [rest; TIMES_NAMED];
            return;
        }
        self.named_until.rotate_left(1);
        self.named_until[TIMES_NAMED - 1] = self.next;
        self.unacknowledged_count = 0;
    }

    /// Returns the first listed number from `at` to `last`.
    fn first_listed(&self, states: &RecvStates<'_>, kind: RecordKind, mut at: U24, last: U24) -> Option<U24> {
        // In an empty window `last` precedes the first number.
        if self.next.since(at) > WINDOW || at == self.next {
            return None;
        }
        while !self.is_listed(states, kind, at) {
            let skip = self.unlisted(states, kind, at);
            if skip > last.since(at) {
                return None;
            }
            at = at.plus(skip);
        }
        Some(at)
    }

    /// Returns a bit mask of the listed numbers, with `number` in the lowest bit, and the count of valid bits.
    fn listed(&self, states: &RecvStates<'_>, kind: RecordKind, number: U24) -> (u32, u32) {
        let (Word { low, high }, bits) = self.word(states, number);
        match (kind, self.names_deferred_from) {
            (RecordKind::Ack, _) => (low & !high, bits),
            (RecordKind::Nack, None) => (low & high, bits),
            (RecordKind::Nack, Some(from)) if number.is_older_than(from) => {
                (low & high, bits.min(from.since(number)))
            }
            (RecordKind::Nack, Some(_)) => (high, bits),
        }
    }

    fn is_listed(&self, states: &RecvStates<'_>, kind: RecordKind, number: U24) -> bool {
        self.listed(states, kind, number).0 & 1 != 0
    }

    /// Returns how many consecutive numbers, from the unlisted `number` on, are known to be unlisted.
    fn unlisted(&self, states: &RecvStates<'_>, kind: RecordKind, number: U24) -> u32 {
        let (listed, bits) = self.listed(states, kind, number);
        listed.trailing_zeros().min(bits).max(1)
    }

    /// Returns the last number of the range of listed numbers that begins with `first`, at most `last`.
    ///
    /// C++ RakNet rejects a record that ends with the maximum number, and all records after it
    /// (docs/raknet.md#records). The maximum number therefore gets a record of its own.
    fn end_of_run(&self, states: &RecvStates<'_>, kind: RecordKind, first: U24, last: U24) -> U24 {
        let last = if last == TOP && first != TOP { TOP.minus(1) } else { last };
        let mut at = first;
        loop {
            let (listed, bits) = self.listed(states, kind, at);
            let run = listed.trailing_ones().min(bits);
            if run > last.since(at) {
                return last;
            }
            at = at.plus(run);
            if run < bits {
                return at.minus(1);
            }
        }
    }

    /// Removes the numbers that a negative acknowledgement named.
    fn forget(&mut self, states: &mut RecvStates<'_>, kind: RecordKind, record: Record) {
        if kind == RecordKind::Ack {
            return;
        }
        for number in (0..=record.last.since(record.first)).map(|offset| record.first.plus(offset)) {
            if states.get(number) == RecvState::Missing {
                self.set(states, number, RecvState::Unknown);
            }
        }
    }
}

const fn header(kind: RecordKind, records: u16) -> DatagramHeader {
    match kind {
        RecordKind::Ack => DatagramHeader::Ack { arrival_speed: None, records },
        RecordKind::Nack => DatagramHeader::Nack { records },
    }
}

/// The number of bits in a word.
const WORD: u32 = 32;
/// The number of words in each table.
const TABLE: usize = WINDOW_WORDS / 2;
/// The size of the window in datagrams.
const WINDOW: u32 = TABLE as u32 * WORD;

/// The state of a number in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecvState {
    /// Unknown, or already named by a negative acknowledgement.
    Unknown,
    /// Received, and all its messages were accepted.
    Received,
    /// Received, but some of its messages did not fit into memory.
    Deferred,
    /// To be named by a negative acknowledgement.
    Missing,
}

/// The state of each number in the window, as one bit in each of two tables. The first bit is set for received and
/// missing numbers, the second for deferred and missing ones.
pub(in super::super) struct RecvStates<'h>(Option<&'h mut [u32; WINDOW_WORDS]>);

impl<'h> RecvStates<'h> {
    /// Creates the states in the words that [`LossHistory`](crate::raknet::shared_state::LossHistory) provides for a
    /// connection.
    #[inline]
    pub(in super::super) const fn new(words: Option<&'h mut [u32; WINDOW_WORDS]>) -> Self {
        Self(words)
    }

    /// Returns the index of a number's word in a table, and of its bit in the word.
    const fn place(number: U24) -> (usize, u32) {
        let bit = number.get() % WINDOW;
        ((bit / WORD) as usize, bit % WORD)
    }

    fn get(&self, number: U24) -> RecvState {
        self.word(number).0.first()
    }

    fn set(&mut self, number: U24, state: RecvState) {
        let (word, bit) = Self::place(number);
        let values = [
            (word, matches!(state, RecvState::Received | RecvState::Missing)),
            (TABLE + word, matches!(state, RecvState::Deferred | RecvState::Missing)),
        ];
        let Some(words) = &mut self.0 else { return };
        for (word, value) in values {
            if let Some(word) = words.get_mut(word) {
                *word = *word & !(1 << bit) | u32::from(value) << bit;
            }
        }
    }

    /// Marks every number in the window as received.
    fn fill(&mut self) {
        let Some(words) = &mut self.0 else { return };
        let (low, high) = words.split_at_mut(TABLE);
        low.fill(u32::MAX);
        high.fill(0);
    }

    /// Returns the states from `number` on, the first in the lowest bit, and the count of these states.
    fn word(&self, number: U24) -> (Word, u32) {
        let (word, bit) = Self::place(number);
        let at =
            |word: usize| self.0.as_ref().and_then(|words| words.get(word)).map_or(0, |word| word >> bit);
        (Word { low: at(word), high: at(TABLE + word) }, WORD - bit)
    }
}

/// The states of consecutive numbers, the first one in the lowest bit.
#[derive(Clone, Copy)]
struct Word {
    low: u32,
    high: u32,
}

impl Word {
    /// All numbers are received.
    const RECEIVED: (Self, u32) = (Self { low: u32::MAX, high: 0 }, WORD);

    const fn first(self) -> RecvState {
        match (self.high & 1 != 0, self.low & 1 != 0) {
            (false, false) => RecvState::Unknown,
            (false, true) => RecvState::Received,
            (true, false) => RecvState::Deferred,
            (true, true) => RecvState::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Reader, Source};
    use crate::raknet::shared_state::WINDOW_WORDS;
    use core::ops::Deref;
    use std::vec::Vec;

    /// A window in words that still contain the states of an earlier connection.
    struct Window {
        ack_tracker: AckTracker,
        words: [u32; WINDOW_WORDS],
    }

    impl Window {
        fn starting_at(start: u32) -> Self {
            let mut ack_tracker = AckTracker::default();
            ack_tracker.start_numbers_at(U24::new(start));
            Self { ack_tracker, words: [0xA5A5_5A5A; WINDOW_WORDS] }
        }

        fn classify(&mut self, number: u32) -> DatagramStatus {
            self.ack_tracker.classify(&RecvStates::new(Some(&mut self.words)), U24::new(number))
        }

        fn commit(&mut self, number: u32) {
            self.ack_tracker.commit(&mut RecvStates::new(Some(&mut self.words)), U24::new(number));
        }

        fn defer(&mut self, number: u32) {
            self.ack_tracker.defer(&mut RecvStates::new(Some(&mut self.words)), U24::new(number));
        }

        fn nack_deferred(&mut self) {
            self.ack_tracker.nack_deferred(&RecvStates::new(Some(&mut self.words)));
        }

        fn write(&mut self, kind: RecordKind, writer: &mut Writer<'_>, limit: usize) {
            let mut states = RecvStates::new(Some(&mut self.words));
            self.ack_tracker.write(&mut states, kind, writer, limit).expect("space for records");
        }

        /// Returns true if the window has no gap.
        fn is_whole(&self) -> bool {
            self.ack_tracker.gap_end.is_none()
        }
    }

    impl Deref for Window {
        type Target = AckTracker;

        fn deref(&self) -> &AckTracker {
            &self.ack_tracker
        }
    }

    fn listed(ack_tracker: &mut Window, kind: RecordKind) -> Vec<(u32, u32)> {
        let mut buffer = [0; 1464];
        let mut writer = Writer::new(&mut buffer);
        ack_tracker.write(kind, &mut writer, 1464);
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
    fn each_gap_is_reported_once_and_each_datagram_acknowledged_three_times() {
        let mut ack_tracker = Window::starting_at(0);
        for number in [0, 1, 2, 5, 4, 9] {
            assert_eq!(ack_tracker.classify(number), DatagramStatus::New);
            ack_tracker.commit(number);
        }
        assert_eq!(ack_tracker.classify(4), DatagramStatus::Duplicate);
        assert_eq!(ack_tracker.classify(3), DatagramStatus::New);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(3, 3), (6, 8)]);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(0, 2), (4, 5), (9, 9)]);
        assert!(!ack_tracker.has_missing() && ack_tracker.unacknowledged() == 0);
        assert!(listed(&mut ack_tracker, RecordKind::Nack).is_empty());
        for _ in 1..TIMES_NAMED {
            assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(0, 2), (4, 5), (9, 9)]);
        }
        assert!(listed(&mut ack_tracker, RecordKind::Ack).is_empty());
    }

    /// Memory that is never written takes no physical pages.
    #[test]
    fn window_memory_is_written_only_while_there_is_a_gap() {
        let mut ack_tracker = Window::starting_at(0);
        let untouched = ack_tracker.words;
        (0..2_000).for_each(|number| ack_tracker.commit(number));
        assert_eq!(ack_tracker.words, untouched);
        ack_tracker.commit(2_001);
        let status = [2_001, 2_000, 1_999, 978, 977].map(|number| ack_tracker.classify(number));
        let [duplicate, outside] = [DatagramStatus::Duplicate, DatagramStatus::OutsideWindow];
        assert_eq!(status, [duplicate, DatagramStatus::New, duplicate, duplicate, outside]);
        (2_002..3_024).for_each(|number| ack_tracker.commit(number));
        assert_eq!(ack_tracker.classify(2_000), DatagramStatus::New);
        assert!(!ack_tracker.is_whole() && ack_tracker.missing_count == 1);
        ack_tracker.commit(3_024);
        assert!(ack_tracker.is_whole() && !ack_tracker.has_missing());
        assert_eq!(ack_tracker.classify(2_001), duplicate);
        let left = ack_tracker.words;
        (3_025..6_000).for_each(|number| ack_tracker.commit(number));
        assert_eq!(ack_tracker.words, left);
    }

    #[test]
    fn repeated_acknowledgements_share_a_record_with_newer_numbers() {
        let mut ack_tracker = Window::starting_at(0xFF_FFFC);
        let mut first = U24::new(0xFF_FFFC);
        for _ in 0..300 {
            (0..4).for_each(|step| ack_tracker.commit(first.plus(step).get()));
            let records = listed(&mut ack_tracker, RecordKind::Ack);
            let named: u32 = records.iter().map(|(first, last)| last - first + 1).sum();
            assert!(named <= 12 && records.len() <= 3, "{records:?}");
            assert!(records.iter().any(|(_, last)| *last == first.plus(3).get()), "{records:?}");
            first = first.plus(4);
        }
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(1_188, 1_195)]);
    }

    /// The limits of docs/raknet.md#gaps: after a jump to 3000 the numbers 2000 to 2999 are reported missing, and a
    /// jump to 60000 is dropped.
    #[test]
    fn a_jump_of_datagram_numbers_reports_at_most_1000_as_missing() {
        let mut ack_tracker = Window::starting_at(0);
        ack_tracker.commit(0);
        assert_eq!(ack_tracker.classify(60_000), DatagramStatus::OutsideWindow);
        ack_tracker.commit(3_000);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(2_000, 2_999)]);
        assert_eq!(ack_tracker.classify(1_900), DatagramStatus::OutsideWindow);
        assert_eq!(ack_tracker.classify(1_999), DatagramStatus::New);
    }

    #[test]
    fn the_maximum_number_has_a_record_of_its_own_and_no_record_wraps() {
        let mut ack_tracker = Window::starting_at(0xFF_FFFC);
        for step in 0..8 {
            ack_tracker.commit(0xFF_FFFC + step);
        }
        assert_eq!(
            listed(&mut ack_tracker, RecordKind::Ack),
            [(0xFF_FFFC, 0xFF_FFFE), (0xFF_FFFF, 0xFF_FFFF)]
        );
        assert!(ack_tracker.unacknowledged() > 0);
        for _ in 0..TIMES_NAMED {
            assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(0, 3)]);
            assert_eq!(ack_tracker.unacknowledged(), 0);
        }
        assert!(listed(&mut ack_tracker, RecordKind::Ack).is_empty());
        let mut ack_tracker = Window::starting_at(0xFF_FFFE);
        ack_tracker.commit(0xFF_FFFE);
        ack_tracker.commit(0xFF_FFFF);
        assert_eq!(
            listed(&mut ack_tracker, RecordKind::Ack),
            [(0xFF_FFFE, 0xFF_FFFE), (0xFF_FFFF, 0xFF_FFFF)]
        );
    }

    #[test]
    fn gaps_before_and_after_the_wrap_are_listed_in_nacks() {
        let mut ack_tracker = Window::starting_at(0xFF_FFFC);
        ack_tracker.commit(0xFF_FFFC);
        ack_tracker.commit(2);
        assert_eq!(ack_tracker.missing_count, 5);
        let [before, behind] = [(); 2].map(|()| listed(&mut ack_tracker, RecordKind::Nack));
        assert_eq!(before, [(0xFF_FFFD, 0xFF_FFFE), (0xFF_FFFF, 0xFF_FFFF)]);
        assert_eq!(behind, [(0, 1)]);
        assert!(!ack_tracker.has_missing());
    }

    #[test]
    fn numbers_that_left_the_window_are_not_acknowledged() {
        let mut ack_tracker = Window::starting_at(0);
        ack_tracker.commit(5);
        (6..1_029).for_each(|number| ack_tracker.defer(number));
        assert_eq!(ack_tracker.unacknowledged(), 1);
        ack_tracker.defer(1_029);
        assert_eq!(ack_tracker.unacknowledged(), 0);
        ack_tracker.commit(1_030);
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), [(1_030, 1_030)]);
    }

    #[test]
    fn deferred_datagrams_are_reported_missing_once_memory_is_free() {
        let mut ack_tracker = Window::starting_at(0);
        ack_tracker.commit(0);
        for number in [1, 3, 4] {
            ack_tracker.defer(number);
        }
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(2, 2)]);
        assert!(ack_tracker.has_deferred());
        assert_eq!(ack_tracker.classify(3), DatagramStatus::Deferred);
        ack_tracker.commit(3);
        ack_tracker.nack_deferred();
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(1, 1), (4, 4)]);
        assert!(!ack_tracker.has_deferred());
        ack_tracker.defer(6);
        ack_tracker.nack_deferred();
        assert_eq!(listed(&mut ack_tracker, RecordKind::Nack), [(5, 6)]);
    }

    #[test]
    fn deferred_datagrams_that_left_the_window_are_forgotten() {
        let mut ack_tracker = Window::starting_at(0xFF_FFF0);
        ack_tracker.defer(0xFF_FFF0);
        (1..1_100).for_each(|step| ack_tracker.commit(0xFF_FFF0 + step));
        ack_tracker.nack_deferred();
        assert!(!ack_tracker.has_missing());
    }

    #[test]
    fn records_that_do_not_fit_are_sent_in_the_next_datagram() {
        let mut ack_tracker = Window::starting_at(0);
        (0..20).for_each(|number| ack_tracker.commit(number * 2));
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        ack_tracker.write(RecordKind::Ack, &mut writer, 64);
        assert_eq!(writer.finish().len(), ACK_HEADER + 14 * 4);
        assert!(ack_tracker.unacknowledged() > 0);
        let rest: Vec<_> = (14..20).map(|number| (number * 2, number * 2)).collect();
        assert_eq!(listed(&mut ack_tracker, RecordKind::Ack), rest);
        assert_eq!(ack_tracker.unacknowledged(), 0);
    }
}

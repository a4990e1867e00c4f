//! Patches that produce a file from an older version, in the format of bsdiff 4.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Take, Write};
use std::prelude::rust_2024::*;

use bzip2::read::BzDecoder;
use qbsdiff::Bsdiff;

/// The maximum size in bytes of a file to patch. Both versions are in memory while the patch is created.
pub(super) const LONGEST: u64 = 128 * 1_024 * 1_024;

/// The magic number of a patch.
const MAGIC: &[u8] = b"BSDIFF40";
/// The length of the header of a patch in bytes. It contains the lengths of the sections.
const HEADER: usize = 32;

/// The size of the buffers, in bytes.
const PIECE: usize = 4_096;

/// The length of an entry in the control section, in bytes.
///
/// It contains the number of bytes to add to those of the older version, the number to copy, and the distance
/// to seek.
const ENTRY: usize = 24;

/// A lower bound of the average number of bytes of the newer version that a bsdiff entry produces.
///
/// bsdiff starts a new entry only where more than 8 bytes match elsewhere.
const BYTES_PER_ENTRY: u64 = 8;

/// The allowance for additional entries, such as those at the ends of a patch, which may produce no bytes.
const FURTHER_ENTRIES: u64 = 1_024;

/// Creates a patch between two versions.
pub(super) fn make(old: &[u8], new: &[u8]) -> io::Result<Vec<u8>> {
    let mut patch = Vec::new();
    Bsdiff::new(old, new).compare(Cursor::new(&mut patch))?;
    Ok(patch)
}

/// Applies a patch in steps. Only small pieces of the two versions and of the patch are in memory.
pub(super) struct Patcher<R: Read, O> {
    control: BzDecoder<Take<R>>,
    difference: BzDecoder<Take<R>>,
    extra: BzDecoder<Take<R>>,
    /// Not buffered: for short entries that are far apart, a buffer would read far more than is used.
    old: O,
    /// The position in the older version.
    old_at: i64,
    /// The position in the older version that the current entry requires.
    wanted_at: i64,
    /// The remaining work of the current entry.
    entry: Entry,
    /// The number of bytes of the newer version that remain.
    left: u64,
    /// The number of entries that remain. Without this limit, a few compressed bytes could expand to endless entries
    /// that produce nothing.
    entries_left: u64,
}

/// An entry of the control section.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    add: u64,
    copy: u64,
    step: i64,
}

/// The error of a step. `is_of_writer` is true if the writer failed; otherwise the patch is unusable.
#[derive(Debug)]
pub(super) struct StepError {
    pub(super) error: io::Error,
    pub(super) is_of_writer: bool,
}

impl StepError {
    const fn of_writer(error: io::Error) -> Self {
        Self { error, is_of_writer: true }
    }
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        Self { error, is_of_writer: false }
    }
}

impl<R: Read + Seek, O: Read + Seek> Patcher<R, O> {
    /// Creates a patcher from a patch and an older version, both read from the start. Each section of the
    /// patch needs its own reader.
    ///
    /// Returns an error if the patch is malformed or produces a file of another size.
    pub(super) fn new(open_patch: impl Fn() -> io::Result<R>, old: O, size: u64) -> io::Result<Self> {
        let mut header = [0; HEADER];
        open_patch()?.read_exact(&mut header)?;
        if !header.starts_with(MAGIC) {
            return Err(io::Error::other("the patch is not in the format of bsdiff 4"));
        }
        let [control, difference, made] = [8, 16, 24].map(|at| number(&header, at));
        if made != size {
            return Err(another_size());
        }
        let part = |begin: u64, length| -> io::Result<_> {
            let mut patch = open_patch()?;
            patch.seek(SeekFrom::Start(begin))?;
            Ok(BzDecoder::new(patch.take(length)))
        };
        let too_long = || io::Error::other("the parts of the patch are longer than the patch");
        let difference_at = control.checked_add(HEADER as u64).ok_or_else(too_long)?;
        let extra_at = difference_at.checked_add(difference).ok_or_else(too_long)?;
        Ok(Self {
            control: part(HEADER as u64, control)?,
            difference: part(difference_at, difference)?,
            extra: part(extra_at, u64::MAX)?,
            old,
            old_at: 0,
            wanted_at: 0,
            entry: Entry::default(),
            left: size,
            entries_left: size / BYTES_PER_ENTRY + FURTHER_ENTRIES,
        })
    }

    /// Produces up to `bytes` more bytes, and reads at most as many from the older version. Entries count toward the
    /// limit too. Returns false once the file is complete.
    pub(super) fn step(&mut self, new: &mut impl Write, bytes: u64) -> Result<bool, StepError> {
        let mut budget = bytes;
        while self.left > 0 && budget > 0 {
            let taken = if self.entry.add > 0 {
                self.add(new, budget)?
            } else if self.entry.copy > 0 {
                self.copy(new, budget)?
            } else {
                self.next_entry()?;
                ENTRY as u64
            };
            budget = budget.saturating_sub(taken);
        }
        new.flush().map_err(StepError::of_writer)?;
        Ok(self.left > 0)
    }

    fn next_entry(&mut self) -> io::Result<()> {
        let left = self.entries_left.checked_sub(1);
        self.entries_left = left.ok_or_else(|| io::Error::other("the patch has too many entries"))?;
        self.wanted_at = self.wanted_at.checked_add(self.entry.step).ok_or_else(outside)?;
        let mut entry = [0; ENTRY];
        self.control.read_exact(&mut entry)?;
        // Numbers have their sign in the highest bit, so a negative number exceeds every size.
        let [add, copy, step] = [0, 8, 16].map(|at| number(&entry, at));
        if add.checked_add(copy).is_none_or(|made| made > self.left) {
            return Err(another_size());
        }
        self.entry = Entry { add, copy, step: signed(step) };
        Ok(())
    }

    /// Produces bytes by adding bytes of the patch to those of the older version.
    fn add(&mut self, new: &mut impl Write, budget: u64) -> Result<u64, StepError> {
        let (mut buffer, mut old) = ([0; PIECE], [0; PIECE]);
        let bytes = piece(&mut buffer, self.entry.add.min(budget));
        let old = piece(&mut old, bytes.len() as u64);
        self.difference.read_exact(bytes)?;
        self.read_old(old)?;
        for (byte, old) in bytes.iter_mut().zip(old) {
            *byte = byte.wrapping_add(*old);
        }
        new.write_all(bytes).map_err(StepError::of_writer)?;
        let made = bytes.len() as u64;
        (self.entry.add, self.left) = (self.entry.add - made, self.left - made);
        Ok(made)
    }

    /// Copies bytes from the patch.
    fn copy(&mut self, new: &mut impl Write, budget: u64) -> Result<u64, StepError> {
        let mut buffer = [0; PIECE];
        let bytes = piece(&mut buffer, self.entry.copy.min(budget));
        self.extra.read_exact(bytes)?;
        new.write_all(bytes).map_err(StepError::of_writer)?;
        let made = bytes.len() as u64;
        (self.entry.copy, self.left) = (self.entry.copy - made, self.left - made);
        Ok(made)
    }

    fn read_old(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let distance = self.wanted_at.checked_sub(self.old_at).ok_or_else(outside)?;
        if distance != 0 {
            self.old.seek_relative(distance)?;
        }
        self.old.read_exact(bytes)?;
        let after = self.wanted_at.checked_add_unsigned(bytes.len() as u64).ok_or_else(outside)?;
        (self.old_at, self.wanted_at) = (after, after);
        Ok(())
    }
}

/// Returns the first `length` bytes of a buffer, or all of it if it is shorter.
fn piece(buffer: &mut [u8], length: u64) -> &mut [u8] {
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(buffer.len());
    // The length is at most that of the buffer, so the slice always exists.
    buffer.get_mut(..length).unwrap_or_default()
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.iter().skip(at).take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Converts a number that has its sign in the highest bit.
fn signed(number: u64) -> i64 {
    let magnitude = (number & i64::MAX as u64) as i64;
    if number >> 63 == 0 { magnitude } else { -magnitude }
}

fn another_size() -> io::Error {
    io::Error::other("the patch does not produce a file of the expected size")
}

fn outside() -> io::Error {
    io::Error::other("the patch reads outside of the older version")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn versions() -> [Vec<u8>; 2] {
        let old: Vec<u8> = (0..40_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        let new = [&old[..9_000], b"a change", &old[9_500..], b"and an end"].concat();
        [old, new]
    }

    /// Applies a patch in steps of `bytes` bytes. Returns the number of steps.
    fn apply_by(old: &[u8], patch: &[u8], size: u64, mut new: impl Write, bytes: u64) -> io::Result<usize> {
        let mut patcher = Patcher::new(|| Ok(Cursor::new(patch)), Cursor::new(old), size)?;
        let mut steps = 1;
        while patcher.step(&mut new, bytes).map_err(|failed| failed.error)? {
            steps += 1;
        }
        Ok(steps)
    }

    fn apply(old: &[u8], patch: &[u8], size: u64, new: impl Write) -> io::Result<()> {
        apply_by(old, patch, size, new, u64::MAX).map(|_| ())
    }

    #[test]
    fn a_patch_is_small_and_produces_the_newer_version() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        assert!(patch.len() < 1_000, "{}", patch.len());
        let mut made = Vec::new();
        apply(&old, &patch, new.len() as u64, &mut made).expect("enough space");
        assert_eq!(made, new);
        assert!(apply(&old, &patch, new.len() as u64 - 1, io::sink()).is_err());
    }

    #[test]
    fn each_step_writes_a_bounded_number_of_bytes() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        let size = new.len() as u64;
        for bytes in [1, 25, 1_000, 5_000] {
            let mut patcher =
                Patcher::new(|| Ok(Cursor::new(&patch[..])), Cursor::new(&old[..]), size).expect("a patch");
            let mut made = Vec::new();
            let mut before = 0;
            while patcher.step(&mut made, bytes).expect("enough space") {
                assert!((made.len() - before) as u64 <= bytes, "{} of {bytes}", made.len() - before);
                before = made.len();
            }
            assert_eq!(made, new);
        }
        // Entries that produce no bytes count toward the limit of a step as well.
        let nothing = std::iter::repeat_n([0; 3], 1_000).chain([[1_000, 0, 0]]);
        let patch = patch_of(nothing, 1_000);
        assert_eq!(apply_by(&old, &patch, 1_000, io::sink(), 240).expect("enough space"), 105);
    }

    /// An older version that counts the bytes read from it.
    struct Counted<'v> {
        version: Cursor<&'v [u8]>,
        read: &'v Cell<u64>,
    }

    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.version.read(buffer)?;
            self.read.set(self.read.get() + read as u64);
            Ok(read)
        }
    }

    impl Seek for Counted<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.version.seek(to)
        }
    }

    /// One-byte entries that are far apart do not make a step read more of the older version.
    #[test]
    fn each_step_reads_a_bounded_number_of_bytes() {
        const FAR: u64 = 30_000;
        let (old, read) = (vec![7; 40_000], Cell::new(0));
        let there_and_back = [[1, 0, FAR], [1, 0, (FAR + 2) | 1 << 63]];
        let patch = patch_of(there_and_back.into_iter().cycle().take(1_000), 1_000);
        let old = Counted { version: Cursor::new(&old), read: &read };
        let mut patcher = Patcher::new(|| Ok(Cursor::new(&patch[..])), old, 1_000).expect("a patch");
        let mut made = Vec::new();
        while patcher.step(&mut made, 250).expect("enough space") {
            assert!((1..=250).contains(&read.take()));
        }
        assert_eq!(made, [7; 1_000]);
    }

    /// An error of the writer, such as a full disk, does not make the patch invalid.
    #[test]
    fn writer_errors_are_distinguished_from_patch_errors() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        let is_of_writer = |patch: &[u8], mut writer: &mut dyn Write| {
            let patcher = Patcher::new(|| Ok(Cursor::new(patch)), Cursor::new(&old[..]), new.len() as u64);
            let failed = patcher.expect("a header").step(&mut writer, u64::MAX);
            failed.expect_err("the writer is too short").is_of_writer
        };
        let mut short = [0; 20_000];
        assert!(is_of_writer(&patch, &mut &mut short[..]));
        let buffered = &mut io::BufWriter::with_capacity(new.len(), &mut short[..]);
        assert!(is_of_writer(&patch, buffered), "the error appears when the buffer is flushed");
        assert!(!is_of_writer(&patch[..patch.len() / 2], &mut io::sink()));
    }

    /// The newer version may start with bytes from the end of the older one, so an entry may consist of a seek alone.
    #[test]
    fn patch_of_swapped_halves_is_applied() {
        let [old, _] = versions();
        let blocks: Vec<&[u8]> = old.chunks(20).collect();
        for new in
            [[&old[20_000..], &old[..20_000]].concat(), blocks.into_iter().rev().flatten().copied().collect()]
        {
            let patch = make(&old, &new).expect("a patch");
            let mut made = Vec::new();
            apply(&old, &patch, new.len() as u64, &mut made).expect("enough space");
            assert_eq!(made, new);
        }
    }

    /// Creates a patch with these entries. Its add and copy sections are zeros.
    fn patch_of(entries: impl Iterator<Item = [u64; 3]>, size: u64) -> Vec<u8> {
        let compress = |bytes: &mut dyn Read| {
            let mut part = Vec::new();
            let mut encoder = bzip2::read::BzEncoder::new(bytes, bzip2::Compression::best());
            encoder.read_to_end(&mut part).expect("enough memory");
            part
        };
        let control: Vec<u8> = entries.flatten().flat_map(u64::to_le_bytes).collect();
        let control = compress(&mut &control[..]);
        let zeros = compress(&mut io::repeat(0).take(size));
        let lengths = [control.len() as u64, zeros.len() as u64, size];
        let header = lengths.into_iter().flat_map(u64::to_le_bytes);
        b"BSDIFF40".iter().copied().chain(header).chain(control).chain(zeros.clone()).chain(zeros).collect()
    }

    #[test]
    fn patch_with_too_many_empty_entries_is_refused() {
        let old = [7; 1_000];
        let apply = |patch: &[u8]| apply(&old, patch, 1_000, io::sink()).map_err(|error| error.to_string());
        assert_eq!(apply(&patch_of([[0, 0, 5], [990, 10, 0]].into_iter(), 1_000)), Ok(()));
        let nothing = std::iter::repeat_n([0; 3], 2_000_000);
        let bomb = patch_of(nothing.clone(), 1_000);
        assert!(bomb.len() < 5_000, "48 MB in {} bytes", bomb.len());
        let too_many = Err("the patch has too many entries".to_owned());
        assert_eq!(apply(&bomb), too_many);
        // Entries after the last byte are not read.
        assert_eq!(apply(&patch_of([[1_000, 0, 0]].into_iter().chain(nothing), 1_000)), Ok(()));
        let another_size = Err("the patch does not produce a file of the expected size".to_owned());
        for entry in
            [[1_001, 0, 0], [0, 1_001, 0], [1 << 63 | 1, 0, 0], [500, 1 << 63 | 1, 0], [u64::MAX, 2, 0]]
        {
            assert_eq!(apply(&patch_of([entry].into_iter(), 1_000)), another_size, "{entry:?}");
        }
        assert!(apply(&patch_of([[999, 0, 0]].into_iter(), 1_000)).is_err(), "the file lacks a byte");
    }

    #[test]
    fn a_patch_that_reads_outside_the_older_version_is_refused() {
        let old = [7; 1_000];
        let apply = |entries: [[u64; 3]; 2]| {
            let mut made = Vec::new();
            apply(&old, &patch_of(entries.into_iter(), 1_000), 1_000, &mut made).map(|()| made)
        };
        let back = |bytes: u64| bytes | 1 << 63;
        assert_eq!(
            apply([[500, 0, back(500)], [500, 0, 0]]).expect("the patch reads within the older version"),
            old
        );
        assert_eq!(apply([[0, 500, 999], [1, 499, 0]]).expect("the patch reads the last byte")[500], 7);
        for entries in [
            [[500, 0, 1], [500, 0, 0]],
            [[500, 0, back(501)], [500, 0, 0]],
            [[500, 0, back(u64::MAX)], [500, 0, 0]],
            [[500, 0, i64::MAX as u64], [500, 0, 0]],
        ] {
            assert!(apply(entries).is_err(), "{entries:?}");
        }
    }

    #[test]
    fn overflowing_entry_lengths_are_refused() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        for (at, length) in [(8, u64::MAX - 40), (8, 1 << 63 | 1), (16, u64::MAX - 20), (16, 1 << 63 | 30)] {
            let mut changed = patch.clone();
            changed[at..at + 8].copy_from_slice(&length.to_le_bytes());
            assert!(apply(&old, &changed, new.len() as u64, io::sink()).is_err(), "{at} {length}");
        }
    }

    /// The output never exceeds the size of the file, whatever patch a sender provides.
    #[test]
    fn corrupted_patches_fail_or_stay_within_the_size() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        let mut random = 7_u32;
        let mut next = |below: usize| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) as usize % below
        };
        for _ in 0..2_000 {
            let mut changed = patch.clone();
            for _ in 0..=next(3) {
                // Half of the changes affect the header, which contains the lengths.
                let at = if next(2) == 0 { next(32) } else { next(patch.len()) };
                changed[at] ^= 1 << next(8);
            }
            changed.truncate(changed.len() - next(4));
            let mut made = Vec::new();
            let _ = apply(&old, &changed, new.len() as u64, &mut made);
            assert!(made.len() <= new.len());
        }
        for length in 0..40 {
            assert!(apply(&old, &patch[..length], new.len() as u64, io::sink()).is_err());
        }
    }
}

//! Patches that make a file from an older version, in the format of bsdiff 4.

use std::io::{self, BufRead, Cursor, Read, Write};

use bzip2::read::BzDecoder;
use qbsdiff::{Bsdiff, Bspatch};

/// The longest file that is patched: both versions and the patch are in memory while it is.
pub(super) const LONGEST: u64 = 128 * 1_024 * 1_024;

/// The length of an entry of the control part: bytes to add to those of the older version, bytes to copy, and how far to move
/// in the older version.
const ENTRY: usize = 24;

/// A lower bound of the bytes of the newer version that an entry of bsdiff makes on average: it begins another one only where
/// more than 8 bytes are the same elsewhere.
const BYTES_PER_ENTRY: u64 = 8;

/// How many entries more a patch may have, such as those at its ends, which may write nothing.
const FURTHER_ENTRIES: u64 = 1_024;

/// The patch between two versions.
pub(super) fn make(old: &[u8], new: &[u8]) -> io::Result<Vec<u8>> {
    let mut patch = Vec::new();
    Bsdiff::new(old, new).compare(Cursor::new(&mut patch))?;
    Ok(patch)
}

/// Writes the newer version, of so many bytes. A patch that makes more is an error.
pub(super) fn apply(old: &[u8], patch: &[u8], size: u64, new: impl Write) -> io::Result<()> {
    check_control(control_part(patch)?, size)?;
    let patcher = Bspatch::new(patch)?;
    if patcher.hint_target_size() != size {
        return Err(another_size());
    }
    let mut new = Limited { inner: new, room: size };
    patcher.apply(old, &mut new)?;
    new.flush()
}

/// The first part. The lengths of both parts that the header names are checked, since `Bspatch` adds them without a check for
/// overflow.
fn control_part(patch: &[u8]) -> io::Result<&[u8]> {
    let (header, parts) = patch.split_at_checked(32).ok_or(io::ErrorKind::UnexpectedEof)?;
    let [control, difference] = [8, 16].map(|at| number(header, at));
    let room = parts.len() as u64;
    match parts.split_at_checked(usize::try_from(control).unwrap_or(usize::MAX)) {
        Some((control, _)) if difference <= room => Ok(control),
        _ => Err(io::Error::other("the parts of the patch are longer than the patch")),
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Reads the control part before the patch is applied. Compressed, a few bytes can hold entries without end that write
/// nothing, and `Bspatch` would carry out all of them.
fn check_control(part: &[u8], size: u64) -> io::Result<()> {
    let mut entries = io::BufReader::new(BzDecoder::new(part));
    let (mut made, mut room) = (0_u64, size / BYTES_PER_ENTRY + FURTHER_ENTRIES);
    let mut entry = [0; ENTRY];
    while !entries.fill_buf()?.is_empty() {
        room = room.checked_sub(1).ok_or_else(|| io::Error::other("the patch has too many entries"))?;
        entries.read_exact(&mut entry)?;
        // A negative number has the highest bit, so it is more than any size.
        let [add, copy] = [0, 8].map(|at| number(&entry, at));
        let after = made.checked_add(add).and_then(|made| made.checked_add(copy));
        let after = after.filter(|after| *after <= size);
        made = after.ok_or_else(another_size)?;
    }
    if made == size { Ok(()) } else { Err(another_size()) }
}

fn another_size() -> io::Error {
    io::Error::other("the patch makes another size")
}

/// A writer that takes no more than so many bytes.
struct Limited<W> {
    inner: W,
    room: u64,
}

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len() as u64;
        self.room = self.room.checked_sub(length).ok_or(io::ErrorKind::WriteZero)?;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> [Vec<u8>; 2] {
        let old: Vec<u8> = (0..40_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        let new = [&old[..9_000], b"a change", &old[9_500..], b"and an end"].concat();
        [old, new]
    }

    #[test]
    fn a_patch_is_short_and_makes_the_newer_version() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        assert!(patch.len() < 1_000, "{}", patch.len());
        let mut made = Vec::new();
        apply(&old, &patch, new.len() as u64, &mut made).expect("it fits");
        assert_eq!(made, new);
        assert!(apply(&old, &patch, new.len() as u64 - 1, io::sink()).is_err());
    }

    /// The newer version may begin with bytes from elsewhere, so an entry may do nothing but move.
    #[test]
    fn versions_with_their_parts_exchanged_are_patched() {
        let [old, _] = versions();
        let blocks: Vec<&[u8]> = old.chunks(20).collect();
        for new in
            [[&old[20_000..], &old[..20_000]].concat(), blocks.into_iter().rev().flatten().copied().collect()]
        {
            let patch = make(&old, &new).expect("a patch");
            let mut made = Vec::new();
            apply(&old, &patch, new.len() as u64, &mut made).expect("it fits");
            assert_eq!(made, new);
        }
    }

    /// A patch of these entries, and of parts to add and to copy that are zeros.
    fn patch_of(entries: impl Iterator<Item = [u64; 3]>, size: u64) -> Vec<u8> {
        let compress = |bytes: &mut dyn Read| {
            let mut part = Vec::new();
            let mut encoder = bzip2::read::BzEncoder::new(bytes, bzip2::Compression::best());
            encoder.read_to_end(&mut part).expect("memory");
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
    fn entries_that_do_nothing_end_a_patch() {
        let old = [7; 1_000];
        let apply = |patch: &[u8]| apply(&old, patch, 1_000, io::sink()).map_err(|error| error.to_string());
        assert_eq!(apply(&patch_of([[0, 0, 5], [990, 10, 0]].into_iter(), 1_000)), Ok(()));
        let nothing = std::iter::repeat_n([0; 3], 2_000_000);
        let bomb = patch_of(nothing.clone(), 1_000);
        assert!(bomb.len() < 5_000, "48 MB in {} bytes", bomb.len());
        let too_many = Err("the patch has too many entries".to_owned());
        assert_eq!(apply(&bomb), too_many);
        assert_eq!(apply(&patch_of([[1_000, 0, 0]].into_iter().chain(nothing), 1_000)), too_many);
        let another_size = Err("the patch makes another size".to_owned());
        for entry in
            [[1_001, 0, 0], [0, 1_001, 0], [1 << 63 | 1, 0, 0], [500, 1 << 63 | 1, 0], [u64::MAX, 2, 0]]
        {
            assert_eq!(apply(&patch_of([entry].into_iter(), 1_000)), another_size, "{entry:?}");
        }
        assert_eq!(apply(&patch_of([[999, 0, 0]].into_iter(), 1_000)), another_size);
    }

    #[test]
    fn lengths_whose_sum_overflows_are_an_error() {
        let [old, new] = versions();
        let patch = make(&old, &new).expect("a patch");
        for (at, length) in [(8, u64::MAX - 40), (8, 1 << 63 | 1), (16, u64::MAX - 20), (16, 1 << 63 | 30)] {
            let mut changed = patch.clone();
            changed[at..at + 8].copy_from_slice(&length.to_le_bytes());
            assert!(apply(&old, &changed, new.len() as u64, io::sink()).is_err(), "{at} {length}");
        }
    }

    /// Whatever a sender says, what is made has no more bytes than it may.
    #[test]
    fn changed_patches_are_errors_or_make_other_bytes() {
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
                // The header has the lengths, so most changes are there.
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

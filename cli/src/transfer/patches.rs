//! Patches that make a file from an older version, in the format of bsdiff 4.

use std::io::{self, Cursor, Write};

use qbsdiff::{Bsdiff, Bspatch};

/// The longest file that is patched: both versions and the patch are in memory while it is.
pub(super) const LONGEST: u64 = 128 * 1_024 * 1_024;

/// The patch between two versions.
pub(super) fn make(old: &[u8], new: &[u8]) -> io::Result<Vec<u8>> {
    let mut patch = Vec::new();
    Bsdiff::new(old, new).compare(Cursor::new(&mut patch))?;
    Ok(patch)
}

/// Writes the newer version, of so many bytes. A patch that makes more is an error.
pub(super) fn apply(old: &[u8], patch: &[u8], size: u64, new: impl Write) -> io::Result<()> {
    check_lengths(patch)?;
    let patcher = Bspatch::new(patch)?;
    if patcher.hint_target_size() != size {
        return Err(io::Error::other("the patch makes another size"));
    }
    let mut new = Limited { inner: new, room: size };
    patcher.apply(old, &mut new)?;
    new.flush()
}

/// Checks the lengths of the first two parts, which `Bspatch` adds without a check for overflow.
fn check_lengths(patch: &[u8]) -> io::Result<()> {
    let (header, parts) = patch.split_at_checked(32).ok_or(io::ErrorKind::UnexpectedEof)?;
    let length =
        |at: usize| header[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    let room = parts.len() as u64;
    if length(8) > room || length(16) > room {
        return Err(io::Error::other("the parts of the patch are longer than the patch"));
    }
    Ok(())
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

//! Strings, plain and compressed with RakNet's Huffman code for English text.
//!
//! Writer and reader must build identical trees, so the frequencies and the order of ties matter. Bytes that do not
//! occur in the sample text have the weight 1. The two lightest trees are joined until one is left, with the lighter
//! one as the branch for a 0 bit. Of trees with equal weights, the one inserted last is taken first. The tree is built
//! at compile time.

use super::{BitStreamReader, BitStreamWriter};
use crate::codec::bits::{BitReader, Msb};
use crate::cursor::WireError;

impl<'a> BitStreamReader<'a> {
    /// Takes a string of at most 65,535 bytes, without copying it.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bytes are missing.
    pub fn string(&mut self) -> Result<&'a [u8], WireError> {
        let count = self.read::<u16>()?;
        self.aligned_bytes(count.into())
    }

    /// Decodes a compressed string into `out` and returns it.
    ///
    /// Bits after the last whole code are padding and are ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if bits are missing, [`WireError::BadLength`] if the string is longer than `out` (C++
    /// RakNet would truncate it).
    pub fn compressed_string<'o>(&mut self, out: &'o mut [u8]) -> Result<&'o [u8], WireError> {
        let count = usize::try_from(self.read_compressed::<u32>()?).map_err(|_| WireError::Truncated)?;
        if count > self.bits.remaining() {
            return Err(WireError::Truncated);
        }
        let end = self.bits.remaining() - count;
        let mut length = 0;
        while let Some(byte) = next_byte(&mut self.bits, end)? {
            *out.get_mut(length).ok_or(WireError::BadLength)? = byte;
            length += 1;
        }
        Ok(out.get(..length).unwrap_or_default())
    }
}

/// Returns the next byte of a compressed string, or `None` at the padding. The string ends when `end` bits remain in
/// `bits`.
fn next_byte(bits: &mut BitReader<'_, Msb>, end: usize) -> Result<Option<u8>, WireError> {
    let mut walk = Walk::START;
    while bits.remaining() > end {
        match walk.step(bits.bit()?) {
            Step::Byte(byte) => return Ok(Some(byte)),
            Step::Inside(further) => walk = further,
        }
    }
    Ok(None)
}

impl BitStreamWriter<'_> {
    /// Appends a string.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if it has more than 65,535 bytes, [`WireError::NoRoom`] if the buffer is full.
    pub fn string(&mut self, string: &[u8]) -> Result<(), WireError> {
        let count = u16::try_from(string.len()).map_err(|_| WireError::BadLength)?;
        self.write(count)?;
        self.aligned_bytes(string)
    }

    /// Appends a compressed string: 3 bits for a space, up to 16 bits for bytes that are rare in English text.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if it has 2^28 bytes or more, [`WireError::NoRoom`] if the buffer is full.
    pub fn compressed_string(&mut self, string: &[u8]) -> Result<(), WireError> {
        if string.len() >= 1 << 28 {
            return Err(WireError::BadLength);
        }
        let plain: u32 = string.iter().map(|byte| u32::from(code(*byte).length)).sum();
        // Pads to whole bytes with the prefix of a longer code, so that no reader decodes a byte from the padding.
        let padding = plain.next_multiple_of(8) - plain;
        self.write_compressed(plain + padding)?;
        for byte in string {
            let code = code(*byte);
            self.bits.bits(code.bits.into(), code.length.into())?;
        }
        self.bits.bits(self::padding(padding), padding)
    }
}

/// The code of a byte: the low `length` bits, 3 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code {
    bits: u16,
    length: u8,
}

/// A position in the tree: an inner node.
#[derive(Clone, Copy, Debug)]
struct Walk(u16);

/// The node reached by the next bit.
#[derive(Clone, Copy, Debug)]
enum Step {
    Byte(u8),
    Inside(Walk),
}

impl Walk {
    /// The root, where every code begins.
    const START: Self = Self(ROOT);

    fn step(self, bit: bool) -> Step {
        let [zero, one] = *TREE.get(usize::from(self.0) - BYTES).unwrap_or(&[0, 0]);
        let node = if bit { one } else { zero };
        u8::try_from(node).map_or(Step::Inside(Self(node)), Step::Byte)
    }
}

/// Returns the code of a byte.
fn code(byte: u8) -> Code {
    CODES.get(usize::from(byte)).copied().unwrap_or(Code { bits: 0, length: 0 })
}

/// Returns `count` bits, at most 7, that contain no complete code: a prefix of the first code with more bits.
fn padding(count: u32) -> u64 {
    let longer = CODES.iter().find(|code| u32::from(code.length) > count);
    longer.map_or(0, |code| u64::from(code.bits) >> (u32::from(code.length) - count))
}

const BYTES: usize = 256;
/// The number of nodes. Nodes below 256 are leaves, one per byte; inner nodes are numbered in the order of creation.
const NODES: usize = 2 * BYTES - 1;
const ROOT: u16 = (NODES - 1) as u16;

/// The frequencies of the printable characters from the space on in RakNet's sample text.
const PRINTABLE: [u32; 94] = [
    11084, 58, 63, 1, 0, 31, 0, 317, 64, 64, 44, 0, 695, 62, 980, 266, // space to /
    69, 67, 56, 7, 73, 3, 14, 2, 69, 1, 167, 9, 1, 2, 25, 94, // 0 to ?
    0, 195, 139, 34, 96, 48, 103, 56, 125, 653, 21, 5, 23, 64, 85, 44, // @ to O
    34, 7, 92, 76, 147, 12, 14, 57, 15, 39, 15, 1, 1, 1, 2, 3, // P to _
    0, 3611, 845, 1077, 1884, 5870, 841, 1057, 2501, 3212, 164, 531, 2019, 1330, 3056, 4037, // ` to o
    848, 47, 2586, 2919, 4771, 1707, 535, 1106, 152, 1243, 100, 0, 2, 0, // p to }
];

/// Returns the frequency of a byte. `~` has a match arm like the line ends, because the table ends before it.
const fn frequency(byte: usize) -> u32 {
    match byte {
        0x0A => 722,
        0x0D => 2,
        0x7E => 10,
        0x20..0x7E => at(&PRINTABLE, byte - 0x20, 0),
        _ => 0,
    }
}

/// Returns the frequency of a byte, for the reference implementation in the tests.
#[cfg(test)]
pub(super) const fn counted(byte: u8) -> u32 {
    frequency(byte as usize)
}

static TREE: [[u16; 2]; BYTES - 1] = BUILT;
static CODES: [Code; BYTES] = codes(&BUILT);
const BUILT: [[u16; 2]; BYTES - 1] = build();

/// A tree to be joined: its root and its weight.
type Tree = (u16, u32);

/// The trees to be joined, heaviest first.
struct Waiting {
    trees: [Tree; BYTES],
    count: usize,
}

impl Waiting {
    const fn push(&mut self, node: u16, weight: u32) {
        let mut place = self.count;
        while place > 0 && at(&self.trees, place - 1, (0, 0)).1 < weight {
            let lighter = at(&self.trees, place - 1, (0, 0));
            put(&mut self.trees, place, lighter);
            place -= 1;
        }
        put(&mut self.trees, place, (node, weight));
        self.count += 1;
    }

    const fn pop(&mut self) -> Tree {
        self.count -= 1;
        at(&self.trees, self.count, (0, 0))
    }
}

const fn build() -> [[u16; 2]; BYTES - 1] {
    let mut waiting = Waiting { trees: [(0, 0); BYTES], count: 0 };
    let mut byte = 0;
    while byte < BYTES {
        let counted = frequency(byte);
        waiting.push(byte as u16, if counted == 0 { 1 } else { counted });
        byte += 1;
    }
    let mut tree = [[0; 2]; BYTES - 1];
    let mut made = 0;
    while waiting.count > 1 {
        let (lighter, first) = waiting.pop();
        let (heavier, second) = waiting.pop();
        put(&mut tree, made, [lighter, heavier]);
        waiting.push((BYTES + made) as u16, first + second);
        made += 1;
    }
    tree
}

/// Returns the codes of all leaves, computed from the root.
const fn codes(tree: &[[u16; 2]; BYTES - 1]) -> [Code; BYTES] {
    let none = Code { bits: 0, length: 0 };
    let mut all = [none; NODES];
    let mut made = BYTES - 1;
    while made > 0 {
        made -= 1;
        let parent = at(&all, BYTES + made, none);
        let [zero, one] = at(tree, made, [0, 0]);
        let length = parent.length + 1;
        put(&mut all, zero as usize, Code { bits: parent.bits << 1, length });
        put(&mut all, one as usize, Code { bits: parent.bits << 1 | 1, length });
    }
    let mut leaves = [none; BYTES];
    let mut byte = 0;
    while byte < BYTES {
        put(&mut leaves, byte, at(&all, byte, none));
        byte += 1;
    }
    leaves
}

const fn at<T: Copy>(slice: &[T], index: usize, otherwise: T) -> T {
    match slice.split_at_checked(index) {
        Some((_, [value, ..])) => *value,
        Some((_, [])) | None => otherwise,
    }
}

const fn put<T: Copy>(slice: &mut [T], index: usize, value: T) {
    if let Some((_, [place, ..])) = slice.split_at_mut_checked(index) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(byte: u8) -> (u16, u8) {
        (code(byte).bits, code(byte).length)
    }

    #[test]
    fn huffman_codes_match_known_codes() {
        assert_eq!(bits(b'h'), (0b11000, 5));
        assert_eq!(bits(b'e'), (0b000, 3));
        assert_eq!(bits(b'l'), (0b10010, 5));
        assert_eq!(bits(b'o'), (0b1000, 4));
        // This code depends only on the order of ties.
        assert_eq!(bits(0), (0b0101_0111_1000_1101, 16));
        assert_eq!(CODES.iter().map(|code| code.length).max(), Some(16));
    }

    #[test]
    fn every_code_decodes_to_its_byte() {
        for byte in 0..=u8::MAX {
            let code = code(byte);
            let mut walk = Walk::START;
            for place in (0..code.length).rev() {
                match walk.step(code.bits >> place & 1 == 1) {
                    Step::Inside(further) => walk = further,
                    Step::Byte(found) => assert_eq!((found, place), (byte, 0)),
                }
            }
        }
    }
}

//! Numbers of any width, packed without gaps into bytes.
//!
//! [`BitReader`] and [`BitWriter`] work on lent buffers and know widths and positions, no protocol. Which end of a byte
//! is used first is a type: [`Msb`] or [`Lsb`].
//!
//! | order | first bit in a byte | a number of several bits |
//! |---|---|---|
//! | [`Msb`] | the most significant, mask 80 | its most significant bit first; whole bytes read as big endian |
//! | [`Lsb`] | the least significant, mask 01 | its least significant bit first; whole bytes read as little endian |
//!
//! RakNet's bit stream is [`Msb`] (docs/raknet.md#bit-streams, [`codec::bitstream`](crate::codec::bitstream));
//! encodings that push the least significant bit first are [`Lsb`].

mod reader;
mod writer;

pub use reader::BitReader;
pub use writer::BitWriter;

use sealed::Sealed;

/// The order in which bits fill a byte: [`Msb`] or [`Lsb`], and no other.
///
/// ```
/// use rakwire::codec::bits::{BitReader, Order};
///
/// fn first_nibble<O: Order>(bytes: &[u8]) -> Option<u64> {
///     BitReader::<O>::new(bytes).bits(4).ok()
/// }
/// assert_eq!(first_nibble::<rakwire::codec::bits::Msb>(&[0xA5]), Some(0xA));
/// assert_eq!(first_nibble::<rakwire::codec::bits::Lsb>(&[0xA5]), Some(0x5));
/// ```
pub trait Order: Sealed {}

/// The most significant bit of each byte first.
///
/// ```
/// use rakwire::codec::bits::{BitReader, Msb};
///
/// assert_eq!(BitReader::<Msb>::new(&[0x80]).bit(), Ok(true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Msb {}

/// The least significant bit of each byte first.
///
/// ```
/// use rakwire::codec::bits::{BitReader, Lsb};
///
/// assert_eq!(BitReader::<Lsb>::new(&[0x80]).bit(), Ok(false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lsb {}

impl Order for Msb {}
impl Order for Lsb {}

/// Bits that a number of eight bytes can hold whatever the offset of its first bit is, in whole bytes.
const CHUNK_BYTES: usize = 7;
/// The bits of the first half of a number that does not fit into eight bytes at its offset.
const HALF: u32 = 32;

mod sealed {
    /// Arithmetic on a window: eight bytes as a number in which a bit further on is worth less (Msb) or more (Lsb).
    ///
    /// `skip` is below 64, `count` 1 to 64, and their sum at most 64 but in `place`.
    #[expect(unnameable_types, reason = "without a name nobody else can implement it")]
    pub trait Sealed {
        fn load(bytes: [u8; 8]) -> u64;
        fn store(window: u64) -> [u8; 8];
        /// The number of `count` bits that begins `skip` bits into the window.
        fn extract(window: u64, skip: u32, count: u32) -> u64;
        /// The window that is zero but for `number`, which has `count` bits; those that do not fit are left out.
        fn place(number: u64, skip: u32, count: u32) -> u64;
        /// One number from its first 32 bits and the `count` bits after them, at most 32.
        fn join(first: u64, second: u64, count: u32) -> u64;
        /// The window that begins with the last `over` bits of a number of `count`, at least one.
        fn rest(number: u64, count: u32, over: u32) -> u64;
    }
}

impl Sealed for Msb {
    #[inline]
    fn load(bytes: [u8; 8]) -> u64 {
        u64::from_be_bytes(bytes)
    }

    #[inline]
    fn store(window: u64) -> [u8; 8] {
        window.to_be_bytes()
    }

    #[inline]
    fn extract(window: u64, skip: u32, count: u32) -> u64 {
        (window << skip) >> (64 - count)
    }

    #[inline]
    fn place(number: u64, skip: u32, count: u32) -> u64 {
        (number << (64 - count)) >> skip
    }

    #[inline]
    fn join(first: u64, second: u64, count: u32) -> u64 {
        (first << count) | second
    }

    #[inline]
    fn rest(number: u64, _count: u32, over: u32) -> u64 {
        number << (64 - over)
    }
}

impl Sealed for Lsb {
    #[inline]
    fn load(bytes: [u8; 8]) -> u64 {
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn store(window: u64) -> [u8; 8] {
        window.to_le_bytes()
    }

    #[inline]
    fn extract(window: u64, skip: u32, count: u32) -> u64 {
        low(window >> skip, count)
    }

    #[inline]
    fn place(number: u64, skip: u32, _count: u32) -> u64 {
        number << skip
    }

    #[inline]
    fn join(first: u64, second: u64, _count: u32) -> u64 {
        first | (second << HALF)
    }

    #[inline]
    fn rest(number: u64, count: u32, over: u32) -> u64 {
        number >> (count - over)
    }
}

/// The low `count` bits of `number`, 1 to 64.
#[inline]
const fn low(number: u64, count: u32) -> u64 {
    number & (u64::MAX >> (64 - count))
}

/// How many bits lie before position `at` in its byte.
#[inline]
const fn offset(at: usize) -> u32 {
    (at & 7) as u32
}

/// How much of a buffer can be addressed by bit: all of it, except where bits outnumber `usize`.
const MAX_BYTES: usize = usize::MAX / 8;

#[cfg(test)]
mod tests;

//! Numbers of any bit width, packed without gaps.
//!
//! [`BitReader`] and [`BitWriter`] work on borrowed buffers and are independent of protocols. A type parameter
//! selects the bit of each byte that is used first: [`Msb`] or [`Lsb`].
//!
//! | order | first bit in a byte | a number of several bits |
//! |---|---|---|
//! | [`Msb`] | the most significant, mask 0x80 | its most significant bit first; whole bytes read as big endian |
//! | [`Lsb`] | the least significant, mask 0x01 | its least significant bit first; whole bytes read as little endian |
//!
//! RakNet's bit stream is [`Msb`] (docs/raknet.md#bit-streams, [`codec::bitstream`](crate::codec::bitstream)). Rabbit
//! is [`Lsb`] ([`codec::rabbit`](crate::codec::rabbit)).

use core::marker::PhantomData;

use sealed::Sealed;

use crate::cursor::WireError;

/// The order in which bits fill a byte: [`Msb`] or [`Lsb`]. The trait is sealed.
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

/// The number of whole bytes that fit into a 64-bit window at any bit offset.
const CHUNK_BYTES: usize = 7;
/// The number of bits that are read first if a number does not fit into the window at its offset.
const HALF: u32 = 32;

mod sealed {
    /// Arithmetic on a window: eight bytes as a number. Later bits are less significant (Msb) or more significant
    /// (Lsb).
    ///
    /// `skip` is below 64 and `count` is 1 to 64. Except in `place`, their sum is at most 64.
    #[expect(unnameable_types, reason = "without a path to its name no other crate can implement it")]
    pub trait Sealed {
        fn load(bytes: [u8; 8]) -> u64;
        fn store(window: u64) -> [u8; 8];
        /// Returns the number in the `count` bits after the first `skip` bits of the window.
        fn extract(window: u64, skip: u32, count: u32) -> u64;
        /// Returns a window that contains `number` in `count` bits after the first `skip`, and zeros elsewhere.
        ///
        /// Bits that do not fit are dropped.
        fn place(number: u64, skip: u32, count: u32) -> u64;
        /// Joins the first 32 bits of a number and its remaining `count` bits, at most 32.
        fn join(first: u64, second: u64, count: u32) -> u64;
        /// Returns a window that begins with the last `over` bits of a number of `count` bits; `over` is at least 1.
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

/// Returns the low `count` bits of `number`, 1 to 64.
#[inline]
const fn low(number: u64, count: u32) -> u64 {
    number & (u64::MAX >> (64 - count))
}

/// Returns the number of bits before position `at` within its byte.
#[inline]
const fn offset(at: usize) -> u32 {
    (at & 7) as u32
}

/// The length of the longest buffer in which every bit position fits into `usize`.
const MAX_BYTES: usize = usize::MAX / 8;

/// Reads bits from a byte slice, front to back.
///
/// A failed read consumes nothing.
///
/// ```
/// use rakwire::codec::bits::{BitReader, Msb};
/// use rakwire::wire::WireError;
///
/// let mut reader = BitReader::<Msb>::new(&[0b1010_0000, 0xFF]);
/// assert_eq!(reader.bits(3), Ok(0b101));
/// assert_eq!(reader.bits(6), Ok(1));
/// assert_eq!(reader.remaining(), 7);
/// assert_eq!(reader.bits(8), Err(WireError::Truncated));
/// ```
#[derive(Clone, Debug)]
pub struct BitReader<'a, O: Order> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    order: PhantomData<O>,
}

impl<'a, O: Order> BitReader<'a, O> {
    /// Creates a reader of all bits in `bytes`. Bytes beyond `usize::MAX / 8` are ignored.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, end: bytes.len().min(MAX_BYTES) * 8, order: PhantomData }
    }

    /// Creates a reader of the first `count` bits of `bytes`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if `bytes` has fewer than `count` bits.
    pub fn with_bits(bytes: &'a [u8], count: usize) -> Result<Self, WireError> {
        let all = Self::new(bytes);
        if count > all.end {
            return Err(WireError::Truncated);
        }
        Ok(Self { end: count, ..all })
    }

    /// Returns the number of bits consumed.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns the number of remaining bits.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// Takes one bit.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if no bit remains.
    #[inline]
    pub fn bit(&mut self) -> Result<bool, WireError> {
        Ok(self.bits(1)? != 0)
    }

    /// Takes a number of `count` bits, 0 to 64. With `count` 0 the number is 0.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if `count` exceeds 64, [`WireError::Truncated`] if fewer bits remain.
    #[inline(always)]
    pub fn bits(&mut self, count: u32) -> Result<u64, WireError> {
        if count > 64 {
            return Err(WireError::BadLength);
        }
        self.check(count as usize)?;
        Ok(if count == 0 {
            0
        } else if offset(self.at) + count <= 64 {
            self.chunk(count)
        } else {
            let first = self.chunk(HALF);
            let second = self.chunk(count - HALF);
            O::join(first, second, count - HALF)
        })
    }

    /// Fills `out` with bytes, from any bit position.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer bytes remain; `out` is then unchanged.
    pub fn bytes(&mut self, out: &mut [u8]) -> Result<(), WireError> {
        self.check(out.len().checked_mul(8).ok_or(WireError::Truncated)?)?;
        if offset(self.at) == 0 {
            out.copy_from_slice(self.aligned_bytes(out.len())?);
            return Ok(());
        }
        for chunk in out.chunks_mut(CHUNK_BYTES) {
            let count = bits_of(chunk);
            let bytes = O::store(O::place(self.chunk(count), 0, count));
            chunk.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    /// Skips to the next byte boundary, or to the end if that comes first. It does nothing at a boundary.
    pub fn align(&mut self) {
        self.at = self.at.next_multiple_of(8).min(self.end);
    }

    /// Skips to the next byte boundary and takes `count` bytes without copying them.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer bytes remain after the boundary; the position is then unchanged.
    pub fn aligned_bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let before = self.at;
        self.align();
        let bits = count.checked_mul(8).ok_or(WireError::Truncated);
        let taken = bits.and_then(|bits| {
            self.check(bits)?;
            let rest = self.bytes.get(self.at / 8..).ok_or(WireError::Truncated)?;
            let bytes = rest.get(..count).ok_or(WireError::Truncated)?;
            self.at += bits;
            Ok(bytes)
        });
        if taken.is_err() {
            self.at = before;
        }
        taken
    }

    /// Skips `count` bits.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if fewer bits remain.
    #[inline(always)]
    pub fn skip(&mut self, count: usize) -> Result<(), WireError> {
        self.check(count)?;
        self.at += count;
        Ok(())
    }

    #[inline(always)]
    fn check(&self, count: usize) -> Result<(), WireError> {
        if count > self.remaining() { Err(WireError::Truncated) } else { Ok(()) }
    }

    /// Takes 1 to 64 bits that fit into the window. Precondition: that many bits remain.
    #[inline(always)]
    fn chunk(&mut self, count: u32) -> u64 {
        let number = O::extract(self.window(), offset(self.at), count);
        self.at += count as usize;
        number
    }

    /// Returns the eight bytes that start with the byte of the next bit, padded with zeros.
    #[inline(always)]
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or(&[]);
        let bytes = rest.first_chunk().copied().unwrap_or_else(|| padded(rest));
        O::load(bytes)
    }
}

impl BitReader<'_, Lsb> {
    /// Returns at least the next 57 bits without taking them; bits after the end are unspecified.
    #[inline(always)]
    pub(crate) fn peek(&self) -> u64 {
        self.window() >> offset(self.at)
    }
}

/// Returns the number of bits in a chunk of at most seven bytes.
const fn bits_of(chunk: &[u8]) -> u32 {
    (chunk.len() as u32) * 8
}

/// Returns the first eight bytes, padded with zeros.
fn padded(bytes: &[u8]) -> [u8; 8] {
    let mut eight = [0; 8];
    eight.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    eight
}

/// The number of bits in a window.
const WINDOW: usize = u64::BITS as usize;

/// Writes bits into a byte slice, front to back.
///
/// The previous contents of the buffer are ignored. A failed write writes nothing. Call [`finish`](Self::finish) to
/// store the last bits.
///
/// ```
/// use rakwire::codec::bits::{BitWriter, Lsb, Msb};
///
/// let mut buffer = [0xEE; 2];
/// let mut writer = BitWriter::<Msb>::new(&mut buffer);
/// writer.bits(0b101, 3)?;
/// writer.bits(0x3F, 6)?;
/// assert_eq!(writer.finish(), [0b1011_1111, 0b1000_0000]);
///
/// let mut writer = BitWriter::<Lsb>::new(&mut buffer);
/// writer.bits(0b101, 3)?;
/// writer.bits(0x3F, 6)?;
/// assert_eq!(writer.finish(), [0b1111_1101, 0b0000_0001]);
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct BitWriter<'b, O: Order> {
    buffer: &'b mut [u8],
    at: usize,
    end: usize,
    /// The bits since the last multiple of 64 that are not stored yet; the remaining bits are zero.
    window: u64,
    order: PhantomData<O>,
}

impl<'b, O: Order> BitWriter<'b, O> {
    /// Creates a writer at the start of `buffer`. Bytes beyond `usize::MAX / 8` are not used.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        let end = buffer.len().min(MAX_BYTES) * 8;
        Self { buffer, at: 0, end, window: 0, order: PhantomData }
    }

    /// Returns the number of bits written.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns the number of bits left in the buffer.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.end - self.at
    }

    /// Returns the written bytes; the unused bits of the last byte are zero.
    #[must_use]
    pub fn finish(mut self) -> &'b [u8] {
        self.store_begun();
        self.buffer.get(..self.at.div_ceil(8)).unwrap_or(&[])
    }

    /// Appends one bit.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is full.
    #[inline]
    pub fn bit(&mut self, bit: bool) -> Result<(), WireError> {
        self.bits(bit.into(), 1)
    }

    /// Appends the low `count` bits of `number`; `count` is 0 to 64.
    ///
    /// # Errors
    /// [`WireError::BadLength`] if `count` exceeds 64, [`WireError::NoRoom`] if the bits do not fit.
    #[inline]
    pub fn bits(&mut self, number: u64, count: u32) -> Result<(), WireError> {
        if count > 64 {
            return Err(WireError::BadLength);
        }
        self.check(count as usize)?;
        if count > 0 {
            self.push(low(number, count), count);
        }
        Ok(())
    }

    /// Appends whole bytes, at any bit position.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the bytes do not fit.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let bits = bytes.len().checked_mul(8).ok_or(WireError::NoRoom)?;
        self.check(bits)?;
        if offset(self.at) != 0 {
            for chunk in bytes.chunks(CHUNK_BYTES) {
                let count = bits_of(chunk);
                self.push(O::extract(O::load(padded(chunk)), 0, count), count);
            }
            return Ok(());
        }
        self.store_begun();
        let rest = self.buffer.get_mut(self.at / 8..).ok_or(WireError::NoRoom)?;
        rest.get_mut(..bytes.len()).ok_or(WireError::NoRoom)?.copy_from_slice(bytes);
        self.at += bits;
        self.window = O::load(padded(self.buffer.get(self.begun()..self.at / 8).unwrap_or_default()));
        Ok(())
    }

    /// Fills the current byte with zeros. It does nothing at a byte boundary.
    pub fn align(&mut self) {
        let count = self.at.wrapping_neg() as u32 % 8;
        if count > 0 {
            self.push(0, count);
        }
    }

    #[inline]
    fn check(&self, count: usize) -> Result<(), WireError> {
        if count > self.room() { Err(WireError::NoRoom) } else { Ok(()) }
    }

    /// Appends a number of 1 to 64 bits. Precondition: it fits.
    #[inline(always)]
    fn push(&mut self, number: u64, count: u32) {
        let held = (self.at % WINDOW) as u32;
        self.window |= O::place(number, held, count);
        if let Some(over) = (held + count).checked_sub(u64::BITS) {
            self.store_window();
            self.window = if over == 0 { 0 } else { O::rest(number, count, over) };
        }
        self.at += count as usize;
    }

    /// Returns the index of the window's first byte in the buffer.
    #[inline]
    const fn begun(&self) -> usize {
        self.at / WINDOW * 8
    }

    #[inline]
    fn store_window(&mut self) {
        let room = self.buffer.get_mut(self.begun()..).unwrap_or_default();
        if let Some(eight) = room.first_chunk_mut() {
            *eight = O::store(self.window);
        }
    }

    /// Stores the bytes of the window that contain written bits.
    fn store_begun(&mut self) {
        let room = self.buffer.get_mut(self.begun()..self.at.div_ceil(8)).unwrap_or_default();
        room.iter_mut().zip(O::store(self.window)).for_each(|(to, from)| *to = from);
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::cursor::WireError;

    /// A value that is written and must be read back.
    #[derive(Clone, Debug)]
    enum Piece {
        Bits(u64, u32),
        Bytes(Vec<u8>),
        Align,
    }

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let piece = prop_oneof![
            4 => (any::<u64>(), 0..=64_u32).prop_map(|(number, count)| Piece::Bits(number, count)),
            2 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Piece::Bytes),
            1 => Just(Piece::Align),
        ];
        proptest::collection::vec(piece, 0..if cfg!(miri) { 4 } else { 30 })
    }

    fn masked(number: u64, count: u32) -> u64 {
        if count == 0 { 0 } else { low(number, count) }
    }

    /// A reference implementation: a vector of bits.
    fn model(pieces: &[Piece], msb: bool) -> Vec<bool> {
        let mut bits = Vec::new();
        let push = |bits: &mut Vec<bool>, number: u64, count: u32| {
            let range: Vec<u32> = if msb { (0..count).rev().collect() } else { (0..count).collect() };
            bits.extend(range.into_iter().map(|bit| number >> bit & 1 == 1));
        };
        for piece in pieces {
            match piece {
                Piece::Bits(number, count) => push(&mut bits, *number, *count),
                Piece::Bytes(bytes) => bytes.iter().for_each(|byte| push(&mut bits, (*byte).into(), 8)),
                Piece::Align => bits.resize(bits.len().next_multiple_of(8), false),
            }
        }
        bits
    }

    fn pack(bits: &[bool], msb: bool) -> Vec<u8> {
        let mut bytes = vec![0; bits.len().div_ceil(8)];
        for (index, bit) in bits.iter().enumerate() {
            let shift = if msb { 7 - index % 8 } else { index % 8 };
            bytes[index / 8] |= u8::from(*bit) << shift;
        }
        bytes
    }

    fn write_all<O: Order>(pieces: &[Piece], writer: &mut BitWriter<'_, O>) -> Result<(), WireError> {
        pieces.iter().try_for_each(|piece| match piece {
            Piece::Bits(number, count) => writer.bits(*number, *count),
            Piece::Bytes(bytes) => writer.bytes(bytes),
            Piece::Align => {
                writer.align();
                Ok(())
            }
        })
    }

    fn read_all<O: Order>(pieces: &[Piece], reader: &mut BitReader<'_, O>) -> Result<(), WireError> {
        for piece in pieces {
            match piece {
                Piece::Bits(number, count) => assert_eq!(reader.bits(*count)?, masked(*number, *count)),
                Piece::Bytes(bytes) => {
                    let mut out = vec![0; bytes.len()];
                    reader.bytes(&mut out)?;
                    assert_eq!(&out, bytes);
                }
                Piece::Align => reader.align(),
            }
        }
        Ok(())
    }

    fn check<O: Order>(pieces: &[Piece], msb: bool) {
        let bits = model(pieces, msb);
        let expected = pack(&bits, msb);
        let mut buffer = vec![0xEE; expected.len()];
        let mut writer = BitWriter::<O>::new(&mut buffer);
        write_all(pieces, &mut writer).expect("the buffer is as long as the model");
        assert_eq!(writer.position(), bits.len());
        assert_eq!(writer.finish(), expected);

        let mut reader = BitReader::<O>::with_bits(&expected, bits.len()).expect("bits within the bytes");
        read_all(pieces, &mut reader).expect("all bits are read");
        assert_eq!((reader.position(), reader.remaining()), (bits.len(), 0));

        let last_byte = bits.len().saturating_sub(1) / 8;
        if let Some(short) = buffer.get_mut(..last_byte) {
            let written = write_all(pieces, &mut BitWriter::<O>::new(short));
            assert_eq!(written.is_err(), bits.len() > last_byte * 8);
        }
        let step = if cfg!(miri) { 500 } else { 1 };
        for length in (0..bits.len()).step_by(step) {
            let mut reader = BitReader::<O>::with_bits(&expected, length).expect("bits within the bytes");
            // Reading may still succeed, because only padding may have been cut off.
            let _ = read_all(pieces, &mut reader);
            assert!(reader.position() <= length);
        }
    }

    /// Miri is about a thousand times slower than native code.
    const CASES: u32 = if cfg!(miri) { 2 } else { 128 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn both_bit_orders_agree_with_the_reference(pieces in pieces()) {
            check::<Msb>(&pieces, true);
            check::<Lsb>(&pieces, false);
        }

        #[test]
        fn a_failed_read_consumes_nothing(bytes: Vec<u8>, start in 0..64_usize, count in 0..200_usize) {
            let mut reader = BitReader::<Msb>::new(&bytes);
            if reader.skip(start).is_ok() {
                let mut out = vec![7; count];
                if reader.bytes(&mut out).is_err() {
                    prop_assert_eq!(reader.position(), start);
                    prop_assert!(out.iter().all(|byte| *byte == 7));
                }
                let before = reader.position();
                if reader.aligned_bytes(count).is_err() {
                    prop_assert_eq!(reader.position(), before);
                }
            }
        }
    }

    #[test]
    fn lsb_first_numbers_match_the_example_of_the_game_protocol() {
        let mut buffer = [0; 2];
        let mut writer = BitWriter::<Lsb>::new(&mut buffer);
        for (number, count) in [(15, 5), (81, 7), (1, 2)] {
            writer.bits(number, count).expect("14 bits fit");
        }
        assert_eq!(writer.finish(), [0x2F, 0x1A]);
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_refused() {
        let mut buffer = [0; 16];
        assert_eq!(BitWriter::<Msb>::new(&mut buffer).bits(0, 65), Err(WireError::BadLength));
        assert_eq!(BitReader::<Msb>::new(&buffer).bits(65), Err(WireError::BadLength));
    }

    #[test]
    fn align_stops_at_the_end_of_the_bits() {
        let mut reader = BitReader::<Msb>::with_bits(&[0xFF; 8], 57).expect("fewer than 64 bits");
        reader.skip(57).expect("57 bits");
        reader.align();
        assert_eq!(reader.remaining(), 0);
        assert_eq!(reader.aligned_bytes(0), Ok(&[][..]));
        assert_eq!(reader.aligned_bytes(1), Err(WireError::Truncated));
        assert!(BitReader::<Msb>::with_bits(&[0], 9).is_err());
    }
}

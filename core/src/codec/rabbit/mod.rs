//! Rabbit, the bit-packed encoding of the Game Protocol (docs/rabbit.md).
//!
//! Numbers are written least significant bit first, and bits fill bytes from the least significant one. Nothing is
//! aligned or self-describing; zeros pad the last byte.
//!
//! | type | bits |
//! |---|---|
//! | `bool` | 1 |
//! | a raw width: [`Writer::bits`], `#[pack(bits = …)]` | 1 to 64 |
//! | `u8` | 8 |
//! | `u16`, `u32`, `u64`, `u128` | 1, 2, 3, 4 for the number of bytes minus one, then these bytes, at least one |
//! | `i16`, `i32`, `i64`, `i128` | zig-zag, then as the unsigned type |
//! | `f32`, `f64` | 32, 64 |
//! | `Option` | 1, then the value if present |
//! | text | the number of bytes as `u32`, then UTF-8 |
//! | sequences | the number of elements as `u32`, then the elements |
//! | tuples, structs | the values in order |
//! | enums | the index in the bits that the last index needs, then the fields |
//!
//! A number of more than four bytes begins with its most significant four, and an `f64` with its high half.
//! docs/rabbit.md is the complete specification. `usize`, `i8` and `char` have no encoding.
//!
//! # Use
//!
//! With the feature `derive`:
//!
//! ```
//! use rakwire::codec::rabbit::{List, Pack, Reader, Unpack, pack};
//!
//! #[derive(Clone, Debug, PartialEq, Pack, Unpack)]
//! struct Score {
//!     #[pack(bits = 4)]
//!     team: u8,
//!     points: u32,
//! }
//!
//! #[derive(Debug, PartialEq, Pack, Unpack)]
//! enum Update<'a> {
//!     Nothing,
//!     Scores(#[pack(max = 100)] List<'a, Score>),
//! }
//!
//! let scores = [Score { team: 3, points: 1_000 }, Score { team: 12, points: 0 }];
//! let mut buffer = [0; 64];
//! let packed = pack(&Update::Scores(List::new(&scores)), &mut buffer)?;
//! assert_eq!(packed.len(), 6); // 1 + 10 + 4 + 18 + 4 + 10 bits
//!
//! let Update::Scores(list) = Update::unpack(&mut Reader::new(packed))? else { panic!("an unexpected update") };
//! assert!(list.iter().eq(scores));
//! # Ok::<(), rakwire::codec::rabbit::Error>(())
//! ```
//!
//! # Hostile input
//!
//! Before memory is allocated, a count is compared with the number of elements that the rest of the input can hold.
//! Sequences may be nested at most [`MAX_DEPTH`] deep. Unpacking validates lists and texts completely, so later
//! accesses cannot fail. As in the original implementation, numbers with more bytes than necessary, non-zero padding
//! bits and trailing bytes are accepted.

mod cursors;
pub mod field;
mod number;
mod pack;
mod sequence;

pub use cursors::{Error, ErrorKind, MAX_DEPTH, Reader, Writer};
#[cfg(feature = "alloc")]
pub use pack::to_vec;
pub use pack::{Counted, Pack, Unpack, UnpackBounded, pack, unpack};
#[cfg(feature = "derive")]
pub use rakwire_derive::{Pack, Unpack};
pub use sequence::{Chars, List, ListIter, Text};

/// The maximum nesting depth of types. Deeper types, including recursive ones, have no fingerprint.
const MAX_NESTING: u8 = 32;
/// The constants of 64-bit FNV-1a (draft-eastlake-fnv).
const OFFSET_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x0100_0000_01B3;

/// A hash of an encoding: 64-bit FNV-1a over a description of the types (docs/rabbit.md#fingerprints).
///
/// Peers can compare fingerprints to detect different versions of their message types. [`Pack::describe`] describes a
/// type:
///
/// ```
/// use rakwire::codec::rabbit::Fingerprint;
///
/// let of_pair = Fingerprint::of::<(u16, Option<u8>)>();
/// assert!(of_pair.is_some());
/// assert_eq!(Fingerprint::of::<(u16, (Option<u8>, ()))>(), of_pair, "the values of both types have the same bits");
/// assert_ne!(Fingerprint::of::<(u32, Option<u8>)>(), of_pair);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    hash: u64,
    nesting: u8,
    is_known: bool,
}

impl Fingerprint {
    /// Creates the fingerprint of an empty description.
    #[must_use]
    pub const fn new() -> Self {
        Self { hash: OFFSET_BASIS, nesting: 0, is_known: true }
    }

    /// Appends bytes of a description.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// Appends a nested description; if it is nested too deeply, the fingerprint becomes unknown.
    fn part(&mut self, describe: impl FnOnce(&mut Self)) {
        if !self.is_known || self.nesting >= MAX_NESTING {
            self.is_known = false;
            return;
        }
        self.nesting += 1;
        describe(self);
        self.nesting -= 1;
    }

    /// Appends the description of a number of `width` bits.
    pub fn raw(&mut self, width: u32) {
        let [width, ..] = width.to_le_bytes();
        self.bytes(&[b'r', width]);
    }

    /// Records a type without a description. The fingerprint of any type that contains it is `None`.
    pub const fn opaque(&mut self) {
        self.is_known = false;
    }

    /// Returns the fingerprint of the whole description, or `None` if part of it is missing.
    #[must_use]
    pub const fn finish(&self) -> Option<u64> {
        if self.is_known { Some(self.hash) } else { None }
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::cursor::Chunks;

    fn round_trip<T>(value: &T) -> Vec<u8>
    where
        T: Pack + for<'a> Unpack<'a> + PartialEq + core::fmt::Debug,
    {
        let bytes = to_vec(value).unwrap();
        assert_eq!(unpack::<T>(&bytes).as_ref(), Ok(value));
        bytes
    }

    /// Splits the bytes into pieces of these lengths, cyclically.
    fn cut<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        let mut lengths = lengths.iter().cycle();
        while !bytes.is_empty() {
            let length = lengths.next().copied().unwrap_or(1).min(bytes.len());
            let (piece, rest) = bytes.split_at(length);
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }

    #[test]
    fn numbers_of_different_widths_match_the_documented_example() {
        let mut buffer = [0xEE; 2];
        let mut writer = Writer::new(&mut buffer);
        for (number, width) in [(15, 5), (81, 7), (1, 2)] {
            writer.bits(number, width).unwrap();
        }
        assert_eq!(writer.finish(), [0x2F, 0x1A]);
    }

    #[test]
    fn raw_numbers_are_masked_to_their_width_of_at_most_64_bits() {
        let mut buffer = [0; 9];
        let mut writer = Writer::new(&mut buffer);
        writer.bits(u64::MAX, 3).unwrap();
        writer.bits(0x8000_0000_0000_0001, 64).unwrap();
        assert_eq!(writer.bits(0, 65).unwrap_err().kind, ErrorKind::BadWidth);
        assert_eq!(writer.finish(), [0x0F, 0, 0, 0, 0, 0, 0, 0, 4]);
        assert_eq!(Reader::new(&buffer).bits(65).unwrap_err().kind, ErrorKind::BadWidth);
    }

    #[test]
    fn numbers_match_the_bytes_of_the_original_implementation() {
        assert_eq!(round_trip(&300_u32), [0xB1, 0x04, 0x00]);
        assert_eq!(round_trip(&0_u16), [0, 0]);
        // A number of more than four bytes begins with its four most significant bytes.
        assert_eq!(round_trip(&0x12_3456_789A_u64), [0xC4, 0xB3, 0xA2, 0x91, 0xD0, 0x04]);
        let wide = 0x0123_4567_89AB_CDEF_0123_u128;
        assert_eq!(round_trip(&wide), [0x79, 0x56, 0x34, 0x12, 0xF0, 0xDE, 0xBC, 0x9A, 0x38, 0x12, 0x00]);
        assert_eq!(round_trip(&-1_i16), [0x02, 0x00]);
        assert_eq!(round_trip(&core::f64::consts::PI), [0xFB, 0x21, 0x09, 0x40, 0x18, 0x2D, 0x44, 0x54]);
    }

    #[test]
    fn numbers_with_needless_bytes_and_nonzero_padding_are_accepted() {
        assert_eq!(unpack::<u32>(&[0x15, 0x00, 0x00]), Ok(5));
        assert_eq!(
            unpack::<u64>(&[0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0, 0, 0, 0x00]),
            Ok(u64::from(u32::MAX) << 32)
        );
        assert_eq!(unpack::<bool>(&[0xFF, 0xFF]), Ok(true));
    }

    #[test]
    fn invalid_utf8_is_rejected_and_text_round_trips() {
        for text in ["", "snow ☃", "åäö", "\u{10FFFF}x"] {
            let bytes = round_trip(&String::from(text));
            assert_eq!(unpack::<Text<'_>>(&bytes), Ok(Text::new(text)));
            assert_eq!(std::format!("{:?}", unpack::<Text<'_>>(&bytes).unwrap()), std::format!("{text:?}"));
        }
        for wrong in
            [&[0x80_u8][..], &[0xC3], &[0xC3, 0x28], &[0xED, 0xA0, 0x80], &[0xF5, 0x80, 0x80, 0x80], &[0xFF]]
        {
            let bytes = to_vec(wrong).unwrap();
            let kind = |error: Error| error.kind;
            assert_eq!(unpack::<Text<'_>>(&bytes).map_err(kind), Err(ErrorKind::BadUtf8), "{wrong:?}");
            assert_eq!(unpack::<String>(&bytes).map_err(kind), Err(ErrorKind::BadUtf8), "{wrong:?}");
            let fixed = unpack::<heapless::String<8>>(&bytes);
            assert_eq!(fixed.map_err(kind), Err(ErrorKind::BadUtf8), "{wrong:?}");
        }
    }

    /// The declared number of elements would take 32 GB.
    #[test]
    fn a_count_beyond_the_input_or_the_capacity_is_rejected() {
        let mut bytes = to_vec(&u32::MAX).unwrap();
        bytes.extend([0; 20]);
        let too_many = |limit| Error { kind: ErrorKind::TooMany { count: u32::MAX, limit }, bit: 0 };
        assert_eq!(unpack::<Vec<u64>>(&bytes), Err(too_many(15)));
        assert_eq!(unpack::<String>(&bytes), Err(too_many(20)));
        assert_eq!(unpack::<List<'_, u8>>(&bytes), Err(too_many(20)));
        let limit = |error: Error| error.kind;
        let small = ErrorKind::TooMany { count: 3, limit: 2 };
        assert_eq!(
            unpack::<heapless::Vec<bool, 2>>(&to_vec(&[true; 3][..]).unwrap()).map_err(limit),
            Err(small)
        );
        assert_eq!(unpack::<heapless::String<2>>(&to_vec("abc").unwrap()).map_err(limit), Err(small));
    }

    #[test]
    fn errors_contain_the_kind_and_the_bit_position() {
        let error = unpack::<(bool, u32)>(&[0x07]).unwrap_err();
        assert_eq!(error, Error { kind: ErrorKind::EndOfInput, bit: 3 });
        let kind = ErrorKind::TooMany { count: 3, limit: 2 };
        assert_eq!(std::format!("{}", Error { kind, bit: 7 }), "bit 7: 3 elements, but the limit is 2");
        assert_eq!(pack(&300_u32, &mut [0; 2]).unwrap_err(), Error { kind: ErrorKind::NoRoom, bit: 0 });
    }

    /// A recursive type. Without a limit, a few bytes could nest it deeper than any stack allows.
    #[derive(Debug, PartialEq)]
    struct Nested(Vec<Self>);

    impl Pack for Nested {
        fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
            self.0.pack(writer)
        }
    }

    impl<'a> Unpack<'a> for Nested {
        const MIN_BITS: usize = <Vec<Self> as Unpack<'a>>::MIN_BITS;

        fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
            Ok(Self(Vec::unpack(reader)?))
        }
    }

    #[test]
    fn sequences_nested_deeper_than_max_depth_are_rejected() {
        let nested = |depth| (0..depth).fold(Nested(Vec::new()), |inner, _| Nested(vec![inner]));
        round_trip(&nested(MAX_DEPTH - 1));
        let bytes = to_vec(&nested(MAX_DEPTH)).unwrap();
        assert_eq!(unpack::<Nested>(&bytes).unwrap_err().kind, ErrorKind::TooDeep);
        let endless = [0x04, 0x10, 0x40, 0x00, 0x01].repeat(1_000);
        assert_eq!(unpack::<Nested>(&endless).unwrap_err().kind, ErrorKind::TooDeep);
    }

    #[test]
    fn a_list_can_be_read_twice_and_packed_again() {
        let values = [(1_u32, true), (70_000, false), (0, true)];
        let bytes = to_vec(&List::new(&values)).unwrap();
        let pieces = cut(&bytes, &[1]);
        let pieces = pieces.as_slice();
        let list = List::<(u32, bool)>::unpack(&mut Reader::over(&pieces)).unwrap();
        assert!(list.iter().eq(values) && list.iter().eq(values));
        assert_eq!((list.iter().len(), list == List::new(&values)), (3, true));
        assert_eq!(to_vec(&list).unwrap(), bytes);
    }

    #[test]
    fn reading_beyond_the_last_piece_is_an_error() {
        struct Liar;
        impl Chunks for Liar {
            fn total(&self) -> usize {
                100
            }
            fn piece(&self, _: crate::Piece) -> (&[u8], Option<crate::Piece>) {
                (&[1, 2], None)
            }
        }
        let mut reader = Reader::over(&Liar);
        reader.bits(16).unwrap();
        assert_eq!(reader.bits(1).unwrap_err(), Error { kind: ErrorKind::EndOfInput, bit: 16 });
    }

    type Everything = (
        (bool, u8, u16, u32, u64, u128),
        (i16, i32, i64, i128),
        (Option<u32>, String, Vec<(bool, u16)>, (), Option<Vec<Option<bool>>>),
        (u32, u32),
    );

    /// Miri is about a thousand times slower than native code.
    const CASES: u32 = if cfg!(miri) { 2 } else { 200 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn packed_values_unpack_from_any_pieces(value: Everything, lengths in proptest::collection::vec(0..9_usize, 1..5)) {
            let bytes = to_vec(&value).unwrap();
            let lengths: Vec<_> = if lengths.iter().all(|length| *length == 0) { vec![1] } else { lengths };
            let pieces = cut(&bytes, &lengths);
            let pieces = pieces.as_slice();
            let mut reader = Reader::over(&pieces);
            let read = Everything::unpack(&mut reader);
            prop_assert_eq!(read.as_ref(), Ok(&value));
            prop_assert!(reader.remaining() < 8);
            prop_assert_eq!(reader.position() + reader.remaining(), bytes.len() * 8);
            prop_assert_eq!(unpack::<Everything>(&bytes), Ok(value));
        }

        #[test]
        fn truncated_input_is_an_error_at_a_position_within_the_input(value: Everything) {
            let bytes = to_vec(&value).unwrap();
            for length in 0..bytes.len() {
                let error = unpack::<Everything>(&bytes[..length]).unwrap_err();
                prop_assert!(error.bit <= length * 8);
                let too_short = matches!(error.kind, ErrorKind::EndOfInput | ErrorKind::TooMany { .. });
                prop_assert!(too_short);
            }
        }

        #[test]
        fn unpacking_does_not_depend_on_how_the_input_is_split(bytes: Vec<u8>) {
            let pieces = cut(&bytes, &[1, 3]);
            let pieces = pieces.as_slice();
            prop_assert_eq!(unpack::<Everything>(&bytes), Everything::unpack(&mut Reader::over(&pieces)));
            prop_assert_eq!(
                unpack::<heapless::Vec<u16, 40>>(&bytes).map(|list| list.to_vec()).ok(),
                unpack::<List<'_, u16>>(&bytes).map(|list| list.iter().collect::<Vec<_>>()).ok().filter(|list| list.len() <= 40),
            );
            prop_assert_eq!(
                unpack::<Text<'_>>(&bytes).map(|text| text.chars().collect::<String>()).ok(),
                unpack::<String>(&bytes).ok(),
            );
        }
    }
}

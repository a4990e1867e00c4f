//! Property tests of all types of values and of the limits of ranges, against a reference implementation.
//!
//! The reference implementation is a vector of bits, written only from docs/raknet.md#bit-stream-rules. It must produce
//! the same bits for every value.

use core::net::SocketAddr;
use core::ops::RangeInclusive;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cursor::WireError;
use crate::raknet::{Guid, NetworkId};
use crate::serial::U24;

/// Checks that a value written after `lead` bits reads back, and that one bit less is an error.
fn law<T>(
    lead: u32,
    write: impl Fn(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
    read: impl Fn(&mut BitStreamReader<'_>) -> Result<T, WireError>,
) -> T {
    let mut buffer = [0xEE; 300];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.bits().bits(u64::MAX, lead).expect("enough space");
    write(&mut writer).expect("300 bytes are enough");
    let end = writer.position();
    let bytes = writer.finish().to_vec();
    for short in (lead as usize)..end {
        let mut reader = BitStreamReader::with_bits(&bytes, short).expect("bits within the bytes");
        reader.bits().bits(lead).expect("the leading bits");
        assert!(read(&mut reader).is_err(), "a prefix of {short} of {end} bits was read");
    }
    for room in 0..end / 8 {
        let mut writer = BitStreamWriter::new(&mut buffer[..room]);
        let written = writer.bits().bits(u64::MAX, lead).and_then(|()| write(&mut writer));
        assert_eq!(written, Err(WireError::NoRoom));
    }
    let mut reader = BitStreamReader::with_bits(&bytes, end).expect("bits within the bytes");
    reader.bits().bits(lead).expect("the leading bits");
    let value = read(&mut reader).expect("the written value");
    assert_eq!(reader.remaining(), 0);
    value
}

fn item<T: Item + core::fmt::Debug>(lead: u32, value: T, last: T) {
    assert_eq!(law(lead, |w| w.write(value), |r| r.read::<T>()), value);
    assert_eq!(law(lead, |w| w.write_delta(value, last), |r| r.read_delta(last)), value);
}

fn integer<T: Integer + core::fmt::Debug>(lead: u32, value: T, last: T) {
    item(lead, value, last);
    assert_eq!(law(lead, |w| w.write_compressed(value), |r| r.read_compressed::<T>()), value);
    let delta = |w: &mut BitStreamWriter<'_>| w.write_compressed_delta(value, last);
    assert_eq!(law(lead, delta, |r| r.read_compressed_delta(last)), value);
    let range = value.min(last)..=value.max(last);
    for outside in [OutOfRange::Reject, OutOfRange::Flag] {
        let write = |w: &mut BitStreamWriter<'_>| w.ranged(value, range.clone(), outside);
        assert_eq!(law(lead, write, |r| r.ranged(range.clone(), outside)), value);
    }
    if value != last {
        let write = |w: &mut BitStreamWriter<'_>| w.ranged(value, last..=last, OutOfRange::Flag);
        assert_eq!(law(lead, write, |r| r.ranged(last..=last, OutOfRange::Flag)), value);
    }
}

fn address() -> impl Strategy<Value = SocketAddr> {
    prop_oneof![
        (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from),
        (any::<[u8; 16]>(), any::<u16>()).prop_map(SocketAddr::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn integers_round_trip(lead in 0..9_u32, value: u64, last: u64, shift in 0..64_u32) {
        // Shifted in both directions, so that the values have zero bytes at the upper and at the lower end.
        for value in [value, value >> shift, value << shift] {
            integer(lead, value as u8, last as u8);
            integer(lead, value as u16, last as u16);
            integer(lead, value as u32, last as u32);
            integer(lead, value, last);
            integer(lead, value as i8, last as i8);
            integer(lead, value as i16, last as i16);
            integer(lead, value as i32, last as i32);
            integer(lead, value as i64, last as i64);
        }
    }

    #[test]
    fn other_items_round_trip(lead in 0..9_u32, value: u64, last: u64, to in address(), from in address()) {
        item(lead, U24::new(value as u32), U24::new(last as u32));
        item(lead, Guid(value), Guid(last));
        item(lead, NetworkId(value), NetworkId(last));
        item(lead, value & 1 == 1, last & 1 == 1);
        item(lead, to, from);
        let (float, double) = (value as f32, value as f64);
        item(lead, -float, last as f32);
        item(lead, -double, last as f64);
    }

    #[test]
    fn bytes_and_strings_round_trip(lead in 0..9_u32, bytes in proptest::collection::vec(any::<u8>(), 1..70)) {
        let read = law(lead, |w| w.string(&bytes), |r| Ok(r.string()?.to_vec()));
        prop_assert_eq!(&read, &bytes);
        let safe = law(lead, |w| w.aligned_bytes_safe(&bytes), |r| Ok(r.aligned_bytes_safe(70)?.to_vec()));
        prop_assert_eq!(&safe, &bytes);
        let read = law(lead, |w| w.compressed_string(&bytes), |r| Ok(r.compressed_string(&mut [0; 70])?.to_vec()));
        prop_assert_eq!(&read, &bytes);
        let count = (bytes.len() * 8).saturating_sub(lead as usize);
        for alignment in [Alignment::Right, Alignment::Left] {
            let bits = law(lead, |w| w.write_bits(&bytes, count, alignment), |r| {
                let mut out = vec![0; bytes.len()];
                r.read_bits(&mut out, count, alignment)?;
                Ok(out)
            });
            let mut again = [0; 300];
            let mut writer = BitStreamWriter::new(&mut again);
            writer.write_bits(&bits, count, alignment).expect("enough space");
            let again = writer.finish();
            let mut first = [0; 300];
            let mut writer = BitStreamWriter::new(&mut first);
            writer.write_bits(&bytes, count, alignment).expect("enough space");
            prop_assert_eq!(again, writer.finish());
        }
    }

    #[test]
    fn fractions_round_trip_within_one_step(lead in 0..9_u32, x in -1.0..=1.0_f32, y in -1.0..=1.0_f32, z in -1.0..=1.0_f32) {
        let read = law(lead, |w| w.write_compressed(x), |r| r.read_compressed::<f32>());
        prop_assert!((read - x).abs() < 0.000_04);
        let double = law(lead, |w| w.write_compressed(f64::from(x)), |r| r.read_compressed::<f64>());
        prop_assert!((double - f64::from(x)).abs() < 0.000_000_001);
        let read = law(lead, |w| w.float16(x * 50.0, -50.0..=50.0), |r| r.float16(-50.0..=50.0));
        prop_assert!((read - x * 50.0).abs() < 0.002);
        let vector = [x * 1000.0, y * 1000.0, z * 1000.0];
        let read = law(lead, |w| w.vector(vector), |r| r.vector());
        prop_assert!(read.iter().zip(vector).all(|(read, part)| (read - part).abs() < 0.1));
        let read = law(lead, |w| w.unit_vector([x, y, z]), |r| r.unit_vector());
        prop_assert!(read.iter().zip([x, y, z]).all(|(read, part)| (read - part).abs() < 0.000_1));
    }

    #[test]
    fn rotations_are_read_back_approximately(parts in [-1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32]) {
        let length = libm::sqrtf(parts.iter().map(|part| part * part).sum());
        prop_assume!(length > 0.1);
        let [w, x, y, z] = parts.map(|part| part / length);
        // A rotation and its negative are equal; near 0, w depends on the rounding errors of the other components.
        let rotation = Quaternion { w, x, y, z };
        let read = law(3, |writer| writer.unit_quaternion(rotation), |r| r.unit_quaternion());
        let same = |read: Quaternion| (read.w * w + read.x * x + read.y * y + read.z * z).abs();
        prop_assert!(same(read) > 0.999_9, "{:?} is not {:?}", read, rotation);
        let matrix = law(0, |writer| writer.unit_quaternion(rotation), |r| r.rotation_matrix());
        let again = law(3, |writer| writer.rotation_matrix(matrix), |r| r.unit_quaternion());
        prop_assert!(same(again) > 0.999, "{:?} is not {:?}", again, rotation);
    }

    #[test]
    fn reading_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..60), lead in 0..9_u32) {
        let fresh = || {
            let mut reader = BitStreamReader::new(&bytes);
            let _ = reader.bits().bits(lead);
            reader
        };
        let _ = fresh().read::<SocketAddr>();
        let _ = fresh().read_compressed::<u64>();
        let _ = fresh().string();
        let _ = fresh().aligned_bytes_safe(usize::MAX);
        let mut out = [0; 40];
        let _ = fresh().compressed_string(&mut out);
        let _ = fresh().ranged(3..=1000_u16, OutOfRange::Flag);
        let _ = fresh().vector();
        let _ = fresh().rotation_matrix();
        let _ = fresh().float16(0.0..=1.0);
    }
}

#[test]
fn fractions_outside_their_range_are_clamped() {
    let write = |value: f32| law(0, move |w| w.write_compressed(value), |r| r.read::<u16>());
    assert_eq!([-1.0, -2.0, 1.0, 2.0, f32::NAN].map(write), [0, 0, 0xFFFF, 0xFFFF, 0]);
    let write = |value: f64| law(0, move |w| w.write_compressed(value), |r| r.read::<u32>());
    assert_eq!([-1.0, -2.0, 1.0, 2.0, f64::NAN].map(write), [0, 0, u32::MAX, u32::MAX, 0]);
    let write = |value: f32| law(0, move |w| w.float16(value, 0.0..=10.0), |r| r.read::<u16>());
    assert_eq!([-1.0, 0.0, 10.0, 11.0, f32::NAN].map(write), [0, 0, 0xFFFF, 0xFFFF, 0]);
}

#[test]
fn values_without_an_encoding_are_rejected() {
    let mut buffer = [0; 16];
    let mut writer = BitStreamWriter::new(&mut buffer);
    assert_eq!(writer.ranged(1_u8, RangeInclusive::new(2, 1), OutOfRange::Flag), Err(WireError::BadValue));
    assert_eq!(writer.ranged(3_i8, -2..=2, OutOfRange::Reject), Err(WireError::BadValue));
    assert_eq!(writer.vector([f32::MAX, 0.0, 0.0]), Err(WireError::BadValue));
    assert_eq!(writer.vector([f32::NAN, 0.0, 0.0]), Err(WireError::BadValue));
    assert_eq!(writer.string(&vec![0; 65_536]), Err(WireError::BadLength));
    assert_eq!(writer.write_bits(&[1], 9, Alignment::Right), Err(WireError::BadLength));
    for range in [1.0..=1.0, 2.0..=1.0, 0.0..=f32::INFINITY, f32::NAN..=1.0] {
        assert_eq!(writer.float16(1.0, range), Err(WireError::BadValue));
    }
    assert_eq!(writer.position(), 0);

    let mut reader = BitStreamReader::new(&[0xFF; 16]);
    assert_eq!(reader.ranged(0..=10_u8, OutOfRange::Reject), Err(WireError::BadValue));
    assert_eq!(BitStreamReader::new(&[0x7F, 0x80, 0, 0]).vector(), Err(WireError::BadValue));
    assert_eq!(BitStreamReader::new(&[0x7F, 0xC0, 0, 0]).vector(), Err(WireError::BadValue));
}

#[test]
fn counts_beyond_the_input_or_the_buffer_are_refused() {
    // Declares four billion bytes and contains none.
    let huge = [0x7F, 0xFF, 0xFF, 0xFF, 0x80];
    assert_eq!(BitStreamReader::new(&huge).aligned_bytes_safe(100), Err(WireError::BadLength));
    assert_eq!(BitStreamReader::new(&huge).aligned_bytes_safe(usize::MAX), Err(WireError::Truncated));
    assert_eq!(BitStreamReader::new(&huge).compressed_string(&mut [0; 4]), Err(WireError::Truncated));
    let mut buffer = [0; 16];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.compressed_string(b"hello").expect("enough space");
    assert_eq!(
        BitStreamReader::new(writer.finish()).compressed_string(&mut [0; 4]),
        Err(WireError::BadLength)
    );
}

#[test]
fn an_empty_string_is_aligned_after_its_length() {
    let mut buffer = [0; 8];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.write(true).expect("enough space");
    writer.string(b"").expect("enough space");
    assert_eq!(writer.position(), 24);
    writer.compressed_string(b"").expect("enough space");
    assert_eq!(writer.position(), 32);
    writer.aligned_bytes_safe(b"").expect("enough space");
    assert_eq!(writer.finish(), [0x80, 0, 0, 0xF0, 0xF0]);
}

#[test]
fn the_delta_of_a_bool_is_the_bool_itself() {
    let bits: Vec<bool> = [true, false].into_iter().collect();
    for (value, last) in bits.iter().zip(bits.iter().rev()) {
        assert_eq!(law(0, |w| w.write_delta(*value, *last), |r| r.read::<bool>()), *value);
        assert_eq!(law(0, |w| w.write_compressed_delta(*value, *last), |r| r.read::<bool>()), *value);
    }
}

/// A slow reference implementation, with the bits written so far.
#[derive(Debug, Default, PartialEq)]
struct Slow(Vec<bool>);

impl Slow {
    fn bit(&mut self, bit: bool) {
        self.0.push(bit);
    }

    /// Appends the low `count` bits of a number, the most significant first.
    fn number(&mut self, value: u128, count: usize) {
        (0..count).rev().for_each(|place| self.bit(value >> place & 1 == 1));
    }

    fn align(&mut self) {
        while !self.0.len().is_multiple_of(8) {
            self.bit(false);
        }
    }

    /// Appends a number without its high zero bytes and, if one byte is left, without its high zero nibble.
    fn compressed(&mut self, value: u128, bytes: usize) {
        let mut left = bytes;
        while left > 1 && (value >> (8 * (bytes - left))).is_multiple_of(256) {
            self.bit(true);
            left -= 1;
        }
        let rest = value >> (8 * (bytes - left));
        if left > 1 {
            self.bit(false);
            self.number(rest, 8 * left);
        } else {
            self.bit(rest < 16);
            self.number(rest, if rest < 16 { 4 } else { 8 });
        }
    }

    /// Appends the distance from the start of the range, low byte first. If the last byte is partial, its low bits are
    /// appended.
    fn ranged(&mut self, distance: u64, width: u64) {
        let mut count = 0;
        while count < 64 && width >> count != 0 {
            count += 1;
        }
        let mut at = 0;
        while at < count {
            let bits = (count - at).min(8);
            self.number((distance >> at).into(), bits);
            at += bits;
        }
    }

    fn fraction(&mut self, value: f32) {
        self.number((((value + 1.0) * 32_767.5) as u16).into(), 16);
    }

    fn float16(&mut self, value: f32, low: f32, high: f32) {
        self.number(((65_535.0 * (value - low) / (high - low)).clamp(0.0, 65_535.0) as u16).into(), 16);
    }

    fn vector(&mut self, [x, y, z]: Vector) {
        let length = (x * x + y * y + z * z).sqrt();
        self.number(length.to_bits().into(), 32);
        if length > 0.000_01 {
            [x, y, z].iter().for_each(|part| self.fraction(part / length));
        }
    }

    fn quaternion(&mut self, [w, x, y, z]: [f64; 4]) {
        [w, x, y, z].iter().for_each(|part| self.bit(*part < 0.0));
        [x, y, z].iter().for_each(|part| self.number(((part.abs() * 65_535.0) as u16).into(), 16));
    }

    /// Appends a rotation matrix: magnitudes from the diagonal, signs from the antisymmetric part.
    fn matrix(&mut self, m: Matrix) {
        let size = |sum: f32| f64::from(sum.max(0.0).sqrt() / 2.0);
        let signed = |size: f64, sign: f32| if sign.is_sign_negative() { -size } else { size };
        self.quaternion([
            size(1.0 + m[0][0] + m[1][1] + m[2][2]),
            signed(size(1.0 + m[0][0] - m[1][1] - m[2][2]), m[2][1] - m[1][2]),
            signed(size(1.0 - m[0][0] + m[1][1] - m[2][2]), m[0][2] - m[2][0]),
            signed(size(1.0 - m[0][0] - m[1][1] + m[2][2]), m[1][0] - m[0][1]),
        ]);
    }

    fn string(&mut self, string: &[u8]) {
        self.number(string.len() as u128, 16);
        self.align();
        string.iter().for_each(|byte| self.number((*byte).into(), 8));
    }

    fn compressed_string(&mut self, string: &[u8], codes: &[Vec<bool>]) {
        let mut coded: Vec<bool> = string.iter().flat_map(|byte| codes[usize::from(*byte)].clone()).collect();
        let missing = coded.len().next_multiple_of(8) - coded.len();
        let longer = codes.iter().find(|code| code.len() > missing).expect("codes have up to 16 bits");
        coded.extend(&longer[..missing]);
        self.compressed(coded.len() as u128, 4);
        self.0.extend(coded);
    }
}

/// A tree of the Huffman code: its weight, and its leaves with their paths.
type Tree = (u64, Vec<(u8, Vec<bool>)>);

/// Returns the codes of all bytes, computed as docs/raknet.md specifies.
///
/// The two lightest trees are joined repeatedly. Of trees with equal weights, the one added last is taken first.
fn codes() -> Vec<Vec<bool>> {
    let mut waiting: Vec<Tree> = Vec::new();
    let insert = |waiting: &mut Vec<Tree>, tree: Tree| {
        let place = waiting.iter().position(|other| other.0 >= tree.0).unwrap_or(waiting.len());
        waiting.insert(place, tree);
    };
    for byte in 0..=u8::MAX {
        insert(&mut waiting, (u64::from(strings::counted(byte)).max(1), vec![(byte, Vec::new())]));
    }
    while waiting.len() > 1 {
        let (first, second) = (waiting.remove(0), waiting.remove(0));
        let below = |bit: bool, tree: Tree| {
            tree.1.into_iter().map(move |(byte, way)| (byte, [&[bit][..], &way].concat()))
        };
        let weight = first.0 + second.0;
        insert(&mut waiting, (weight, below(false, first).chain(below(true, second)).collect()));
    }
    let mut codes = vec![Vec::new(); 256];
    waiting.remove(0).1.into_iter().for_each(|(byte, way)| codes[usize::from(byte)] = way);
    codes
}

/// Compares the output of writer and reference, each after `lead` set bits.
fn same(
    lead: usize,
    real: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
    slow: impl FnOnce(&mut Slow),
) {
    let mut buffer = [0xEE; 300];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.bits().bits(u64::MAX, lead as u32).expect("enough space");
    real(&mut writer).expect("enough space");
    let count = writer.position();
    let bytes = writer.finish();
    let found = (0..count).map(|place| bytes[place / 8] >> (7 - place % 8) & 1 == 1).collect();
    let mut wanted = Slow(vec![true; lead]);
    slow(&mut wanted);
    assert_eq!(Slow(found), wanted);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn integers_match_the_reference(lead in 0..9_usize, value: u64, shift in 0..64_u32, ends: (u64, u64)) {
        for value in [value, value >> shift, value << shift] {
            let (byte, short, word) = (value as u8, value as u16, value as u32);
            same(lead, |w| w.write_compressed(byte), |slow| slow.compressed(byte.into(), 1));
            same(lead, |w| w.write_compressed(short), |slow| slow.compressed(short.into(), 2));
            same(lead, |w| w.write_compressed(word), |slow| slow.compressed(word.into(), 4));
            same(lead, |w| w.write_compressed(value), |slow| slow.compressed(value.into(), 8));
            same(lead, |w| w.write_compressed(value as i64), |slow| slow.compressed(value.into(), 8));
            same(lead, |w| w.write(word), |slow| slow.number(word.into(), 32));
            let (low, high) = (ends.0.min(ends.1) >> shift, ends.0.max(ends.1));
            let inside = low + (value % (high - low).max(1));
            same(lead, |w| w.ranged(inside, low..=high, OutOfRange::Reject), |slow| slow.ranged(inside - low, high - low));
            same(lead, |w| w.ranged(inside as i64, i64::MIN..=i64::MAX, OutOfRange::Flag), |slow| {
                slow.bit(false);
                slow.ranged((inside as i64).wrapping_sub(i64::MIN) as u64, u64::MAX);
            });
        }
    }

    #[test]
    fn fractions_and_vectors_match_the_reference(lead in 0..9_usize, parts in [-1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32], scale in 0.0..10_000.0_f32) {
        let [x, _, _] = parts;
        same(lead, |w| w.write_compressed(x), |slow| slow.fraction(x));
        same(lead, |w| w.float16(x * scale, -5_000.0..=2_000.0), |slow| slow.float16(x * scale, -5_000.0, 2_000.0));
        same(lead, |w| w.unit_vector(parts), |slow| parts.iter().for_each(|part| slow.float16(*part, -1.0, 1.0)));
        let vector = parts.map(|part| part * scale);
        same(lead, |w| w.vector(vector), |slow| slow.vector(vector));
    }

    #[test]
    fn rotations_match_the_reference(lead in 0..9_usize, parts in [-1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32]) {
        let length = parts.iter().map(|part| part * part).sum::<f32>().sqrt();
        prop_assume!(length > 0.1);
        let [w, x, y, z] = parts.map(|part| part / length);
        same(lead, |writer| writer.unit_quaternion(Quaternion { w, x, y, z }), |slow| {
            slow.quaternion([w, x, y, z].map(f64::from));
        });
        let (matrix, wanted) = (rotation([w, x, y, z]), rotation([w, x, y, z]));
        same(lead, |writer| writer.rotation_matrix(matrix), |slow| slow.matrix(wanted));
    }

    #[test]
    fn strings_match_the_reference(lead in 0..9_usize, bytes in proptest::collection::vec(any::<u8>(), 0..60), text in "[ -~]{0,60}") {
        let codes = codes();
        for string in [&bytes, text.as_bytes()] {
            same(lead, |w| w.string(string), |slow| slow.string(string));
            same(lead, |w| w.compressed_string(string), |slow| slow.compressed_string(string, &codes));
            same(lead, |w| w.aligned_bytes_safe(string), |slow| {
                slow.compressed(string.len() as u128, 4);
                if !string.is_empty() {
                    slow.align();
                    string.iter().for_each(|byte| slow.number((*byte).into(), 8));
                }
            });
        }
    }
}

/// Returns the matrix of a rotation, computed by rotating the axes one by one.
fn rotation([w, x, y, z]: [f32; 4]) -> Matrix {
    let cross = |a: Vector, b: Vector| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let axis = [x, y, z];
    let turned = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|unit: Vector| {
        let once = cross(axis, unit);
        let twice = cross(axis, once);
        [0, 1, 2].map(|place| unit[place] + 2.0 * (w * once[place] + twice[place]))
    });
    // The rotated axes are the columns.
    [0, 1, 2].map(|row| [0, 1, 2].map(|column: usize| turned[column][row]))
}

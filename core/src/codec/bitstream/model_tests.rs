//! A second, slow implementation of the bit stream, a list of bits written from the rules of
//! docs/raknet.md#bit-stream-rules alone: whatever value is written, both write the same bits.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cursor::WireError;

/// The bits so far, each an entry.
#[derive(Debug, Default, PartialEq)]
struct Slow(Vec<bool>);

impl Slow {
    fn bit(&mut self, bit: bool) {
        self.0.push(bit);
    }

    /// The low `count` bits of a number, the most significant first.
    fn number(&mut self, value: u128, count: usize) {
        (0..count).rev().for_each(|place| self.bit(value >> place & 1 == 1));
    }

    fn align(&mut self) {
        while !self.0.len().is_multiple_of(8) {
            self.bit(false);
        }
    }

    /// Bytes are dropped from the end while they are zero, and half of the first one if that is.
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

    /// The distance from the start, its low byte first; of the last, partial byte the low bits.
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

    /// The sizes from the diagonal, the signs from what is not symmetric.
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

/// A tree of the Huffman code: what it weighs and its leaves with their ways down.
type Tree = (u64, Vec<(u8, Vec<bool>)>);

/// The codes of all bytes, by the rule of docs/raknet.md: the two lightest are joined; of equals the youngest first.
fn codes() -> Vec<Vec<bool>> {
    let mut waiting: Vec<Tree> = Vec::new();
    let insert = |waiting: &mut Vec<Tree>, tree: Tree| {
        let place = waiting.iter().position(|other| other.0 >= tree.0).unwrap_or(waiting.len());
        waiting.insert(place, tree);
    };
    for byte in 0..=u8::MAX {
        insert(&mut waiting, (u64::from(huffman::counted(byte)).max(1), vec![(byte, Vec::new())]));
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

/// What the real writer writes after `lead` set bits, and what the slow one writes.
fn same(
    lead: usize,
    real: impl FnOnce(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
    slow: impl FnOnce(&mut Slow),
) {
    let mut buffer = [0xEE; 300];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.bits().bits(u64::MAX, lead as u32).expect("room");
    real(&mut writer).expect("room");
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
    fn integers_as_the_slow_model(lead in 0..9_usize, value: u64, shift in 0..64_u32, ends: (u64, u64)) {
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
            same(lead, |w| w.ranged(inside, low..=high, Outside::Refused), |slow| slow.ranged(inside - low, high - low));
            same(lead, |w| w.ranged(inside as i64, i64::MIN..=i64::MAX, Outside::Flagged), |slow| {
                slow.bit(false);
                slow.ranged((inside as i64).wrapping_sub(i64::MIN) as u64, u64::MAX);
            });
        }
    }

    #[test]
    fn fractions_and_vectors_as_the_slow_model(lead in 0..9_usize, parts in [-1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32], scale in 0.0..10_000.0_f32) {
        let [x, _, _] = parts;
        same(lead, |w| w.write_compressed(x), |slow| slow.fraction(x));
        same(lead, |w| w.float16(x * scale, -5_000.0..=2_000.0), |slow| slow.float16(x * scale, -5_000.0, 2_000.0));
        same(lead, |w| w.unit_vector(parts), |slow| parts.iter().for_each(|part| slow.float16(*part, -1.0, 1.0)));
        let vector = parts.map(|part| part * scale);
        same(lead, |w| w.vector(vector), |slow| slow.vector(vector));
    }

    #[test]
    fn rotations_as_the_slow_model(lead in 0..9_usize, parts in [-1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32]) {
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
    fn strings_as_the_slow_model(lead in 0..9_usize, bytes in proptest::collection::vec(any::<u8>(), 0..60), text in "[ -~]{0,60}") {
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

/// The matrix that turns each axis as the quaternion does, by turning the axes one by one.
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
    // The turned axes are the columns.
    [0, 1, 2].map(|row| [0, 1, 2].map(|column: usize| turned[column][row]))
}

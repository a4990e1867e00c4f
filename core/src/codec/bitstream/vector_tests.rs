//! The vectors of docs/raknet.md#bit-stream-vectors and the captured output of C++ RakNet, each written and read
//! back.
//!
//! The captures cover every type with the limits of its range, and also after one bit where alignment matters.

use core::fmt::Debug;
use std::format;
use std::string::String;

use super::*;
use crate::cursor::WireError;
use crate::raknet::{Guid, NetworkId};
use crate::serial::U24;

type Written = Result<(), WireError>;

/// Writes a vector and compares its bit count and bytes.
fn written(count: usize, hex: &str, write: impl FnOnce(&mut BitStreamWriter<'_>) -> Written) {
    let mut buffer = [0xEE; 512];
    let mut writer = BitStreamWriter::new(&mut buffer);
    write(&mut writer).expect("512 bytes are enough");
    assert_eq!(writer.position(), count, "{hex}");
    let bytes: String = writer.finish().iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(bytes, hex);
}

fn bytes(hex: &str) -> std::vec::Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a hex digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

/// Reads a whole vector, and checks that one bit less is an error.
fn read<T>(count: usize, hex: &str, read: impl Fn(&mut BitStreamReader<'_>) -> Result<T, WireError>) -> T {
    let bytes = bytes(hex);
    for short in 0..count {
        let mut reader = BitStreamReader::with_bits(&bytes, short).expect("fewer bits than the vector has");
        assert!(read(&mut reader).is_err(), "{hex}: a prefix of {short} bits was read");
    }
    let mut reader = BitStreamReader::with_bits(&bytes, count).expect("as many bits as the vector has");
    let value = read(&mut reader).expect("a vector");
    assert_eq!(reader.remaining(), 0, "{hex}");
    value
}

fn compressed<T: Item + Debug>(value: T, count: usize, hex: &str) {
    written(count, hex, |writer| writer.write_compressed(value));
    assert_eq!(read(count, hex, |r| r.read_compressed::<T>()), value);
}

fn near(found: Vector, wanted: Vector) {
    for (found, wanted) in found.into_iter().zip(wanted) {
        assert!((found - wanted).abs() < 0.001, "{found} is not {wanted}");
    }
}

#[test]
fn bits_and_aligned_scalars_match_the_vectors() {
    written(3, "A0", |writer| [true, false, true].into_iter().try_for_each(|bit| writer.write(bit)));
    written(9, "D280", |writer| {
        writer.write(true)?;
        writer.write(0xA5_u8)
    });
    let u24 = U24::new(0x12_3456);
    written(32, "80563412", |writer| {
        writer.write(true)?;
        writer.write(u24)
    });
    let read = read(32, "80563412", |reader| Ok((reader.read::<bool>()?, reader.read::<U24>()?)));
    assert_eq!(read, (true, u24));
    written(32, "3FC00000", |writer| writer.write(1.5_f32));
}

#[test]
fn bits_of_bytes_match_the_vectors() {
    written(5, "A8", |writer| writer.write_bits(&[0x15], 5, Alignment::Right));
    // C++ RakNet leaves 101 in the unused bits after these five; here they are zero.
    written(5, "10", |writer| writer.write_bits(&[0x15], 5, Alignment::Left));
    written(12, "34A0", |writer| writer.write_bits(&[0x34, 0x0A], 12, Alignment::Right));
    let mut out = [0; 2];
    BitStreamReader::new(&[0x34, 0xA0]).read_bits(&mut out, 12, Alignment::Right).expect("12 bits");
    assert_eq!(out, [0x34, 0x0A]);
    BitStreamReader::new(&[0x15]).read_bits(&mut out, 5, Alignment::Left).expect("5 bits");
    assert_eq!(out, [0x10, 0x0A]);
}

#[test]
fn compressed_numbers_match_the_vectors() {
    compressed(5_u8, 5, "A8");
    compressed(0x45_u8, 9, "2280");
    compressed(5_u16, 17, "000280");
    compressed(0x0500_u16, 6, "D4");
    compressed(5_u32, 33, "0000000280");
    compressed(0x12_u32, 33, "0000000900");
    compressed(0x1234_u32, 33, "0000091A00");
    compressed(0x0500_0000_u32, 8, "F5");
    compressed(0x1234_5678_u32, 33, "091A2B3C00");
    compressed(-1_i32, 33, "7FFFFFFF80");
    compressed(1.0_f32, 16, "FFFF");
    compressed(0.5_f64, 32, "C0000000");
    written(16, "BFFF", |writer| writer.write_compressed(0.5_f32));
    assert!((read(16, "BFFF", |r| r.read_compressed::<f32>()) - 0.5).abs() < 0.0001);
}

#[test]
fn floats_vectors_and_quaternions_match_the_vectors() {
    written(16, "3FFF", |writer| writer.float16(2.5, 0.0..=10.0));
    assert!((read(16, "3FFF", |reader| reader.float16(0.0..=10.0)) - 2.5).abs() < 0.001);
    written(80, "40A00000CCCC7FFFE665", |writer| writer.vector([3.0, 0.0, 4.0]));
    near(read(80, "40A00000CCCC7FFFE665", |r| r.vector()), [3.0, 0.0, 4.0]);
    written(48, "CCCC7FFFE665", |writer| writer.unit_vector([0.6, 0.0, 0.8]));
    near(read(48, "CCCC7FFFE665", |r| r.unit_vector()), [0.6, 0.0, 0.8]);
    let rotation = Quaternion { w: 0.5, x: -0.5, y: 0.5, z: 0.5 };
    written(52, "47FFF7FFF7FFF0", |writer| writer.unit_quaternion(rotation));
    let Quaternion { w, x, y, z } = read(52, "47FFF7FFF7FFF0", |r| r.unit_quaternion());
    near([x, y, z], [-0.5, 0.5, 0.5]);
    assert!((w - 0.5).abs() < 0.001);
}

#[test]
fn integers_of_a_range_match_the_vectors() {
    written(4, "70", |writer| writer.ranged(7_u32, 0..=10, OutOfRange::Reject));
    assert_eq!(read(4, "70", |reader| reader.ranged(0..=10_u32, OutOfRange::Reject)), 7);
    written(10, "2C40", |writer| writer.ranged(300_u32, 0..=1000, OutOfRange::Reject));
    assert_eq!(read(10, "2C40", |reader| reader.ranged(0..=1000_u32, OutOfRange::Reject)), 300);
    written(33, "800003E800", |writer| writer.ranged(2000_u32, 0..=1000, OutOfRange::Flag));
    assert_eq!(read(33, "800003E800", |reader| reader.ranged(0..=1000_u32, OutOfRange::Flag)), 2000);
    written(0, "", |writer| writer.ranged(5_u32, 5..=5, OutOfRange::Reject));
    assert_eq!(read(0, "", |reader| reader.ranged(5..=5_u32, OutOfRange::Reject)), 5);
}

#[test]
fn deltas_match_the_vectors() {
    written(1, "00", |writer| writer.write_delta(1_u16, 1));
    assert_eq!(read(1, "00", |reader| reader.read_delta(1_u16)), 1);
    written(17, "800100", |writer| writer.write_delta(2_u16, 1));
    assert_eq!(read(17, "800100", |reader| reader.read_delta(1_u16)), 2);
}

#[test]
fn strings_match_the_vectors() {
    written(32, "00026869", |writer| writer.string(b"hi"));
    written(40, "8001006869", |writer| {
        writer.write(true)?;
        writer.string(b"hi")
    });
    let (bit, string) = read(40, "8001006869", |reader| Ok((reader.read()?, reader.string()?.to_vec())));
    assert_eq!((bit, &string[..]), (true, &b"hi"[..]));
    written(64, "0000000180616263", |writer| writer.aligned_bytes_safe(b"abc"));
    let safe = read(64, "0000000180616263", |reader| Ok(reader.aligned_bytes_safe(3)?.to_vec()));
    assert_eq!(safe, b"abc");
    written(57, "0000000C604A5080", |writer| writer.compressed_string(b"hello"));
    let string = read(57, "0000000C604A5080", |reader| Ok(reader.compressed_string(&mut [0; 5])?.to_vec()));
    assert_eq!(string, b"hello");
}

/// Checks a value alone and after one set bit, which shows whether it is aligned.
fn plain<T: Item + Debug>(value: T, (count, alone): (usize, &str), (after, behind): (usize, &str)) {
    written(count, alone, |writer| writer.write(value));
    assert_eq!(read(count, alone, |reader| reader.read::<T>()), value);
    written(after, behind, |writer| {
        writer.write(true)?;
        writer.write(value)
    });
    assert_eq!(read(after, behind, |reader| Ok((reader.read()?, reader.read::<T>()?))), (true, value));
}

#[test]
fn plain_values_match_the_captures() {
    plain(0xA5_u8, (8, "A5"), (9, "D280"));
    plain(-2_i8, (8, "FE"), (9, "FF00"));
    plain(0x1234_u16, (16, "1234"), (17, "891A00"));
    plain(-2_i16, (16, "FFFE"), (17, "FFFF00"));
    plain(0x1234_5678_u32, (32, "12345678"), (33, "891A2B3C00"));
    plain(-2_i32, (32, "FFFFFFFE"), (33, "FFFFFFFF00"));
    plain(0x1234_5678_9ABC_DEF0_u64, (64, "123456789ABCDEF0"), (65, "891A2B3C4D5E6F7800"));
    plain(-2_i64, (64, "FFFFFFFFFFFFFFFE"), (65, "FFFFFFFFFFFFFFFF00"));
    plain(-0.1_f32, (32, "BDCCCCCD"), (33, "DEE6666680"));
    plain(1.5_f32, (32, "3FC00000"), (33, "9FE0000000"));
    plain(-0.1_f64, (64, "BFB999999999999A"), (65, "DFDCCCCCCCCCCCCD00"));
    plain(U24::new(0x12_3456), (24, "563412"), (32, "80563412"));
    plain(Guid(0x1234_5678_9ABC_DEF0), (64, "123456789ABCDEF0"), (65, "891A2B3C4D5E6F7800"));
    plain(NetworkId(0x1234_5678_9ABC_DEF0), (64, "123456789ABCDEF0"), (65, "891A2B3C4D5E6F7800"));
    let address: core::net::SocketAddr = "127.0.0.1:19132".parse().expect("an address");
    plain(address, (56, "0480FFFFFE4ABC"), (57, "82407FFFFF255E00"));
}

#[test]
fn compressed_integers_match_the_captures() {
    compressed(0_u8, 5, "80");
    compressed(15_u8, 5, "F8");
    compressed(16_u8, 9, "0800");
    compressed(255_u8, 9, "7F80");
    compressed(-1_i8, 9, "7F80");
    compressed(7_i8, 5, "B8");
    compressed(0_u16, 6, "C0");
    compressed(0x0F00_u16, 6, "FC");
    compressed(0x1000_u16, 10, "8400");
    compressed(0xFFFF_u16, 17, "7FFF80");
    compressed(-2_i16, 17, "7FFF00");
    compressed(0x0300_i16, 6, "CC");
    compressed(0_u32, 8, "F0");
    compressed(0x1234_0000_u32, 19, "C24680");
    compressed(0x1234_5600_u32, 26, "848D1580");
    compressed(0x0700_0000_i32, 8, "F7");
    compressed(0_u64, 12, "FF00");
    compressed(1_u64, 65, "000000000000000080");
    compressed(0x0500_0000_0000_0000_u64, 12, "FF50");
    compressed(0x1234_0000_0000_0000_u64, 23, "FC2468");
    compressed(0x1234_5678_9ABC_DEF0_u64, 65, "091A2B3C4D5E6F7800");
    compressed(-1_i64, 65, "7FFFFFFFFFFFFFFF80");
    compressed(0x1000_0000_0000_0000_i64, 16, "FE10");
    // Types without a compressed form.
    compressed(true, 1, "80");
    compressed(U24::new(5), 24, "050000");
}

#[test]
fn fractions_match_the_captures() {
    for (value, hex) in [(-1.0, "0000"), (0.0, "7FFF"), (-0.25, "5FFF"), (0.999, "FFDE")] {
        written(16, hex, |writer| writer.write_compressed::<f32>(value));
        assert!((read(16, hex, |r| r.read_compressed::<f32>()) - value).abs() < 0.000_04);
    }
    for (value, hex) in [(-1.0, "00000000"), (0.0, "80000000"), (-0.25, "60000000"), (0.999, "FFDF3B64")] {
        written(32, hex, |writer| writer.write_compressed::<f64>(value));
        assert!((read(32, hex, |r| r.read_compressed::<f64>()) - value).abs() < 0.000_000_001);
    }
    for (value, range, hex) in [
        (0.0, 0.0..=10.0, "0000"),
        (10.0, 0.0..=10.0, "FFFF"),
        (-49.5, -50.0..=50.0, "0147"),
        (1.0, -1.0..=1.0, "FFFF"),
        (0.333, -1.0..=1.0, "AA9F"),
    ] {
        written(16, hex, |writer| writer.float16(value, range.clone()));
        assert!((read(16, hex, |r| r.float16(range.clone())) - value).abs() < 0.002);
    }
}

/// Checks an integer of a range with the given treatment of values outside the range.
fn ranged<T: Integer + Debug>(
    value: T,
    range: core::ops::RangeInclusive<T>,
    outside: OutOfRange,
    count: usize,
    hex: &str,
) {
    written(count, hex, |writer| writer.ranged(value, range.clone(), outside));
    assert_eq!(read(count, hex, |reader| reader.ranged(range.clone(), outside)), value);
}

#[test]
fn ranges_match_the_captures() {
    use OutOfRange::{Flag, Reject};
    ranged(200_u8, 100..=250, Reject, 8, "64");
    ranged(-1_i8, -2..=2, Reject, 3, "20");
    ranged(-300_i16, -1_000..=1_000, Reject, 11, "BC40");
    ranged(65_535_u16, 0..=65_535, Reject, 16, "FFFF");
    ranged(70_000_i32, -5..=100_000, Reject, 17, "751180");
    ranged(7_i32, 0..=10, Flag, 5, "38");
    ranged(-7_i32, 0..=10, Flag, 33, "FFFFFFFC80");
    ranged(u32::MAX, 0..=u32::MAX - 1, Flag, 33, "FFFFFFFF80");
    ranged(5_000_000_000_u64, 0..=8_000_000_000, Reject, 33, "00F2052A80");
    ranged(-5_i64, -10..=10, Reject, 5, "28");
    ranged(9_000_000_000_u64, 0..=8_000_000_000, Flag, 65, "800000010C388D0000");
}

#[test]
fn vectors_match_the_captures() {
    for (vector, count, hex) in [
        ([0.0, 0.0, 0.0], 32, "00000000"),
        ([0.000_01, 0.0, 0.0], 32, "3727C5AC"),
        ([0.000_02, 0.0, 0.0], 80, "37A7C5ACFFFF7FFF7FFF"),
        ([1.0, 0.0, 0.0], 80, "3F800000FFFF7FFF7FFF"),
        ([0.0, -1.0, 0.0], 80, "3F8000007FFF00007FFF"),
        ([0.0, 0.0, 2.0], 80, "400000007FFF7FFFFFFF"),
        ([-1.5, 2.25, 1_000.0], 80, "447A003C7FCE8049FFFE"),
        ([1.0, 2.0, 3.0], 80, "406F7751A234C46AE69F"),
        ([-30_000.0, 40_000.0, 0.0], 80, "474350003332E6657FFF"),
    ] {
        written(count, hex, |writer| writer.vector(vector));
        let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt().max(1.0);
        near(read(count, hex, |r| r.vector()).map(|part| part / length), vector.map(|part| part / length));
    }
}

#[test]
fn unit_vectors_match_the_captures() {
    for (vector, hex) in [
        ([1.0, 0.0, 0.0], "FFFF7FFF7FFF"),
        ([0.0, -1.0, 0.0], "7FFF00007FFF"),
        ([0.0, 0.0, 1.0], "7FFF7FFFFFFF"),
        ([0.267_261, 0.534_522, 0.801_784], "A234C46AE69F"),
        ([-0.577_35, 0.577_35, -0.577_35], "3619C9E53619"),
    ] {
        written(48, hex, |writer| writer.unit_vector(vector));
        near(read(48, hex, |reader| reader.unit_vector()), vector);
    }
}

#[test]
fn unit_quaternions_match_the_captures() {
    const HALF_ROOT: f32 = core::f32::consts::FRAC_1_SQRT_2;
    for ([w, x, y, z], hex) in [
        ([1.0, 0.0, 0.0, 0.0], "00000000000000"),
        ([-1.0, 0.0, 0.0, 0.0], "80000000000000"),
        ([0.0, 1.0, 0.0, 0.0], "0FFFF000000000"),
        ([0.0, 0.0, -1.0, 0.0], "20000FFFF00000"),
        ([0.0, 0.0, 0.0, 1.0], "000000000FFFF0"),
        ([-0.5, 0.5, -0.5, -0.5], "B7FFF7FFF7FFF0"),
        ([HALF_ROOT, 0.0, HALF_ROOT, 0.0], "00000B50400000"),
        ([0.182_574_2, 0.365_148_4, 0.547_722_6, 0.730_296_7], "05D7A8C36BAF30"),
        ([-0.182_574_2, -0.365_148_4, 0.547_722_6, -0.730_296_7], "D5D7A8C36BAF30"),
    ] {
        written(52, hex, |writer| writer.unit_quaternion(Quaternion { w, x, y, z }));
        let found = read(52, hex, |reader| reader.unit_quaternion());
        near([found.x, found.y, found.z], [x, y, z]);
        assert!((found.w - w).abs() < 0.01, "{found:?}");
    }
}

#[test]
fn rotation_matrices_match_the_captures() {
    for (matrix, hex) in [
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "00000000000000"),
        // A quarter turn about each axis.
        ([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]], "0B504000000000"),
        ([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]], "00000B50400000"),
        ([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], "000000000B5040"),
        // A half turn about each axis.
        ([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]], "0FFFF000000000"),
        ([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]], "00000FFFF00000"),
        ([[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]], "000000000FFFF0"),
        // A cyclic permutation of the axes in each direction.
        ([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "07FFF7FFF7FFF0"),
        ([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], "77FFF7FFF7FFF0"),
        ([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]], "000000000727C0"),
        ([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]], "33332666666660"),
    ] {
        written(52, hex, |writer| writer.rotation_matrix(matrix));
        let found = read(52, hex, |reader| reader.rotation_matrix());
        for (found, row) in found.into_iter().zip(matrix) {
            near(found, row);
        }
    }
}

#[test]
fn plain_and_compressed_deltas_match_the_captures() {
    written(1, "00", |writer| writer.write_delta(7_u32, 7));
    written(33, "8000000380", |writer| writer.write_delta(7_u32, 8));
    assert_eq!(read(33, "8000000380", |reader| reader.read_delta(8_u32)), 7);
    written(33, "9FE0000000", |writer| writer.write_delta(1.5_f32, 1.0));
    assert_eq!(read(33, "9FE0000000", |reader| reader.read_delta(1.0_f32)).to_bits(), 1.5_f32.to_bits());
    written(1, "00", |writer| writer.write_delta(false, true));
    written(1, "00", |writer| writer.write_compressed_delta(9_u16, 9));
    written(9, "FA80", |writer| writer.write_compressed_delta(0x0500_0000_u32, 0));
    assert_eq!(read(9, "FA80", |reader| reader.read_compressed_delta(0_u32)), 0x0500_0000);
    written(17, "DFFF80", |writer| writer.write_compressed_delta(0.5_f32, 1.0));
    assert!((read(17, "DFFF80", |reader| reader.read_compressed_delta(1.0_f32)) - 0.5).abs() < 0.000_1);
    written(1, "80", |writer| writer.write_compressed_delta(true, true));
}

#[test]
fn bytes_and_strings_match_the_captures() {
    written(24, "80ABCD", |writer| {
        writer.write(true)?;
        writer.aligned_bytes(&[0xAB, 0xCD])
    });
    // C++ RakNet leaves 5 in the unused bits after these twelve; here they are zero.
    written(12, "34A0", |writer| writer.write_bits(&[0x34, 0xA5], 12, Alignment::Left));
    written(13, "9A50", |writer| {
        writer.write(true)?;
        writer.write_bits(&[0x34, 0x0A], 12, Alignment::Right)
    });
    written(8, "F0", |writer| writer.aligned_bytes_safe(b""));
    written(64, "80000000C0787878", |writer| {
        writer.write(true)?;
        writer.aligned_bytes_safe(b"xxx")
    });
    for (string, count, hex) in [
        (&b""[..], 16, "0000"),
        (b"a", 24, "000161"),
        (b"0123456789~", 104, "000B303132333435363738397E"),
        (b"\n\r\x01\xff", 48, "00040A0D01FF"),
    ] {
        written(count, hex, |writer| writer.string(string));
        assert_eq!(read(count, hex, |reader| Ok(reader.string()?.to_vec())), string);
    }
}

fn compressed_string(string: &[u8], count: usize, hex: &str) {
    written(count, hex, |writer| writer.compressed_string(string));
    let found = read(count, hex, |reader| Ok(reader.compressed_string(&mut [0; 300])?.to_vec()));
    assert_eq!(found, string);
}

#[test]
fn compressed_strings_match_the_captures() {
    compressed_string(b"", 8, "F0");
    compressed_string(b"a", 41, "000000043280");
    compressed_string(b"zzzz", 73, "000000142A954AA55280");
    compressed_string(b"\n\r\x01\xff", 89, "0000001C1B56C15E3274D900");
    compressed_string(b"0123456789~", 169, "000000445453AAB6AF0A8D57455F55D73BBE5FD5B500");
    let pangram = b"The quick brown fox jumps over the lazy dog.";
    let hex = "0000007054B03998B4A1FF3F314973A2A7EAEBD14DF89E33EF03C99555F744CF00";
    compressed_string(pangram, 257, hex);
    written(258, "800000382A581CCC5A50FF9F98A4B9D153F575E8A6FC4F19F781E4CAAAFBA26780", |writer| {
        writer.write(true)?;
        writer.compressed_string(pangram)
    });
}

/// Every byte in order except 0, which terminates a string in C++ RakNet; this covers all its codes.
#[test]
fn the_code_of_every_byte_matches_the_capture() {
    let bytes: std::vec::Vec<u8> = (1..=u8::MAX).collect();
    compressed_string(&bytes, 3_537, ALL_CODES);
}

const ALL_CODES: &str = "\
    000006D82BC62BC7ABC72BC4ABC42BC5ABC54E92CE921B3A4F3A4D56C274867482748E748A74B674B274BE74BA74A674A274\
    AE74A9F2D5F2D1F2DDF2D9F2C5F2C3ABAF9BE59BE593E47CBDAA7D5F431DF2F35ABEF4E5453AAB6AF0A8D57455F55D73BBE5\
    F984E9DF2F957519B32BE5CAA5427699D56562B4F8D556F56C99A7DCC4634EC55D992ACA92AE2AF2B8AF55695E5F2E1F2EDF\
    2EA74CD5B17CA563E8703A6C255DFCB42850CCCEED73E9A9D6AA7CA49D30F94F56D7CA67CA17CA07CA37CA27CAD7CAC7CAF7\
    CAE7CA97CA87CAB7CAA7D957D947D977D967D917D907D937D927D9D7D9C7D9F7D9E7D997D987D9B7D9A7D857D847D877D867\
    D817D807D837D827D8D7D8C7D8F7D8E7D897D887D8B7D8A7DB57DB47DB77DB67DB17DB07DB37DB27DBD7DBC7DBF7DBE7DB97\
    DB87DBB7DBA7DA57DA47DA77DA67DA17DA07DA37DA27DAD7DAC7DAF7DAE7DA97DA87DAB7DAA9D159D149D179D169D119D109\
    D139D129D1D9D1C9D1F9D1E9D199D189D1B9D1A9D059D049D079D069D019D009D039D029D0D9D0C9D0F9D0E9D099D089D0B9\
    D0A57B557B457B757B657B157B057B357B257BD57BC57BF57BE57B957B857BB57BA9D359D349D379D36500";

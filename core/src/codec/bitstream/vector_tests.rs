//! The vectors of docs/raknet.md#bit-stream-vectors, each written and read back.

use std::format;
use std::string::String;

use super::*;
use crate::cursor::WireError;
use crate::serial::U24;

pub(super) type Written = Result<(), WireError>;

/// Writes, compares bit count and bytes, and gives the bytes to read.
pub(super) fn written(count: usize, hex: &str, write: impl FnOnce(&mut BitStreamWriter<'_>) -> Written) {
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

/// Reads all of a vector, and checks that no bit less is enough.
pub(super) fn read<T>(
    count: usize,
    hex: &str,
    read: impl Fn(&mut BitStreamReader<'_>) -> Result<T, WireError>,
) -> T {
    let bytes = bytes(hex);
    for short in 0..count {
        let mut reader = BitStreamReader::with_bits(&bytes, short).expect("fewer than there are");
        assert!(read(&mut reader).is_err(), "{hex}: {short} bits were enough");
    }
    let mut reader = BitStreamReader::with_bits(&bytes, count).expect("as many as there are");
    let value = read(&mut reader).expect("a vector");
    assert_eq!(reader.remaining(), 0, "{hex}");
    value
}

pub(super) fn compressed<T: Item + core::fmt::Debug>(value: T, count: usize, hex: &str) {
    written(count, hex, |writer| writer.write_compressed(value));
    assert_eq!(read(count, hex, |r| r.read_compressed::<T>()), value);
}

pub(super) fn near(found: Vector, wanted: Vector) {
    for (found, wanted) in found.into_iter().zip(wanted) {
        assert!((found - wanted).abs() < 0.001, "{found} is not {wanted}");
    }
}

#[test]
fn bits_and_aligned_scalars() {
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
fn bits_of_bytes() {
    written(5, "A8", |writer| writer.write_bits(&[0x15], 5, Alignment::Right));
    // The original leaves 101 in the bits after the five (15), which do not count; here they are zero.
    written(5, "10", |writer| writer.write_bits(&[0x15], 5, Alignment::Left));
    written(12, "34A0", |writer| writer.write_bits(&[0x34, 0x0A], 12, Alignment::Right));
    let mut out = [0; 2];
    BitStreamReader::new(&[0x34, 0xA0]).read_bits(&mut out, 12, Alignment::Right).expect("12 bits");
    assert_eq!(out, [0x34, 0x0A]);
    BitStreamReader::new(&[0x15]).read_bits(&mut out, 5, Alignment::Left).expect("5 bits");
    assert_eq!(out, [0x10, 0x0A]);
}

#[test]
fn compressed_numbers() {
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
fn floats_vectors_and_quaternions() {
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
fn integers_of_a_range() {
    written(4, "70", |writer| writer.ranged(7_u32, 0..=10, Outside::Refused));
    assert_eq!(read(4, "70", |reader| reader.ranged(0..=10_u32, Outside::Refused)), 7);
    written(10, "2C40", |writer| writer.ranged(300_u32, 0..=1000, Outside::Refused));
    assert_eq!(read(10, "2C40", |reader| reader.ranged(0..=1000_u32, Outside::Refused)), 300);
    written(33, "800003E800", |writer| writer.ranged(2000_u32, 0..=1000, Outside::Flagged));
    assert_eq!(read(33, "800003E800", |reader| reader.ranged(0..=1000_u32, Outside::Flagged)), 2000);
    written(0, "", |writer| writer.ranged(5_u32, 5..=5, Outside::Refused));
    assert_eq!(read(0, "", |reader| reader.ranged(5..=5_u32, Outside::Refused)), 5);
}

#[test]
fn deltas() {
    written(1, "00", |writer| writer.write_delta(1_u16, 1));
    assert_eq!(read(1, "00", |reader| reader.read_delta(1_u16)), 1);
    written(17, "800100", |writer| writer.write_delta(2_u16, 1));
    assert_eq!(read(17, "800100", |reader| reader.read_delta(1_u16)), 2);
}

#[test]
fn strings() {
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

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cursor::WireError;

/// What was written and must read back.
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

/// The slow way: a list of bits.
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

    let mut reader = BitReader::<O>::with_bits(&expected, bits.len()).expect("that many bits");
    read_all(pieces, &mut reader).expect("all of it is there");
    assert_eq!((reader.position(), reader.remaining()), (bits.len(), 0));

    let last_byte = bits.len().saturating_sub(1) / 8;
    if let Some(short) = buffer.get_mut(..last_byte) {
        let written = write_all(pieces, &mut BitWriter::<O>::new(short));
        assert_eq!(written.is_err(), bits.len() > last_byte * 8);
    }
    let step = if cfg!(miri) { 500 } else { 1 };
    for length in (0..bits.len()).step_by(step) {
        let mut reader = BitReader::<O>::with_bits(&expected, length).expect("fewer bits");
        // Padding at the end may be cut off without loss.
        let _ = read_all(pieces, &mut reader);
        assert!(reader.position() <= length);
    }
}

/// Miri takes seconds for what takes milliseconds otherwise.
const CASES: u32 = if cfg!(miri) { 2 } else { 128 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_orders_agree_with_a_list_of_bits(pieces in pieces()) {
        check::<Msb>(&pieces, true);
        check::<Lsb>(&pieces, false);
    }

    #[test]
    fn a_read_that_fails_takes_nothing(bytes: Vec<u8>, start in 0..64_usize, count in 0..200_usize) {
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
fn the_example_of_the_game_protocol_is_lsb_first() {
    let mut buffer = [0; 2];
    let mut writer = BitWriter::<Lsb>::new(&mut buffer);
    for (number, count) in [(15, 5), (81, 7), (1, 2)] {
        writer.bits(number, count).expect("14 bits fit");
    }
    assert_eq!(writer.finish(), [0x2F, 0x1A]);
}

#[test]
fn more_than_64_bits_are_no_number() {
    let mut buffer = [0; 16];
    assert_eq!(BitWriter::<Msb>::new(&mut buffer).bits(0, 65), Err(WireError::BadLength));
    assert_eq!(BitReader::<Msb>::new(&buffer).bits(65), Err(WireError::BadLength));
}

#[test]
fn alignment_stops_at_the_end() {
    let mut reader = BitReader::<Msb>::with_bits(&[0xFF; 8], 57).expect("57 of 64");
    reader.skip(57).expect("all");
    reader.align();
    assert_eq!(reader.remaining(), 0);
    assert_eq!(reader.aligned_bytes(0), Ok(&[][..]));
    assert_eq!(reader.aligned_bytes(1), Err(WireError::Truncated));
    assert!(BitReader::<Msb>::with_bits(&[0], 9).is_err());
}

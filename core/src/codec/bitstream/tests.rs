//! Laws that hold for all values, and the ends of the ranges.

use core::net::SocketAddr;
use core::ops::RangeInclusive;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cursor::WireError;
use crate::raknet::{Guid, NetworkId};
use crate::serial::U24;

/// Checks that what `write` writes after `lead` bits reads back, and that no bit less is enough.
fn law<T>(
    lead: u32,
    write: impl Fn(&mut BitStreamWriter<'_>) -> Result<(), WireError>,
    read: impl Fn(&mut BitStreamReader<'_>) -> Result<T, WireError>,
) -> T {
    let mut buffer = [0xEE; 300];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.bits().bits(u64::MAX, lead).expect("room");
    write(&mut writer).expect("300 bytes are enough");
    let end = writer.position();
    let bytes = writer.finish().to_vec();
    for short in (lead as usize)..end {
        let mut reader = BitStreamReader::with_bits(&bytes, short).expect("fewer");
        reader.bits().bits(lead).expect("the lead is there");
        assert!(read(&mut reader).is_err(), "{short} of {end} bits were enough");
    }
    for room in 0..end / 8 {
        let mut writer = BitStreamWriter::new(&mut buffer[..room]);
        let written = writer.bits().bits(u64::MAX, lead).and_then(|()| write(&mut writer));
        assert_eq!(written, Err(WireError::NoRoom));
    }
    let mut reader = BitStreamReader::with_bits(&bytes, end).expect("all");
    reader.bits().bits(lead).expect("the lead is there");
    let value = read(&mut reader).expect("what was written");
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
    for outside in [Outside::Refused, Outside::Flagged] {
        let write = |w: &mut BitStreamWriter<'_>| w.ranged(value, range.clone(), outside);
        assert_eq!(law(lead, write, |r| r.ranged(range.clone(), outside)), value);
    }
    if value != last {
        let write = |w: &mut BitStreamWriter<'_>| w.ranged(value, last..=last, Outside::Flagged);
        assert_eq!(law(lead, write, |r| r.ranged(last..=last, Outside::Flagged)), value);
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
    fn integers_come_back(lead in 0..9_u32, value: u64, last: u64, shift in 0..64_u32) {
        // Shifted both ways, so that zero bytes stand at both ends.
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
    fn other_items_come_back(lead in 0..9_u32, value: u64, last: u64, to in address(), from in address()) {
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
    fn bytes_and_strings_come_back(lead in 0..9_u32, bytes in proptest::collection::vec(any::<u8>(), 1..70)) {
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
            writer.write_bits(&bits, count, alignment).expect("room");
            let again = writer.finish();
            let mut first = [0; 300];
            let mut writer = BitStreamWriter::new(&mut first);
            writer.write_bits(&bytes, count, alignment).expect("room");
            prop_assert_eq!(again, writer.finish());
        }
    }

    #[test]
    fn fractions_come_back_nearly(lead in 0..9_u32, x in -1.0..=1.0_f32, y in -1.0..=1.0_f32, z in -1.0..=1.0_f32) {
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
    fn rotations_come_back_nearly(parts in [-1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32, -1.0..=1.0_f32]) {
        let length = libm::sqrtf(parts.iter().map(|part| part * part).sum());
        prop_assume!(length > 0.1);
        let [w, x, y, z] = parts.map(|part| part / length);
        // A rotation and its negative are the same; w near 0 has its size from what the others lost to rounding.
        let rotation = Quaternion { w, x, y, z };
        let read = law(3, |writer| writer.unit_quaternion(rotation), |r| r.unit_quaternion());
        let same = |read: Quaternion| (read.w * w + read.x * x + read.y * y + read.z * z).abs();
        prop_assert!(same(read) > 0.999_9, "{:?} is not {:?}", read, rotation);
        let matrix = law(0, |writer| writer.unit_quaternion(rotation), |r| r.rotation_matrix());
        let again = law(3, |writer| writer.rotation_matrix(matrix), |r| r.unit_quaternion());
        prop_assert!(same(again) > 0.999, "{:?} is not {:?}", again, rotation);
    }

    #[test]
    fn nothing_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..60), lead in 0..9_u32) {
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
        let _ = fresh().ranged(3..=1000_u16, Outside::Flagged);
        let _ = fresh().vector();
        let _ = fresh().rotation_matrix();
        let _ = fresh().float16(0.0..=1.0);
    }
}

#[test]
fn ends_of_fractions() {
    let write = |value: f32| law(0, move |w| w.write_compressed(value), |r| r.read::<u16>());
    assert_eq!([-1.0, -2.0, 1.0, 2.0, f32::NAN].map(write), [0, 0, 0xFFFF, 0xFFFF, 0]);
    let write = |value: f64| law(0, move |w| w.write_compressed(value), |r| r.read::<u32>());
    assert_eq!([-1.0, -2.0, 1.0, 2.0, f64::NAN].map(write), [0, 0, u32::MAX, u32::MAX, 0]);
    let write = |value: f32| law(0, move |w| w.float16(value, 0.0..=10.0), |r| r.read::<u16>());
    assert_eq!([-1.0, 0.0, 10.0, 11.0, f32::NAN].map(write), [0, 0, 0xFFFF, 0xFFFF, 0]);
}

#[test]
fn what_the_format_forbids_is_refused() {
    let mut buffer = [0; 16];
    let mut writer = BitStreamWriter::new(&mut buffer);
    assert_eq!(writer.ranged(1_u8, RangeInclusive::new(2, 1), Outside::Flagged), Err(WireError::BadValue));
    assert_eq!(writer.ranged(3_i8, -2..=2, Outside::Refused), Err(WireError::BadValue));
    assert_eq!(writer.vector([f32::MAX, 0.0, 0.0]), Err(WireError::BadValue));
    assert_eq!(writer.vector([f32::NAN, 0.0, 0.0]), Err(WireError::BadValue));
    assert_eq!(writer.string(&vec![0; 65_536]), Err(WireError::BadLength));
    assert_eq!(writer.write_bits(&[1], 9, Alignment::Right), Err(WireError::BadLength));
    for range in [1.0..=1.0, 2.0..=1.0, 0.0..=f32::INFINITY, f32::NAN..=1.0] {
        assert_eq!(writer.float16(1.0, range), Err(WireError::BadValue));
    }
    assert_eq!(writer.position(), 0);

    let mut reader = BitStreamReader::new(&[0xFF; 16]);
    assert_eq!(reader.ranged(0..=10_u8, Outside::Refused), Err(WireError::BadValue));
    assert_eq!(BitStreamReader::new(&[0x7F, 0x80, 0, 0]).vector(), Err(WireError::BadValue));
    assert_eq!(BitStreamReader::new(&[0x7F, 0xC0, 0, 0]).vector(), Err(WireError::BadValue));
}

#[test]
fn counts_from_the_network_are_not_trusted() {
    // Four billion bytes, and as many bits, of which none are there.
    let huge = [0x7F, 0xFF, 0xFF, 0xFF, 0x80];
    assert_eq!(BitStreamReader::new(&huge).aligned_bytes_safe(100), Err(WireError::BadLength));
    assert_eq!(BitStreamReader::new(&huge).aligned_bytes_safe(usize::MAX), Err(WireError::Truncated));
    assert_eq!(BitStreamReader::new(&huge).compressed_string(&mut [0; 4]), Err(WireError::Truncated));
    let mut buffer = [0; 16];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.compressed_string(b"hello").expect("room");
    assert_eq!(
        BitStreamReader::new(writer.finish()).compressed_string(&mut [0; 4]),
        Err(WireError::BadLength)
    );
}

#[test]
fn empty_strings_still_align() {
    let mut buffer = [0; 8];
    let mut writer = BitStreamWriter::new(&mut buffer);
    writer.write(true).expect("room");
    writer.string(b"").expect("room");
    assert_eq!(writer.position(), 24);
    writer.compressed_string(b"").expect("room");
    assert_eq!(writer.position(), 32);
    writer.aligned_bytes_safe(b"").expect("room");
    assert_eq!(writer.finish(), [0x80, 0, 0, 0xF0, 0xF0]);
}

#[test]
fn a_delta_of_a_bit_is_the_bit() {
    let bits: Vec<bool> = [true, false].into_iter().collect();
    for (value, last) in bits.iter().zip(bits.iter().rev()) {
        assert_eq!(law(0, |w| w.write_delta(*value, *last), |r| r.read::<bool>()), *value);
        assert_eq!(law(0, |w| w.write_compressed_delta(*value, *last), |r| r.read::<bool>()), *value);
    }
}

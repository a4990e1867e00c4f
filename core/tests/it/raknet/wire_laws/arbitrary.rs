//! Arbitrary bytes read as every packet, and sealed datagrams.

use proptest::collection::vec;
use proptest::prelude::*;
use rakwire::wire::control::Control;
use rakwire::wire::datagram::{CapsuleHeader, DatagramHeader, Record};
use rakwire::wire::local::Local;
use rakwire::wire::notice::Notice;
use rakwire::wire::offline::{MAGIC, Offline};
use rakwire::wire::protection::{PacketProtection, Plain};
use rakwire::wire::{Reader, SecuritySizes, Source, Value, Wire, WireError};

use super::laws::written;
use crate::support::recorder::{Field, Recorder};
use crate::support::test_protection::TestProtection;

/// Generates bytes that resemble packets: an id, zeros, address versions, and the magic at a valid position.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![4 => any::<u8>(), 2 => Just(0_u8), 1 => Just(1_u8), 2 => Just(4_u8), 1 => Just(6_u8)];
    let magic_at = proptest::sample::select(vec![1_usize, 1, 1, 2, 9, 17]);
    (vec(byte, 0..700), 0_u8..0x24, magic_at, any::<bool>()).prop_map(|(mut bytes, id, at, has_magic)| {
        if let Some(first) = bytes.first_mut() {
            *first = id;
        }
        if has_magic && let Some(room) = bytes.get_mut(at..at + MAGIC.len()) {
            room.copy_from_slice(&MAGIC);
        }
        bytes
    })
}

/// A function that reads a packet and returns it written again.
type Through = fn(&mut Recorder<'_>) -> Result<Vec<u8>, WireError>;

/// Checks that a packet read from `bytes` has the same fields after it was written and read again. Only the bits in
/// `mask` are compared in `flags`.
fn check_arbitrary(bytes: &[u8], mask: u64, through: Through) {
    let mut first = Recorder::new(bytes);
    let Ok(again) = through(&mut first) else { return };
    let mut second = Recorder::new(&again);
    let thrice = through(&mut second).expect("a written packet can be read");
    assert_eq!(again, thrice);
    assert_eq!(second.remaining(), 0);
    let (first, second) = (first.fields(), second.fields());
    assert_eq!(counting(&first, mask), counting(&second, mask));
}

/// Returns the fields that a writer preserves, without padding, truncated fields and hints.
fn counting(fields: &[Field<'_>], mask: u64) -> Vec<String> {
    let first = fields.iter().find(|field| field.name == "first");
    let counts = |field: &&Field<'_>| match field.name {
        "padding" | "encryption" | "single" | "cut-off guid" => false,
        // A range of one number is written as a single number.
        "last" => first.is_none_or(|first| first.value != field.value),
        _ => true,
    };
    let text = |field: &Field<'_>| match (field.name, field.value) {
        ("security" | "challenge follows" | "identity follows", Value::Number(flag)) => {
            format!("{} {}", field.name, flag != 0)
        }
        ("flags", Value::Number(flags)) => format!("flags {}", flags & mask),
        (name, Value::Float(number)) => format!("{name} {:x}", number.to_bits()),
        (name, value) => format!("{name} {value:?}"),
    };
    fields.iter().filter(counts).map(text).collect()
}

fn check_everything(bytes: &[u8]) {
    let all = u64::MAX;
    check_arbitrary(bytes, all, |source| written(&Offline::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Offline::read_with(source, &SecuritySizes::DOCUMENTED)?));
    check_arbitrary(bytes, all, |source| written(&Control::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Control::read_with(source, &SecuritySizes::DOCUMENTED)?));
    check_arbitrary(bytes, all, |source| written(&Notice::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Local::read(source)?));
    check_arbitrary(bytes, all, |source| written(&Record::read(source)?));
    check_arbitrary(bytes, 0xF0, |source| written(&CapsuleHeader::read(source)?));
    let is_data = bytes.first().is_some_and(|flags| flags & 0x60 == 0);
    check_arbitrary(bytes, if is_data { all } else { 0xE0 }, |source| {
        written(&DatagramHeader::read(source)?)
    });
    let _ = Control::read_bits(&mut Reader::new(bytes), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn packets_read_from_arbitrary_bytes_round_trip(bytes in vec(any::<u8>(), 0..120)) {
        check_everything(&bytes);
    }

    #[test]
    fn packets_read_from_plausible_bytes_round_trip(bytes in likely_bytes()) {
        check_everything(&bytes);
    }

    /// An unmodified datagram opens once.
    #[test]
    fn changed_truncated_and_replayed_sealed_datagrams_do_not_open(plain in vec(any::<u8>(), 0..1_400), at in any::<proptest::sample::Index>(), bit in 0..8) {
        let mut datagram = [&plain[..], &[0; 11]].concat();
        prop_assert_eq!(Plain.seal(&mut datagram, plain.len()), Some(plain.len()));
        prop_assert_eq!(Plain.open(&mut datagram[..plain.len()]), Some(plain.len()));
        prop_assert_eq!(&datagram[..plain.len()], &plain[..]);

        let (mut sender, mut receiver) = (TestProtection::default(), TestProtection::default());
        prop_assert_eq!(sender.seal(&mut datagram[..plain.len() + 10], plain.len()), None);
        let length = sender.seal(&mut datagram, plain.len()).expect("space for the tag");
        prop_assert_eq!(length, plain.len() + usize::from(sender.overhead()));
        let mut damaged = datagram.clone();
        damaged[at.index(length)] ^= 1_u8 << bit;
        prop_assert_eq!(receiver.open(&mut damaged), None);
        prop_assert_eq!(receiver.open(&mut datagram.clone()[..length - 1]), None);
        let copy = datagram.clone();
        prop_assert_eq!(receiver.open(&mut datagram), Some(plain.len()));
        prop_assert_eq!(&datagram[..plain.len()], &plain[..]);
        prop_assert_eq!(receiver.open(&mut copy.clone()), None);
    }
}

//! Derives every supported kind of type and compares its encoding with the specification.

use rakwire::codec::rabbit::{ErrorKind, Fingerprint, List, Pack, Reader, Text, Unpack, to_vec, unpack};

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Id(u32);

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Fields {
    #[pack(bits = 5)]
    a: u8,
    #[pack(bits = 7)]
    b: u64,
    #[pack(bits = 2)]
    c: u32,
}

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Bounded<'a> {
    #[pack(max = 2)]
    ids: Vec<Id>,
    #[pack(max = LONGEST)]
    name: Text<'a>,
    #[pack(max = 3)]
    list: List<'a, bool>,
}

const LONGEST: usize = 4;

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
enum One {
    Only(bool),
}

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
enum Five<T> {
    A,
    B(T),
    C { x: u16, y: Option<T> },
    D,
    E(#[pack(bits = 64)] u64, Unit),
}

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Pair<A: Clone, B>
where
    B: PartialEq,
{
    a: A,
    b: B,
}

fn is<T: Pack + for<'a> Unpack<'a> + PartialEq + std::fmt::Debug>(value: T, bytes: &[u8]) {
    assert_eq!(to_vec(&value).as_deref(), Ok(bytes));
    assert_eq!(unpack(bytes), Ok(value));
}

#[test]
fn raw_widths_match_the_documented_example() {
    is(Fields { a: 15, b: 81, c: 1 }, &[0x2F, 0x1A]);
    let error = to_vec(&Fields { a: 32, b: 0, c: 0 }).unwrap_err();
    assert_eq!((error.kind, error.bit), (ErrorKind::TooWide { width: 5 }, 0));
}

#[test]
fn a_struct_is_encoded_as_its_fields() {
    is(Unit, &[]);
    is(Id(1), &[0x04, 0x00]);
    is(Pair { a: true, b: Id(1) }, &[0x09, 0x00]);
    assert_eq!((Unit::MIN_BITS, Id::MIN_BITS, Fields::MIN_BITS), (0, 10, 14));
}

#[test]
fn a_variant_index_takes_as_many_bits_as_the_last_index() {
    is(One::Only(true), &[0x01]);
    is(Five::<bool>::A, &[0x00]);
    is(Five::B(true), &[0x09]);
    is(Five::C { x: 1, y: Some(false) }, &[0x12, 0x10]);
    is(Five::<bool>::D, &[0x03]);
    is(Five::<bool>::E(u64::MAX, Unit), &[0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]);
    assert_eq!((One::MIN_BITS, Five::<bool>::MIN_BITS), (1, 3));
}

#[test]
fn an_unknown_variant_index_is_an_error_with_its_position() {
    let error = unpack::<(bool, Five<bool>)>(&[0x0A]).unwrap_err();
    assert_eq!((error.kind, error.bit), (ErrorKind::UnknownVariant { of: "Five", index: 5 }, 1));
}

#[test]
fn bounds_are_checked_when_packing_and_unpacking() {
    let good =
        Bounded { ids: vec![Id(7); 2], name: Text::new("abcd"), list: List::new(&[true, false, true]) };
    let bytes = to_vec(&good).unwrap();
    assert_eq!(Bounded::unpack(&mut Reader::new(&bytes)), Ok(good.clone()));
    let bad = [
        Bounded { ids: vec![Id(7); 3], ..good.clone() },
        Bounded { name: Text::new("abcde"), ..good.clone() },
        Bounded { list: List::new(&[true; 4]), ..good },
    ];
    for value in bad {
        assert!(matches!(to_vec(&value).unwrap_err().kind, ErrorKind::TooMany { .. }));
        let same = to_vec(&(value.ids.clone(), value.name.clone(), value.list.clone())).unwrap();
        assert!(matches!(unpack::<Bounded<'_>>(&same).unwrap_err().kind, ErrorKind::TooMany { .. }));
    }
}

/// A type that only one peer writes, and its counterpart that only the other peer reads.
#[derive(Debug, Pack)]
struct Sent<'a>(u16, Text<'a>);

#[derive(Debug, PartialEq, Unpack)]
struct Received {
    number: u16,
    text: String,
}

#[test]
fn pack_and_unpack_can_be_derived_separately() {
    let bytes = to_vec(&Sent(7, Text::new("hey"))).expect("enough space");
    assert_eq!(unpack(&bytes), Ok(Received { number: 7, text: "hey".to_owned() }));
}

#[derive(Clone, Debug, PartialEq, Pack, Unpack)]
struct Tree {
    name: String,
    branches: Vec<Self>,
}

/// A type with handwritten implementations.
struct ByHand;

impl Pack for ByHand {
    fn pack(
        &self,
        writer: &mut rakwire::codec::rabbit::Writer<'_>,
    ) -> Result<(), rakwire::codec::rabbit::Error> {
        writer.bits(5, 3)
    }
}

/// Returns the 64-bit FNV-1a hash of a description.
fn hash(description: &[u8]) -> Option<u64> {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    Some(description.iter().fold(0xCBF2_9CE4_8422_2325, step))
}

#[test]
fn types_with_the_same_bits_have_the_same_fingerprint() {
    assert_eq!(Fingerprint::of::<Unit>(), hash(b""));
    assert_eq!(Fingerprint::of::<Fields>(), hash(b"r\x05r\x07r\x02"));
    assert_eq!(Fingerprint::of::<Bounded<'_>>(), hash(b"[u\x02]t[b]"));
    assert_eq!(Fingerprint::of::<Bounded<'_>>(), Fingerprint::of::<(Vec<u32>, &str, Vec<bool>)>());
    assert_eq!(Fingerprint::of::<Five<i16>>(), Fingerprint::of::<Five<&i16>>());
    assert_ne!(Fingerprint::of::<Five<i16>>(), Fingerprint::of::<Five<u16>>());
    assert_eq!(Fingerprint::of::<One>(), hash(b"<b|>"));
    let numbers = Fingerprint::of::<(u16, u32, (u64, u128), (i16, i32), i64, (i128, f32, f64))>();
    assert_eq!(numbers, hash(b"u\x01u\x02u\x03u\x04i\x01i\x02i\x03i\x04fd"));
    assert_eq!(Fingerprint::of::<(u8, Option<bool>)>(), hash(b"r\x08(b)"));
}

#[test]
fn types_without_a_description_have_no_fingerprint() {
    assert_eq!(Fingerprint::of::<Option<ByHand>>(), None);
    assert_eq!(Fingerprint::of::<Tree>(), None, "the type contains itself");
}

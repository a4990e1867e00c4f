//! What entities of a class look like.

use rakwire::codec::rabbit::Fingerprint;

/// The most fields that a class can have.
pub const MAX_FIELDS: usize = 32;

/// A field of an entity: a number of a fixed width.
///
/// What it means is the application's affair, which also chooses how exact it is. With a [short form](Self::or_short) most
/// changes cost fewer bits; the numbers wrap around, so an angle of a full circle is a field like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(super) bits: u8,
    pub(super) short: u8,
}

impl Field {
    /// A field of 1 to 32 bits.
    #[must_use]
    pub const fn new(bits: u8) -> Self {
        Self { bits, short: 0 }
    }

    /// Where the value has changed by less than half of what `bits` bits hold, only so many bits are sent.
    #[must_use]
    pub const fn or_short(self, bits: u8) -> Self {
        Self { short: bits, ..self }
    }

    const fn is_valid(self) -> bool {
        self.bits >= 1 && self.bits <= 32 && self.short < self.bits
    }

    /// The part of a number that the field can hold.
    pub(super) fn truncate(self, value: u32) -> u32 {
        value & low_bits(self.bits)
    }

    /// The shortest signed way from one value to another, around the end of the numbers if need be.
    pub(super) fn difference(self, from: u32, to: u32) -> i64 {
        signed(to.wrapping_sub(from), self.bits)
    }

    /// Whether the short form leads from one value to another.
    pub(super) fn is_short(self, from: u32, to: u32) -> bool {
        let half = (1_i64 << self.short) >> 1;
        (-half..half).contains(&self.difference(from, to))
    }

    /// The bits of the short form of a value.
    pub(super) fn shorten(self, value: u32) -> u32 {
        value & low_bits(self.short)
    }

    /// The value that has this short form and is nearest to what it was.
    pub(super) fn lengthen(self, was: u32, short: u32) -> u32 {
        let difference = signed(short.wrapping_sub(was), self.short);
        self.truncate((i64::from(was) + difference) as u32)
    }
}

fn low_bits(bits: u8) -> u32 {
    1_u32.checked_shl(bits.into()).map_or(u32::MAX, |end| end - 1)
}

/// The low bits of a number as a signed one.
fn signed(value: u32, bits: u8) -> i64 {
    if bits == 0 {
        return 0;
    }
    let value = i64::from(value & low_bits(bits));
    if value >> (bits - 1) == 0 { value } else { value - (1_i64 << bits) }
}

/// Entities of one kind: all have the same fields. It is known by its place among the classes, which both sides have alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The fields, in the order of their values. Deltas are shortest if those that change most stand first.
    pub fields: &'static [Field],
}

impl Class {
    pub(super) fn bits(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.bits)).sum()
    }
}

/// Why classes cannot be replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassError {
    /// There are none, or more than 256.
    BadCount,
    /// A class has more fields than the plugin has room for, or a field has none of the widths that it can have.
    BadField,
    /// An entity does not fit into a message.
    TooLong,
}

impl core::fmt::Display for ClassError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BadCount => "there must be 1 to 256 classes",
            Self::BadField => "a class has too many fields, or a field with a width that there is not",
            Self::TooLong => "an entity of a class does not fit into a message",
        })
    }
}

impl core::error::Error for ClassError {}

/// Whether classes can be replicated with so many fields, and messages that have so many bits for an entity.
pub(super) fn check(classes: &[Class], fields: usize, room: usize) -> Result<(), ClassError> {
    if classes.is_empty() || classes.len() > 256 {
        return Err(ClassError::BadCount);
    }
    let is_valid = |class: &Class| {
        class.fields.len() <= fields.min(MAX_FIELDS) && class.fields.iter().all(|field| field.is_valid())
    };
    if !classes.iter().all(is_valid) {
        return Err(ClassError::BadField);
    }
    // Every field with its two flags is longer than a whole one.
    let fits = |class: &Class| class.bits() + 2 * class.fields.len() <= room;
    if classes.iter().all(fits) { Ok(()) } else { Err(ClassError::TooLong) }
}

/// Names the classes: two lists with the same fields in the same order have the same. FNV-1a with 64 bits, over the number of
/// fields of each class, and of each field its bits and those of its short form.
pub(super) fn fingerprint(classes: &[Class]) -> u64 {
    let of_class = |class: &'static [Field]| {
        let count = u8::try_from(class.len()).unwrap_or(u8::MAX);
        core::iter::once(count).chain(class.iter().flat_map(|field| [field.bits, field.short]))
    };
    let mut fingerprint = Fingerprint::new();
    for byte in classes.iter().flat_map(|class| of_class(class.fields)) {
        fingerprint.bytes(&[byte]);
    }
    // Every field is described.
    fingerprint.finish().unwrap_or_default()
}

/// The most fields that one of the classes has.
#[cfg(feature = "alloc")]
pub(super) fn most_fields(classes: &[Class]) -> usize {
    classes.iter().map(|class| class.fields.len()).max().unwrap_or(0)
}

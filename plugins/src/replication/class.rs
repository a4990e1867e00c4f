//! The classes of entities and their fields.

use rakwire::codec::rabbit::Fingerprint;

/// The maximum number of fields of a class.
pub const MAX_FIELDS: usize = 32;

/// A field of an entity: a number of a fixed width.
///
/// The application defines its meaning and precision. With a [short form](Self::or_short), small changes take
/// fewer bits. Values wrap around, so that angles need no special handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub(super) bits: u8,
    pub(super) short: u8,
}

impl Field {
    /// Creates a field of 1 to 32 bits.
    #[must_use]
    pub const fn new(bits: u8) -> Self {
        Self { bits, short: 0 }
    }

    /// Adds a short form of `bits` bits, which is sent if the value changed by less than half of the range of these
    /// bits.
    #[must_use]
    pub const fn or_short(self, bits: u8) -> Self {
        Self { short: bits, ..self }
    }

    const fn is_valid(self) -> bool {
        self.bits >= 1 && self.bits <= 32 && self.short < self.bits
    }

    /// Returns the low bits of a value that fit into the field.
    pub(super) fn truncate(self, value: u32) -> u32 {
        value & low_bits(self.bits)
    }

    /// Returns the shortest signed distance from one value to another, with wrap-around.
    pub(super) fn difference(self, from: u32, to: u32) -> i64 {
        signed(to.wrapping_sub(from), self.bits)
    }

    /// Returns true if the short form suffices to get from one value to the other.
    pub(super) fn is_short(self, from: u32, to: u32) -> bool {
        let half = (1_i64 << self.short) >> 1;
        (-half..half).contains(&self.difference(from, to))
    }

    /// Returns the short form of a value.
    pub(super) fn shorten(self, value: u32) -> u32 {
        value & low_bits(self.short)
    }

    /// Returns the value with this short form that is nearest to the previous value.
    pub(super) fn lengthen(self, was: u32, short: u32) -> u32 {
        let difference = signed(short.wrapping_sub(was), self.short);
        self.truncate((i64::from(was) + difference) as u32)
    }
}

fn low_bits(bits: u8) -> u32 {
    1_u32.checked_shl(bits.into()).map_or(u32::MAX, |end| end - 1)
}

/// Returns the low bits of a number, as a signed number.
fn signed(value: u32, bits: u8) -> i64 {
    if bits == 0 {
        return 0;
    }
    let value = i64::from(value & low_bits(bits));
    if value >> (bits - 1) == 0 { value } else { value - (1_i64 << bits) }
}

/// A kind of entity with its fields. It is identified by its index in the list of classes, which must be the
/// same at both peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The fields, in the order of their values. Deltas are shortest if the most frequently changing fields
    /// come first.
    pub fields: &'static [Field],
}

impl Class {
    pub(super) fn bits(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.bits)).sum()
    }
}

/// The reason why a list of classes is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassError {
    /// There are no classes, or more than 256.
    BadCount,
    /// A class has more fields than the plugin's capacity, or a field has an invalid width.
    BadField,
    /// An entity does not fit into a message.
    TooLong,
}

impl core::fmt::Display for ClassError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BadCount => "there must be 1 to 256 classes",
            Self::BadField => "a class has too many fields, or a field has an invalid width",
            Self::TooLong => "an entity of a class does not fit into a message",
        })
    }
}

impl core::error::Error for ClassError {}

/// Checks that classes have at most `fields` fields and that their entities fit into `room` bits of a message.
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
    // The longest record has all fields changed, with two flags each.
    let fits = |class: &Class| class.bits() + 2 * class.fields.len() <= room;
    if classes.iter().all(fits) { Ok(()) } else { Err(ClassError::TooLong) }
}

/// Returns the fingerprint of the classes. It is the same for lists with the same fields in the same order.
///
/// It is the 64-bit FNV-1a hash over the number of fields of each class, and the bits and short bits of each
/// field.
pub(super) fn fingerprint(classes: &[Class]) -> u64 {
    let of_class = |class: &'static [Field]| {
        let count = u8::try_from(class.len()).unwrap_or(u8::MAX);
        core::iter::once(count).chain(class.iter().flat_map(|field| [field.bits, field.short]))
    };
    let mut fingerprint = Fingerprint::new();
    for byte in classes.iter().flat_map(|class| of_class(class.fields)) {
        fingerprint.bytes(&[byte]);
    }
    // Never absent: every field has a description.
    fingerprint.finish().unwrap_or_default()
}

/// Returns the number of fields of the largest class.
#[cfg(feature = "alloc")]
pub(super) fn most_fields(classes: &[Class]) -> usize {
    classes.iter().map(|class| class.fields.len()).max().unwrap_or(0)
}

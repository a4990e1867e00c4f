//! The wire format of replication (docs/plugins/replication.md).

use rakwire::codec::bits::{BitReader, BitWriter, Msb};
use rakwire::wire::WireError;

use super::class::{Class, Field, MAX_FIELDS};
use super::received::Received;

/// The first byte of every message to replicas.
pub const UPDATE_ID: u8 = 130;
/// The first byte of every message to an authority.
pub const REPLY_ID: u8 = 131;

/// The second byte of an acknowledgement.
pub(super) const ACKNOWLEDGEMENT: u8 = 0;
/// The second byte of a message with states of owned entities.
pub(super) const STATE: u8 = 1;
/// The second byte of a message with the fingerprint of a client's classes.
pub(super) const CLASSES: u8 = 2;
/// The tick number of the message with the fingerprint of an authority's classes; no update has this number.
const NO_TICK: u32 = 0;
/// The length of a message before its records, in bytes.
pub(super) const HEADER: usize = 5;
pub(super) const STATE_HEADER: usize = 6;
pub(super) const ACKNOWLEDGEMENT_LENGTH: usize = 10;
/// The maximum number of bits of a message with a single record, without the fields of the record.
pub(super) const OVERHEAD_BITS: usize = 8 * STATE_HEADER + 1 + 33 + FULL_BITS;
/// The bits of a full record before its fields.
const FULL_BITS: usize = 3 + NAME_BITS;
/// The bits that identify an entity.
pub(super) const NAME_BITS: usize = 40;
const REMOVED_BITS: usize = 3;

pub(super) type Writer<'b> = BitWriter<'b, Msb>;
pub(super) type Reader<'b> = BitReader<'b, Msb>;

pub(super) const fn update_header(tick: u32) -> [u8; HEADER] {
    let [a, b, c, d] = tick.to_be_bytes();
    [UPDATE_ID, a, b, c, d]
}

pub(super) const fn state_header(number: u32) -> [u8; STATE_HEADER] {
    let [a, b, c, d] = number.to_be_bytes();
    [REPLY_ID, STATE, a, b, c, d]
}

pub(super) const fn acknowledgement(received: Received) -> [u8; ACKNOWLEDGEMENT_LENGTH] {
    let [a, b, c, d] = received.latest().to_be_bytes();
    let [e, f, g, h] = received.before().to_be_bytes();
    [REPLY_ID, ACKNOWLEDGEMENT, a, b, c, d, e, f, g, h]
}

/// Encodes the message with the fingerprint of an authority's classes.
pub(super) fn classes_of_authority(fingerprint: u64) -> [u8; HEADER + 8] {
    let mut message = [0; HEADER + 8];
    let (header, rest) = message.split_at_mut(HEADER);
    header.copy_from_slice(&update_header(NO_TICK));
    rest.copy_from_slice(&fingerprint.to_be_bytes());
    message
}

/// Decodes the message with the fingerprint of an authority's classes.
pub(super) fn read_classes_of_authority(message: &[u8]) -> Option<u64> {
    let (header, rest) = message.split_first_chunk::<HEADER>()?;
    (*header == update_header(NO_TICK)).then_some(())?;
    rest.try_into().ok().map(u64::from_be_bytes)
}

/// Encodes the message with the fingerprint of a client's classes. It has the length of an acknowledgement.
pub(super) const fn classes_of_client(fingerprint: u64) -> [u8; ACKNOWLEDGEMENT_LENGTH] {
    let [a, b, c, d, e, f, g, h] = fingerprint.to_be_bytes();
    [REPLY_ID, CLASSES, a, b, c, d, e, f, g, h]
}

/// Returns the length of a number in Elias gamma code, in bits.
pub(super) fn gamma_bits(number: usize) -> usize {
    2 * number.max(1).ilog2() as usize + 1
}

pub(super) fn write_gamma(writer: &mut Writer<'_>, number: usize) -> Result<(), WireError> {
    let bits = u32::try_from(gamma_bits(number)).map_err(|_| WireError::BadLength)?;
    writer.bits(number as u64, bits)
}

pub(super) fn read_gamma(reader: &mut Reader<'_>) -> Result<usize, WireError> {
    let mut zeros = 0;
    while !reader.bit()? {
        zeros += 1;
        if zeros > 16 {
            return Err(WireError::BadLength);
        }
    }
    let rest = if zeros == 0 { 0 } else { reader.bits(zeros)? };
    Ok((1 << zeros) | rest as usize)
}

/// The encoding of a field in a delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Change {
    #[default]
    Unchanged,
    Short,
    Whole,
}

/// The content of a record without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    Delta([Change; MAX_FIELDS]),
    Full(Full),
    Removed { is_destroyed: bool },
}

/// The content of a full record without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) generation: u16,
    pub(super) class: u8,
    /// The number of ownership changes so far.
    pub(super) term: u16,
    /// True if the receiver owns the entity.
    pub(super) is_owner: bool,
}

impl Record {
    pub(super) fn bits(&self, class: &Class) -> usize {
        match self {
            Self::Delta(changes) => {
                let fields = class.fields.iter().zip(changes).take(covered(changes));
                let bits: usize = fields.map(|(field, change)| change_bits(*field, *change)).sum();
                // The last covered field has always changed, so it needs no flag.
                gamma_bits(covered(changes)) + bits
            }
            Self::Full(_) => FULL_BITS + class.bits(),
            Self::Removed { .. } => REMOVED_BITS,
        }
    }

    /// Returns the bits of each field, and the other bits; `None` for a record without fields.
    pub(super) fn split_bits(&self, class: &Class, fields: &mut [u16; MAX_FIELDS]) -> Option<u16> {
        let places = fields.iter_mut().zip(class.fields);
        match self {
            Self::Delta(changes) => {
                let last = covered(changes);
                for (number, ((bits, field), change)) in (1..).zip(places.zip(changes)).take(last) {
                    // The last covered field has always changed, so it needs no flag.
                    *bits = (change_bits(*field, *change) - usize::from(number == last)) as u16;
                }
                Some(gamma_bits(last) as u16 + 1)
            }
            Self::Full(_) => {
                places.for_each(|(bits, field)| *bits = field.bits.into());
                Some(FULL_BITS as u16)
            }
            Self::Removed { .. } => None,
        }
    }

    pub(super) fn write(
        &self,
        writer: &mut Writer<'_>,
        class: &Class,
        values: &[u32],
    ) -> Result<(), WireError> {
        match self {
            Self::Delta(changes) => {
                writer.bit(false)?;
                write_changes(writer, class, changes, values)
            }
            Self::Full(full) => {
                writer.bits(0b10, 2)?;
                full.write_name(writer)?;
                writer.bit(full.is_owner)?;
                write_values(writer, class, values)
            }
            Self::Removed { is_destroyed } => {
                writer.bits(0b11, 2)?;
                writer.bit(*is_destroyed)
            }
        }
    }
}

impl Full {
    /// Encodes the identity of the entity.
    pub(super) fn write_name(&self, writer: &mut Writer<'_>) -> Result<(), WireError> {
        writer.bits(self.generation.into(), 16)?;
        writer.bits(self.class.into(), 8)?;
        writer.bits(self.term.into(), 16)
    }

    pub(super) fn read_name(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (generation, class, term) =
            (reader.bits(16)? as u16, reader.bits(8)? as u8, reader.bits(16)? as u16);
        Ok(Self { generation, class, term, is_owner: false })
    }
}

fn change_bits(field: Field, change: Change) -> usize {
    match change {
        Change::Unchanged => 1,
        Change::Short => 2 + usize::from(field.short),
        Change::Whole => 1 + usize::from(field.short > 0) + usize::from(field.bits),
    }
}

/// Returns the number of fields that a delta covers, up to the last changed field.
fn covered(changes: &[Change]) -> usize {
    changes.iter().rposition(|change| *change != Change::Unchanged).map_or(0, |last| last + 1)
}

fn write_changes(
    writer: &mut Writer<'_>,
    class: &Class,
    changes: &[Change],
    values: &[u32],
) -> Result<(), WireError> {
    let covered = covered(changes);
    if covered == 0 {
        return Err(WireError::BadValue);
    }
    write_gamma(writer, covered)?;
    let fields = class.fields.iter().zip(changes).zip(values).take(covered);
    for (number, ((field, change), value)) in (1..).zip(fields) {
        let has_changed = *change != Change::Unchanged;
        if number < covered {
            writer.bit(has_changed)?;
        }
        if has_changed && field.short > 0 {
            writer.bit(*change == Change::Short)?;
        }
        match change {
            Change::Unchanged => {}
            Change::Short => writer.bits(field.shorten(*value).into(), field.short.into())?,
            Change::Whole => writer.bits((*value).into(), field.bits.into())?,
        }
    }
    Ok(())
}

/// Reads the changes of a delta into the values of the entity.
pub(super) fn read_changes(
    reader: &mut Reader<'_>,
    class: &Class,
    values: &mut [u32],
) -> Result<(), WireError> {
    let covered = read_gamma(reader)?;
    if covered > class.fields.len() {
        return Err(WireError::BadLength);
    }
    for (number, (field, value)) in (1..).zip(class.fields.iter().zip(values).take(covered)) {
        if number < covered && !reader.bit()? {
            continue;
        }
        *value = if field.short > 0 && reader.bit()? {
            field.lengthen(*value, reader.bits(field.short.into())? as u32)
        } else {
            reader.bits(field.bits.into())? as u32
        };
    }
    Ok(())
}

pub(super) fn write_values(writer: &mut Writer<'_>, class: &Class, values: &[u32]) -> Result<(), WireError> {
    let mut fields = class.fields.iter().zip(values);
    fields.try_for_each(|(field, value)| writer.bits((*value).into(), field.bits.into()))
}

pub(super) fn read_values(
    reader: &mut Reader<'_>,
    class: &Class,
    values: &mut [u32],
) -> Result<(), WireError> {
    for (field, value) in class.fields.iter().zip(values) {
        *value = reader.bits(field.bits.into())? as u32;
    }
    Ok(())
}

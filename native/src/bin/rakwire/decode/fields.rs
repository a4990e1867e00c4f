//! A source of bytes that remembers every field which a parser takes from it.

use rakwire::wire::{Source, Value, WireError};

/// A field as the parser saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Field<'a> {
    pub(crate) offset: usize,
    pub(crate) name: &'static str,
    pub(crate) bytes: &'a [u8],
    pub(crate) value: Value<'a>,
}

/// Something malformed, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// Bytes that are taken from the front; each field that is told is kept.
#[derive(Clone, Debug)]
pub(crate) struct Recorder<'a> {
    /// What the fields stand in, and where that stands in the datagram.
    bytes: &'a [u8],
    base: usize,
    taken: usize,
    told: usize,
    fields: Vec<Field<'a>>,
}

impl<'a> Recorder<'a> {
    /// A source of `bytes`, which stand at `base` of the datagram.
    pub(crate) const fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, base, taken: 0, told: 0, fields: Vec::new() }
    }

    /// Where the next field begins.
    pub(crate) const fn offset(&self) -> usize {
        self.base + self.told
    }

    /// The fields told since the last call.
    pub(crate) fn fields(&mut self) -> Vec<Field<'a>> {
        std::mem::take(&mut self.fields)
    }

    /// Where `error` is, which the parser met after the fields that were told: the field that it is about, or the one
    /// that could not be read.
    pub(crate) fn locate(&self, error: WireError) -> Malformed {
        let named = |name| self.fields.iter().rfind(|field| field.name == name);
        let culprit = match error {
            WireError::Truncated => None,
            WireError::BadLength => named("length in bits").or_else(|| self.fields.last()),
            WireError::BadChannel => named("ordering channel"),
            WireError::NoRoom
            | WireError::UnknownId
            | WireError::BadMagic
            | WireError::BadSplit
            | WireError::BadRange
            | WireError::BadValue
            | _ => self.fields.last(),
        };
        Malformed {
            offset: culprit.map_or_else(|| self.offset(), |field| field.offset),
            message: error.to_string(),
        }
    }
}

impl<'a> Source<'a> for Recorder<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let taken = self.peek().get(..count).ok_or(WireError::Truncated)?;
        self.taken += count;
        Ok(taken)
    }

    fn peek(&self) -> &'a [u8] {
        self.bytes.get(self.taken..).unwrap_or(&[])
    }

    fn field(&mut self, name: &'static str, length: usize, value: Value<'a>) {
        self.fields.push(Field {
            offset: self.offset(),
            name,
            bytes: self.bytes.get(self.told..self.told + length).unwrap_or(&[]),
            value,
        });
        self.told += length;
    }
}

//! A byte source that records every field that a parser reads.

use rakwire::wire::{Source, Value, WireError};

/// A field as the parser read it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Field<'a> {
    pub(crate) offset: usize,
    pub(crate) name: &'static str,
    pub(crate) bytes: &'a [u8],
    pub(crate) value: Value<'a>,
}

/// An error in the input, with its offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// A byte source that keeps the fields that the parser reports.
#[derive(Clone, Debug)]
pub(crate) struct Recorder<'a> {
    /// The remaining bytes.
    bytes: &'a [u8],
    base: usize,
    taken: usize,
    reported: usize,
    fields: Vec<Field<'a>>,
}

impl<'a> Recorder<'a> {
    /// Creates a source of `bytes`, which start at offset `base` of the datagram.
    pub(crate) const fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, base, taken: 0, reported: 0, fields: Vec::new() }
    }

    /// Returns the offset of the next field.
    pub(crate) const fn offset(&self) -> usize {
        self.base + self.reported
    }

    /// Takes the fields reported since the last call.
    pub(crate) fn fields(&mut self) -> Vec<Field<'a>> {
        std::mem::take(&mut self.fields)
    }

    /// Locates a parser error: at the field it concerns, or at the field that could not be read.
    pub(crate) fn locate(&self, error: WireError) -> Malformed {
        let named = |name| self.fields.iter().rfind(|field| field.name == name);
        let field = match error {
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
            offset: field.map_or_else(|| self.offset(), |field| field.offset),
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
            bytes: self.bytes.get(self.reported..self.reported + length).unwrap_or(&[]),
            value,
        });
        self.reported += length;
    }
}

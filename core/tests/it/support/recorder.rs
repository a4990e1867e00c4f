//! A [`Source`] that records every parsed field.

use rakwire::wire::{Source, Value, WireError};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: Value<'a>,
}

#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    bytes: &'a [u8],
    fields: Vec<Field<'a>>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, fields: Vec::new() }
    }

    /// Returns the fields that were parsed since the last call.
    pub(crate) fn fields(&mut self) -> Vec<Field<'a>> {
        core::mem::take(&mut self.fields)
    }
}

impl<'a> Source<'a> for Recorder<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    fn field(&mut self, name: &'static str, _length: usize, value: Value<'a>) {
        self.fields.push(Field { name, value });
    }
}

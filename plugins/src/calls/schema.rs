//! Fingerprints of the argument and answer types (docs/plugins/calls.md#schemas).

use rakwire::codec::rabbit::{Fingerprint, Pack};

use super::wire::MAX_SCHEMA;

/// The fingerprint of a schema: the arguments and the answer of a function, or the arguments of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schema(u32);

impl Schema {
    /// Returns the fingerprint of a function with arguments `A` and answer `B`; `None` if one of the types
    /// has none.
    pub(super) fn of_function<A: Pack, B: Pack>() -> Option<Self> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.nested::<A>();
        fingerprint.bytes(b"=");
        fingerprint.nested::<B>();
        fingerprint.finish().map(Self::of)
    }

    /// Returns the fingerprint of a signal with arguments `A`; `None` if the type has none.
    pub(super) fn of_signal<A: Pack>() -> Option<Self> {
        let mut fingerprint = Fingerprint::new();
        fingerprint.nested::<A>();
        fingerprint.bytes(b"!");
        fingerprint.finish().map(Self::of)
    }

    fn of(fingerprint: u64) -> Self {
        let [.., a, b, c, d] = fingerprint.to_be_bytes();
        Self(u32::from_be_bytes([a, b, c, d]))
    }

    /// Returns the trailer of the arguments: the fingerprint, and four bytes that mark it as such.
    fn trailer(self, name: &[u8]) -> [u8; MAX_SCHEMA] {
        let [a, b, c, d] = self.0.to_be_bytes();
        let mut check = Fingerprint::new();
        check.bytes(&[a, b, c, d]);
        check.bytes(name);
        let Self(check) = Self::of(check.finish().unwrap_or_default());
        let [e, f, g, h] = check.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }

    /// Appends the trailer to the arguments at the start of a buffer. Returns both, or `None` if they do not
    /// fit.
    pub(super) fn append<'b>(
        schema: Option<Self>,
        name: &str,
        buffer: &'b mut [u8],
        length: usize,
    ) -> Option<&'b [u8]> {
        let Some(schema) = schema else { return buffer.get(..length) };
        let end = length.checked_add(MAX_SCHEMA)?;
        buffer.get_mut(length..end)?.copy_from_slice(&schema.trailer(name.as_bytes()));
        buffer.get(..end)
    }

    /// Separates the arguments of a message from the fingerprint that may follow them.
    pub(super) fn split<'m>(name: &[u8], arguments: &'m [u8]) -> (&'m [u8], Option<Self>) {
        let Some((rest, trailer)) = arguments.split_last_chunk::<MAX_SCHEMA>() else {
            return (arguments, None);
        };
        let [a, b, c, d, ..] = *trailer;
        let schema = Self(u32::from_be_bytes([a, b, c, d]));
        if schema.trailer(name) == *trailer { (rest, Some(schema)) } else { (arguments, None) }
    }
}

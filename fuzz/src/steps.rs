//! Splits an input into steps.

/// A step of an input: one byte of flags, one byte of length, and that many bytes of content.
pub(crate) struct Step<'a> {
    pub(crate) flags: u8,
    pub(crate) bytes: &'a [u8],
}

/// Splits an input into steps. The last step may be shorter than its length byte requires.
pub(crate) fn steps(mut input: &[u8]) -> impl Iterator<Item = Step<'_>> {
    std::iter::from_fn(move || {
        let [flags, length, rest @ ..] = input else { return None };
        let (bytes, after) = rest.split_at(rest.len().min(usize::from(*length)));
        input = after;
        Some(Step { flags: *flags, bytes })
    })
}

//! The fields of an advertisement, and the semicolons in them.

use core::fmt::{self, Write};

/// A text in an advertisement.
///
/// It is made from a `&str`. Read from the wire it is lent in its escaped form, and compared and displayed without it.
///
/// ```
/// use rakwire::codec::advertisement::{Advertisement, Text};
///
/// let read = Advertisement::parse(br"MCPE;a\;b;594;1.20.13;0;10;")?;
/// assert_eq!(read.motd, Text::from("a;b"));
/// assert_eq!(read.motd.to_string(), "a;b");
/// assert_eq!(read.motd.as_written(), r"a\;b");
/// # Ok::<(), rakwire::wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Text<'a> {
    text: &'a str,
    form: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Plain,
    /// With `\;` for a semicolon.
    Escaped,
}

impl<'a> Text<'a> {
    pub(super) const fn escaped(text: &'a str) -> Self {
        Self { text, form: Form::Escaped }
    }

    /// The text as it was lent: what [`From`] was given, or the field as it stood on the wire, escapes and all.
    #[must_use]
    pub const fn as_written(&self) -> &'a str {
        self.text
    }

    /// Whether there is no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The characters of the text, without escapes.
    pub fn chars(&self) -> impl Iterator<Item = char> + use<'a> {
        let escaped = self.form == Form::Escaped;
        let mut chars = self.text.chars().peekable();
        core::iter::from_fn(move || match chars.next()? {
            '\\' if escaped && chars.peek() == Some(&';') => chars.next(),
            other => Some(other),
        })
    }

    /// Appends the text, escaped, and the semicolon that ends it.
    pub(super) fn write_field(&self, sink: &mut impl Write) -> fmt::Result {
        for char in self.chars() {
            if char == ';' {
                sink.write_char('\\')?;
            }
            sink.write_char(char)?;
        }
        sink.write_char(';')
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self { text, form: Form::Plain }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.chars().eq(other.chars())
    }
}

impl Eq for Text<'_> {}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|char| f.write_char(char))
    }
}

/// The fields of a text, in their escaped form.
pub(super) struct Fields<'a> {
    rest: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = self.rest.as_bytes();
        let ends = |place: &usize| place.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'\\');
        let end = self.rest.match_indices(';').map(|(place, _)| place).find(ends);
        let (field, rest) = end.and_then(|end| self.rest.split_at_checked(end)).unwrap_or((self.rest, ""));
        self.rest = rest.get(1..).unwrap_or_default();
        Some(field)
    }
}

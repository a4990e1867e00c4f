use core::fmt;
use core::fmt::Write as _;

use super::{Counted, Error, ErrorKind, Fingerprint, Pack, Reader, Unpack, UnpackBounded, Writer, sequence};

/// Text that takes no memory: a string, or packed characters that are read each time they are asked for.
///
/// ```
/// use rakwire::codec::rabbit::{Reader, Text, Unpack, pack};
///
/// let mut buffer = [0; 16];
/// let packed = pack(&Text::new("snow ☃"), &mut buffer)?;
/// let text = Text::unpack(&mut Reader::new(packed))?;
/// assert_eq!((text.len(), text.to_string()), (8, "snow ☃".to_owned()));
/// # Ok::<(), rakwire::codec::rabbit::Error>(())
/// ```
#[derive(Clone)]
pub struct Text<'a> {
    characters: Characters<'a>,
}

#[derive(Clone)]
enum Characters<'a> {
    String(&'a str),
    Packed { first: Reader<'a>, bytes: u32 },
}

impl<'a> Text<'a> {
    /// This text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { characters: Characters::String(text) }
    }

    /// How many bytes it has as UTF-8.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.characters {
            Characters::String(text) => text.len(),
            Characters::Packed { bytes, .. } => *bytes as usize,
        }
    }

    /// Whether there is no character.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The characters, in order.
    #[must_use]
    pub fn chars(&self) -> Chars<'a> {
        Chars { rest: self.characters.clone() }
    }
}

/// The characters of a [`Text`].
///
/// ```
/// assert_eq!(rakwire::codec::rabbit::Text::new("ab").chars().last(), Some('b'));
/// ```
#[derive(Clone, Debug)]
pub struct Chars<'a> {
    rest: Characters<'a>,
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match &mut self.rest {
            Characters::String(text) => {
                let mut chars = text.chars();
                let first = chars.next();
                *text = chars.as_str();
                first
            }
            // It was read before, without an error.
            Characters::Packed { first, bytes } => character(first, bytes).ok().flatten(),
        }
    }
}

/// Takes a character of a text that has `left` more bytes.
fn character(reader: &mut Reader<'_>, left: &mut u32) -> Result<Option<char>, Error> {
    if *left == 0 {
        return Ok(None);
    }
    let bad = reader.error(ErrorKind::BadUtf8);
    let first = reader.byte()?;
    let length = match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    };
    *left = left.checked_sub(length).ok_or(bad)?;
    let mut bytes = [first, 0, 0, 0];
    let used = bytes.get_mut(..length as usize).ok_or(bad)?;
    reader.bytes(used.get_mut(1..).unwrap_or_default())?;
    let text = core::str::from_utf8(used).map_err(|_| bad)?;
    Ok(text.chars().next())
}

impl Counted for Text<'_> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl Pack for Text<'_> {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        if let Characters::String(text) = self.characters {
            return text.pack(writer);
        }
        writer.count(self.len())?;
        self.chars().try_for_each(|character| {
            let mut bytes = [0; 4];
            writer.bytes(character.encode_utf8(&mut bytes).as_bytes())
        })
    }

    fn describe(fingerprint: &mut Fingerprint) {
        str::describe(fingerprint);
    }
}

impl<'a> Unpack<'a> for Text<'a> {
    const MIN_BITS: usize = u32::MIN_BITS;

    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Self::unpack_bounded(reader, usize::MAX)
    }
}

impl<'a> UnpackBounded<'a> for Text<'a> {
    fn unpack_bounded(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error> {
        let bytes = sequence::count::<u8>(reader, max)?;
        let first = reader.clone();
        let mut left = bytes;
        while character(reader, &mut left)?.is_some() {}
        Ok(Self { characters: Characters::Packed { first, bytes } })
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.chars().eq(other.chars())
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Text::new(other)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chars().try_for_each(|character| f.write_char(character))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.chars().flat_map(char::escape_debug).try_for_each(|character| f.write_char(character))?;
        f.write_char('"')
    }
}

impl fmt::Debug for Characters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Text { characters: self.clone() }, f)
    }
}

//! Sequences and text: owned types from `heapless` and, with the feature `alloc`, from the standard library; and
//! borrowed types.

use core::fmt::{self, Write as _};
use core::marker::PhantomData;

use super::{Counted, Error, ErrorKind, Fingerprint, Pack, Reader, Unpack, UnpackBounded, Writer};

/// Takes a count that is at most `max` and at most the number of elements that the rest of the input can hold.
fn count<'a, T: Unpack<'a>>(reader: &mut Reader<'a>, max: usize) -> Result<u32, Error> {
    const { assert!(T::MIN_BITS > 0, "a count of elements without bits would be unbounded") };
    let before = reader.position();
    let count = u32::unpack(reader)?;
    let limit = (reader.remaining() / T::MIN_BITS).min(max);
    if count as usize > limit {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        return Err(Error { kind: ErrorKind::TooMany { count, limit }, bit: before });
    }
    Ok(count)
}

impl Writer<'_> {
    /// Appends the number of elements or bytes that follow.
    ///
    /// # Errors
    /// [`ErrorKind::TooMany`] if `count` exceeds a `u32`, [`ErrorKind::NoRoom`] if the buffer is full.
    pub fn count(&mut self, count: usize) -> Result<(), Error> {
        let Ok(number) = u32::try_from(count) else {
            return Err(self.error(ErrorKind::TooMany { count: u32::MAX, limit: u32::MAX }));
        };
        number.pack(self)
    }
}

/// The number of elements, then the elements.
impl<T: Pack> Pack for [T] {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.count(self.len())?;
        self.iter().try_for_each(|element| element.pack(writer))
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"[");
        fingerprint.nested::<T>();
        fingerprint.bytes(b"]");
    }
}

/// The length in bytes, then UTF-8.
impl Pack for str {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.count(self.len())?;
        writer.bytes(self.as_bytes())
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"t");
    }
}

impl<T> Counted for [T] {
    fn count(&self) -> usize {
        self.len()
    }
}

impl Counted for str {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: Counted + ?Sized> Counted for &T {
    fn count(&self) -> usize {
        (**self).count()
    }
}

/// Implements the traits for `$type`, with a capacity of `$max` elements or bytes, through the implementations of its
/// slice or text.
///
/// The type itself only implements [`UnpackBounded::unpack_bounded`].
macro_rules! sequence {
    ($type:ty, $slice:ty, $max:expr, <$($element:ident)? $(; const $n:ident: usize)?>) => {
        impl<$($element,)? $(const $n: usize)?> Counted for $type {
            fn count(&self) -> usize {
                self.len()
            }
        }

        impl<$($element: Pack,)? $(const $n: usize)?> Pack for $type {
            fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                (**self).pack(writer)
            }

            fn describe(fingerprint: &mut Fingerprint) {
                <$slice>::describe(fingerprint);
            }
        }

        impl<'a, $($element: Unpack<'a>,)? $(const $n: usize)?> Unpack<'a> for $type {
            const MIN_BITS: usize = u32::MIN_BITS;

            fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
                Self::unpack_bounded(reader, $max)
            }
        }
    };
}

sequence!(heapless::Vec<T, N>, [T], N, <T; const N: usize>);
sequence!(heapless::String<N>, str, N, <; const N: usize>);
#[cfg(feature = "alloc")]
sequence!(alloc::vec::Vec<T>, [T], usize::MAX, <T>);
#[cfg(feature = "alloc")]
sequence!(alloc::string::String, str, usize::MAX, <>);

impl<'a, T: Unpack<'a>, const N: usize> UnpackBounded<'a> for heapless::Vec<T, N> {
    fn unpack_bounded(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error> {
        let count = count::<T>(reader, max.min(N))?;
        reader.within(|reader| {
            let mut elements = Self::new();
            for _ in 0..count {
                let element = T::unpack(reader)?;
                elements.push(element).map_err(|_| reader.error(ErrorKind::NoRoom))?;
            }
            Ok(elements)
        })
    }
}

impl<'a, const N: usize> UnpackBounded<'a> for heapless::String<N> {
    fn unpack_bounded(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error> {
        let count = count::<u8>(reader, max.min(N))? as usize;
        let at = reader.position();
        let mut bytes = heapless::Vec::new();
        bytes.resize(count, 0).map_err(|_| reader.error(ErrorKind::NoRoom))?;
        reader.bytes(&mut bytes)?;
        Self::from_utf8(bytes).map_err(|_| Error { kind: ErrorKind::BadUtf8, bit: at })
    }
}

#[cfg(feature = "alloc")]
impl<'a, T: Unpack<'a>> UnpackBounded<'a> for alloc::vec::Vec<T> {
    /// Allocates at most as many elements as the rest of the input can hold.
    fn unpack_bounded(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error> {
        let count = count::<T>(reader, max)?;
        reader.within(|reader| {
            let mut elements = Self::with_capacity(count as usize);
            for _ in 0..count {
                elements.push(T::unpack(reader)?);
            }
            Ok(elements)
        })
    }
}

#[cfg(feature = "alloc")]
impl UnpackBounded<'_> for alloc::string::String {
    fn unpack_bounded(reader: &mut Reader<'_>, max: usize) -> Result<Self, Error> {
        let count = count::<u8>(reader, max)? as usize;
        let at = reader.position();
        let mut bytes = alloc::vec![0; count];
        reader.bytes(&mut bytes)?;
        Self::from_utf8(bytes).map_err(|_| Error { kind: ErrorKind::BadUtf8, bit: at })
    }
}

/// A borrowed sequence: a slice of values, or packed values that are unpacked on each access.
///
/// Unpacking a list validates all elements but stores none, so later accesses cannot fail.
///
/// ```
/// use rakwire::codec::rabbit::{List, Reader, Unpack, pack};
///
/// let mut buffer = [0; 64];
/// let packed = pack(&List::new(&[7_u32, 300]), &mut buffer)?;
/// let list = List::<u32>::unpack(&mut Reader::new(packed))?;
/// assert_eq!(list.len(), 2);
/// assert!(list.iter().eq([7, 300]));
/// # Ok::<(), rakwire::codec::rabbit::Error>(())
/// ```
#[derive(Clone)]
pub struct List<'a, T> {
    elements: Elements<'a, T>,
}

#[derive(Clone)]
enum Elements<'a, T> {
    Values(&'a [T]),
    Packed { first: Reader<'a>, count: u32, marker: PhantomData<fn() -> T> },
}

impl<'a, T> List<'a, T> {
    /// Creates a list from a slice.
    #[must_use]
    pub const fn new(values: &'a [T]) -> Self {
        Self { elements: Elements::Values(values) }
    }

    /// Returns the number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.elements {
            Elements::Values(values) => values.len(),
            Elements::Packed { count, .. } => *count as usize,
        }
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Unpack<'a> + Clone> List<'a, T> {
    /// Returns the elements in order, as copies.
    #[must_use]
    pub fn iter(&self) -> ListIter<'a, T> {
        ListIter { rest: self.elements.clone() }
    }
}

impl<'a, T: Unpack<'a> + Clone> IntoIterator for &List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// An iterator over the elements of a [`List`].
#[derive(Clone)]
pub struct ListIter<'a, T> {
    rest: Elements<'a, T>,
}

impl<'a, T: Unpack<'a> + Clone> Iterator for ListIter<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.rest {
            Elements::Values(values) => {
                let (first, rest) = values.split_first()?;
                *values = rest;
                Some(first.clone())
            }
            Elements::Packed { first, count, .. } => {
                *count = count.checked_sub(1)?;
                // Cannot fail: it was validated when the list was unpacked.
                T::unpack(first).ok()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.rest {
            Elements::Values(values) => values.len(),
            Elements::Packed { count, .. } => *count as usize,
        };
        (left, Some(left))
    }
}

impl<'a, T: Unpack<'a> + Clone> ExactSizeIterator for ListIter<'a, T> {}

impl<T> Counted for List<'_, T> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<'a, T: Pack + Unpack<'a> + Clone> Pack for List<'a, T> {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        if let Elements::Values(values) = self.elements {
            return values.pack(writer);
        }
        writer.count(self.len())?;
        self.iter().try_for_each(|element| element.pack(writer))
    }

    fn describe(fingerprint: &mut Fingerprint) {
        <[T]>::describe(fingerprint);
    }
}

impl<'a, T: Unpack<'a>> Unpack<'a> for List<'a, T> {
    const MIN_BITS: usize = u32::MIN_BITS;

    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Self::unpack_bounded(reader, usize::MAX)
    }
}

impl<'a, T: Unpack<'a>> UnpackBounded<'a> for List<'a, T> {
    fn unpack_bounded(reader: &mut Reader<'a>, max: usize) -> Result<Self, Error> {
        let count = count::<T>(reader, max)?;
        let first = reader.clone();
        reader.within(|reader| (0..count).try_for_each(|_| T::unpack(reader).map(drop)))?;
        Ok(Self { elements: Elements::Packed { first, count, marker: PhantomData } })
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl<'a, T: Unpack<'a> + Clone + PartialEq> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<'a, T: Unpack<'a> + Clone + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Unpack<'a> + Clone + fmt::Debug> fmt::Debug for ListIter<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Borrowed text: a string, or packed characters that are decoded on each access.
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
    /// Creates a text from a string.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self { characters: Characters::String(text) }
    }

    /// Returns the length of the UTF-8 encoding in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.characters {
            Characters::String(text) => text.len(),
            Characters::Packed { bytes, .. } => *bytes as usize,
        }
    }

    /// Returns true if the text is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the characters in order.
    #[must_use]
    pub fn chars(&self) -> Chars<'a> {
        Chars { rest: self.characters.clone() }
    }
}

/// An iterator over the characters of a [`Text`].
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
            // Cannot fail: it was validated when the text was unpacked.
            Characters::Packed { first, bytes } => character(first, bytes).ok().flatten(),
        }
    }
}

/// Takes the next character of a text with `left` remaining bytes; returns `None` at the end.
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
        let bytes = count::<u8>(reader, max)?;
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

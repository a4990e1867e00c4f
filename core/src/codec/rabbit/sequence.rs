//! Sequences and text with memory of their own: `heapless` ones, and with the feature `alloc` those of the standard
//! library.

use super::{Counted, Error, ErrorKind, Fingerprint, Pack, Reader, Unpack, UnpackBounded, Writer};

/// Takes a count, no more than `max` and no more than the rest of the input can hold.
pub(super) fn count<'a, T: Unpack<'a>>(reader: &mut Reader<'a>, max: usize) -> Result<u32, Error> {
    const { assert!(T::MIN_BITS > 0, "elements without bits could be any number of them") };
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
    /// Appends how many elements or bytes follow.
    ///
    /// # Errors
    /// [`ErrorKind::TooMany`] when they are more than a `u32` counts, [`ErrorKind::NoRoom`].
    pub fn count(&mut self, count: usize) -> Result<(), Error> {
        let Ok(number) = u32::try_from(count) else {
            return Err(self.error(ErrorKind::TooMany { count: u32::MAX, limit: u32::MAX }));
        };
        number.pack(self)
    }
}

/// A count, then the elements.
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

/// The number of bytes, then UTF-8.
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

/// What `$type`, with room for `$max` elements or bytes, has of the slice or text in it, but for
/// [`UnpackBounded::unpack_bounded`].
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
    /// Takes memory for as many elements as the rest of the input can hold, and no more.
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

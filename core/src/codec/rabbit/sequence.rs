//! Sequences and text with memory of their own: `heapless` ones, and with the feature `alloc` those of the standard
//! library.

use super::{Counted, Error, ErrorKind, Pack, Reader, Unpack, UnpackBounded, Writer};

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
}

/// The number of bytes, then UTF-8.
impl Pack for str {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.count(self.len())?;
        writer.bytes(self.as_bytes())
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

impl<T, const N: usize> Counted for heapless::Vec<T, N> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<T: Pack, const N: usize> Pack for heapless::Vec<T, N> {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        self.as_slice().pack(writer)
    }
}

impl<'a, T: Unpack<'a>, const N: usize> Unpack<'a> for heapless::Vec<T, N> {
    const MIN_BITS: usize = u32::MIN_BITS;

    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Self::unpack_bounded(reader, N)
    }
}

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

impl<const N: usize> Counted for heapless::String<N> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<const N: usize> Pack for heapless::String<N> {
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        self.as_str().pack(writer)
    }
}

impl<'a, const N: usize> Unpack<'a> for heapless::String<N> {
    const MIN_BITS: usize = u32::MIN_BITS;

    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Self::unpack_bounded(reader, N)
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
mod allocated {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::{Counted, Error, ErrorKind, Pack, Reader, Unpack, UnpackBounded, Writer, count};

    impl<T> Counted for Vec<T> {
        fn count(&self) -> usize {
            self.len()
        }
    }

    impl<T: Pack> Pack for Vec<T> {
        fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
            self.as_slice().pack(writer)
        }
    }

    impl<'a, T: Unpack<'a>> Unpack<'a> for Vec<T> {
        const MIN_BITS: usize = u32::MIN_BITS;

        fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
            Self::unpack_bounded(reader, usize::MAX)
        }
    }

    impl<'a, T: Unpack<'a>> UnpackBounded<'a> for Vec<T> {
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

    impl Counted for String {
        fn count(&self) -> usize {
            self.len()
        }
    }

    impl Pack for String {
        fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
            self.as_str().pack(writer)
        }
    }

    impl Unpack<'_> for String {
        const MIN_BITS: usize = u32::MIN_BITS;

        fn unpack(reader: &mut Reader<'_>) -> Result<Self, Error> {
            Self::unpack_bounded(reader, usize::MAX)
        }
    }

    impl UnpackBounded<'_> for String {
        fn unpack_bounded(reader: &mut Reader<'_>, max: usize) -> Result<Self, Error> {
            let count = count::<u8>(reader, max)? as usize;
            let at = reader.position();
            let mut bytes = alloc::vec![0; count];
            reader.bytes(&mut bytes)?;
            Self::from_utf8(bytes).map_err(|_| Error { kind: ErrorKind::BadUtf8, bit: at })
        }
    }
}

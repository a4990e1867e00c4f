use core::fmt;
use core::marker::PhantomData;

use super::{Counted, Error, Fingerprint, Pack, Reader, Unpack, UnpackBounded, Writer, sequence};

/// A sequence that takes no memory: a slice of values, or packed ones that are read each time they are asked for.
///
/// Unpacking a list reads all elements once and keeps none, so that a list which was unpacked has no errors in it.
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
    /// A list of these values.
    #[must_use]
    pub const fn new(values: &'a [T]) -> Self {
        Self { elements: Elements::Values(values) }
    }

    /// How many elements there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match &self.elements {
            Elements::Values(values) => values.len(),
            Elements::Packed { count, .. } => *count as usize,
        }
    }

    /// Whether there is no element.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Unpack<'a> + Clone> List<'a, T> {
    /// The elements, in order: copies of the values, or what is unpacked on the way.
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

/// The elements of a [`List`].
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
                // It was read before, without an error.
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
        let count = sequence::count::<T>(reader, max)?;
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

//! What is made of other values: options, tuples, references.

use super::{Error, Fingerprint, Pack, Reader, Unpack, Writer};

/// One bit, then the value if there is one.
impl<T: Pack> Pack for Option<T> {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.bit(self.is_some())?;
        self.as_ref().map_or(Ok(()), |value| value.pack(writer))
    }

    fn describe(fingerprint: &mut Fingerprint) {
        fingerprint.bytes(b"(");
        fingerprint.nested::<T>();
        fingerprint.bytes(b")");
    }
}

impl<'a, T: Unpack<'a>> Unpack<'a> for Option<T> {
    const MIN_BITS: usize = 1;

    #[inline]
    fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(if reader.bit()? { Some(T::unpack(reader)?) } else { None })
    }
}

impl<T: Pack + ?Sized> Pack for &T {
    #[inline]
    fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        (**self).pack(writer)
    }

    fn describe(fingerprint: &mut Fingerprint) {
        T::describe(fingerprint);
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        /// The values one after the other.
        impl<$($name: Pack),*> Pack for ($($name,)*) {
            #[expect(clippy::allow_attributes, reason = "an empty tuple uses none of them")]
            #[allow(non_snake_case, unused_variables, reason = "each value is named as its type is")]
            #[inline]
            fn pack(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
                let ($($name,)*) = self;
                $($name.pack(writer)?;)*
                Ok(())
            }

            #[expect(clippy::allow_attributes, reason = "an empty tuple uses none of them")]
            #[allow(unused_variables, reason = "an empty tuple describes nothing")]
            fn describe(fingerprint: &mut Fingerprint) {
                $(fingerprint.nested::<$name>();)*
            }
        }

        impl<'a, $($name: Unpack<'a>),*> Unpack<'a> for ($($name,)*) {
            const MIN_BITS: usize = 0 $(+ $name::MIN_BITS)*;

            #[expect(clippy::allow_attributes, reason = "an empty tuple uses none of them")]
            #[allow(unused_variables, clippy::unused_unit, reason = "an empty tuple reads nothing")]
            #[inline]
            fn unpack(reader: &mut Reader<'a>) -> Result<Self, Error> {
                Ok(($($name::unpack(reader)?,)*))
            }
        }
    )*};
}

tuples! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}

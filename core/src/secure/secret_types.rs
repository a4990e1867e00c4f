//! What the compiler checks of the types that hold secrets: nobody copies or prints one by accident, and each is erased when
//! it is dropped.

use core::fmt::{Debug, Display};
use core::mem::needs_drop;

use super::keys::StaticKey;
use super::noise::SymmetricState;
use super::primitives::{KeyPair, Secret};
use super::random::SeededRandom;
use super::token::TokenKey;

/// Does not compile if a type has one of the traits: then it would not be clear which `UNIT` is meant.
macro_rules! assert_without {
    ($type:ty: $($trait:path),+) => {
        $(const _: () = {
            trait Ambiguous<Marker> {
                const UNIT: () = ();
            }
            enum Implemented {}
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<Implemented> for T {}
            <$type as Ambiguous<_>>::UNIT
        };)+
    };
}

assert_without!(Secret: Clone, Copy, Debug, Display);
assert_without!(KeyPair: Clone, Copy, Debug, Display);
assert_without!(SymmetricState: Clone, Copy, Debug, Display);
assert_without!(SeededRandom: Clone, Copy, Debug, Display);
assert_without!(TokenKey: Clone, Copy, Debug, Display);
// As `Debug` it prints its public key.
assert_without!(StaticKey: Clone, Copy, Display);

const _: () = assert!(needs_drop::<Secret>());
const _: () = assert!(needs_drop::<KeyPair>());
const _: () = assert!(needs_drop::<SymmetricState>());
const _: () = assert!(needs_drop::<SeededRandom>());
const _: () = assert!(needs_drop::<StaticKey>());
const _: () = assert!(needs_drop::<TokenKey>());

//! What the compiler checks of the types that hold secrets: nobody copies or prints one by accident, and each is dropped by
//! code of its own or of its fields, where secrets are overwritten. That it does so is not for the
//! compiler to check.

use core::fmt::{Debug, Display};
use core::mem::needs_drop;

use super::client::{ClientHandshake, Established};
use super::datagrams::DatagramProtection;
#[cfg(feature = "key-log")]
use super::key_log::LoggedKey;
use super::keys::StaticKey;
use super::noise::SymmetricState;
use super::primitives::{KeyPair, Secret};
use super::random::SeededRandom;
use super::server::ServerHandshake;
use super::token::{TokenKey, TokenVerifier};

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
assert_without!(TokenVerifier: Clone, Copy, Debug, Display);
assert_without!(DatagramProtection: Clone, Copy, Debug, Display);
assert_without!(ClientHandshake: Clone, Copy, Debug, Display);
assert_without!(ServerHandshake: Clone, Copy, Debug, Display);
assert_without!(Established: Clone, Copy, Debug, Display);
// As `Debug` it prints its public key.
assert_without!(StaticKey: Clone, Copy, Display);
// As `Display` it is a line of a key log, with the key.
#[cfg(feature = "key-log")]
assert_without!(LoggedKey: Clone, Copy, Debug);

const _: () = assert!(needs_drop::<Secret>());
const _: () = assert!(needs_drop::<KeyPair>());
const _: () = assert!(needs_drop::<SymmetricState>());
const _: () = assert!(needs_drop::<SeededRandom>());
const _: () = assert!(needs_drop::<StaticKey>());
const _: () = assert!(needs_drop::<TokenKey>());
const _: () = assert!(needs_drop::<TokenVerifier>());
const _: () = assert!(needs_drop::<DatagramProtection>());
const _: () = assert!(needs_drop::<ClientHandshake>());
const _: () = assert!(needs_drop::<ServerHandshake>());
const _: () = assert!(needs_drop::<Established>());
#[cfg(feature = "key-log")]
const _: () = assert!(needs_drop::<LoggedKey>());

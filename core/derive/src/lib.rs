//! `#[derive(Pack, Unpack)]` for Rabbit, the bit-packed encoding of the Game Protocol.
//!
//! The crate `rakwire` exports both macros with the feature `derive`; its module `codec::rabbit` describes the
//! encoding.
//!
//! ```
//! use rakwire::codec::rabbit::{Pack, Unpack, to_vec, unpack};
//!
//! /// A struct is encoded as its fields, in the order of their declaration.
//! #[derive(Debug, PartialEq, Pack, Unpack)]
//! struct Shot {
//!     /// A number of 3 bits. The width is 1 to 64 bits, and the type `u8`, `u16`, `u32` or `u64`.
//!     #[pack(bits = 3)]
//!     weapon: u8,
//!     /// At most 20 bytes; for a sequence, at most 20 elements. Packing and unpacking more is an error.
//!     #[pack(max = 20)]
//!     shout: String,
//! }
//!
//! /// An enum is encoded as the index of its variant, in as many bits as the last index needs, and then the fields.
//! #[derive(Debug, PartialEq, Pack, Unpack)]
//! enum Action {
//!     Wait,
//!     Shoot(Shot),
//!     Move { x: i32, y: i32 },
//! }
//!
//! let action = Action::Shoot(Shot { weapon: 5, shout: "ha".to_owned() });
//! let bytes = to_vec(&action)?;
//! assert_eq!(bytes.len(), 4); // 2 + 3 + 10 + 16 bits
//! assert_eq!(unpack(&bytes), Ok(action));
//! # Ok::<(), rakwire::codec::rabbit::Error>(())
//! ```

mod expand;
mod field;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

use self::expand::Direction;

/// Implements `Pack` for a struct or an enum, so that values can be written. See `#[derive(Unpack)]` for reading.
///
/// Fields may have `#[pack(bits = N)]`, the width of a number in bits (1 to 64), or `#[pack(max = N)]`, the maximum
/// number of elements or bytes. A type with one lifetime borrows from the input; more than one lifetime is an error.
#[proc_macro_derive(Pack, attributes(pack))]
pub fn derive_pack(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, Direction::Pack).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `Unpack` for a struct or an enum, so that values can be read.
///
/// Fields take the attributes of `#[derive(Pack)]`.
#[proc_macro_derive(Unpack, attributes(pack))]
pub fn derive_unpack(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input, Direction::Unpack).unwrap_or_else(syn::Error::into_compile_error).into()
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

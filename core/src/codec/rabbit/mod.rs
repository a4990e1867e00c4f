//! Rabbit, the bit encoding of the Game Protocol (docs/rabbit.md).
//!
//! Bits go least significant first and fill bytes from the least significant bit. Nothing is aligned, nothing describes
//! itself; zeros fill up the last byte.
//!
//! | type | bits |
//! |---|---|
//! | `bool` | 1 |
//! | a raw width: [`Writer::bits`], `#[pack(bits = …)]` | 1 to 64 |
//! | `u8` | 8 |
//! | `u16`, `u32`, `u64`, `u128` | 1, 2, 3, 4 for the number of bytes less one, then these bytes, at least one |
//! | `i16`, `i32`, `i64`, `i128` | zig-zag, then as the unsigned one |
//! | `f32`, `f64` | 32, 64 |
//! | `Option` | 1, then the value if there is one |
//! | text | the number of bytes as `u32`, then UTF-8 |
//! | sequences | the number of elements as `u32`, then the elements |
//! | tuples, structs | the values one after the other |
//! | enums | the index in as many bits as the last one needs, then the fields |
//!
//! A number of more than four bytes has its most significant four first, and an `f64` its high half. `docs/rabbit.md`
//! has the whole of it. `usize`, `i8` and `char` are missing because no wire has them.
//!
//! # Use
//!
//! With the feature `derive`:
//!
//! ```
//! use rakwire::codec::rabbit::{List, Pack, Reader, Unpack, pack};
//!
//! #[derive(Clone, Debug, PartialEq, Pack, Unpack)]
//! struct Score {
//!     #[pack(bits = 4)]
//!     team: u8,
//!     points: u32,
//! }
//!
//! #[derive(Debug, PartialEq, Pack, Unpack)]
//! enum Update<'a> {
//!     Nothing,
//!     Scores(#[pack(max = 100)] List<'a, Score>),
//! }
//!
//! let scores = [Score { team: 3, points: 1_000 }, Score { team: 12, points: 0 }];
//! let mut buffer = [0; 64];
//! let packed = pack(&Update::Scores(List::new(&scores)), &mut buffer)?;
//! assert_eq!(packed.len(), 6); // 1 + 10 + 4 + 18 + 4 + 10 bits
//!
//! let Update::Scores(list) = Update::unpack(&mut Reader::new(packed))? else { panic!("they are scores") };
//! assert!(list.iter().eq(scores));
//! # Ok::<(), rakwire::codec::rabbit::Error>(())
//! ```
//!
//! # Hostile input
//!
//! A count is compared with what the rest of the input can hold before anything is taken for it; sequences stand in each
//! other at most [`MAX_DEPTH`] deep; lists and texts are read whole when they are unpacked, so that later nothing can be
//! wrong. Over-long numbers, bits behind the last value that are not zero, and bytes behind it are accepted, as the
//! original accepts them.

mod compound;
mod error;
pub mod field;
mod fingerprint;
mod list;
mod number;
mod pack;
mod reader;
mod sequence;
mod text;
mod writer;

pub use error::{Error, ErrorKind};
pub use fingerprint::Fingerprint;
pub use list::{List, ListIter};
#[cfg(feature = "alloc")]
pub use pack::to_vec;
pub use pack::{Counted, Pack, Unpack, UnpackBounded, pack, unpack};
#[cfg(feature = "derive")]
pub use rakwire_derive::{Pack, Unpack};
pub use reader::{MAX_DEPTH, Reader};
pub use text::{Chars, Text};
pub use writer::Writer;

#[cfg(test)]
mod tests;

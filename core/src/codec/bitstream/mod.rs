//! RakNet's bit stream, in which games of that library write their messages (docs/raknet.md#bit-streams).
//!
//! [`BitStreamReader`] and [`BitStreamWriter`] add RakNet's rules to [`BitReader`](crate::codec::bits::BitReader) and
//! [`BitWriter`](crate::codec::bits::BitWriter): bits fill each byte from the most significant, and nothing is aligned
//! except where this table says so.
//!
//! | what | bits |
//! |---|---|
//! | integers, `f32`, `f64` | 8, 16, 32 or 64, big endian; signed ones in two's complement |
//! | `bool` | 1 |
//! | [`U24`](crate::U24) | **aligns**, then 24, little endian |
//! | [`Guid`](crate::raknet::Guid), [`NetworkId`](crate::raknet::NetworkId) | 64, big endian |
//! | `SocketAddr` | 56 or 232, the bytes of [`wire::address`](crate::wire::address) |
//! | compressed integers | 4 to 65, by how many of their *low-order* bytes are zero |
//! | compressed `f32`, `f64` in -1..=1 | 16, 32 |
//! | delta | 1 if the value is the last one, else 1 and the value; `bool` always 1 |
//! | bits of bytes | as many as asked for; the last byte gives its low or its high ones ([`Alignment`]) |
//! | aligned bytes | **aligns**, then the bytes |
//! | aligned bytes, safe | their number as a compressed `u32`; if not 0, **aligns**, then the bytes |
//! | string | length in bytes as `u16`, **aligns**, then the bytes |
//! | compressed string | length in bits as a compressed `u32`, then codes of English frequencies |
//! | `f32` in a range | 16 |
//! | integer in a range | as many as the width of the range needs, low byte first; optionally 1 before it ([`Outside`]) |
//! | vector | length as `f32`; if more than 0.00001, the direction as three compressed `f32` |
//! | unit vector | three times 16, each a fraction of -1..=1 |
//! | unit quaternion, rotation matrix | 4 signs and three times 16 |
//!
//! Strings are bytes: RakNet knows no encoding.
//!
//! A read or write of several fields that fails leaves the position after those that it finished.

mod alignment;
mod huffman;
mod integer;
mod items;
mod ranges;
mod stream;
mod strings;
mod vectors;

pub use alignment::Alignment;
pub use integer::Integer;
pub use ranges::Outside;
pub use stream::{BitStreamReader, BitStreamWriter, Item};
pub use vectors::{Matrix, Quaternion, Vector};

#[cfg(test)]
mod captured_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;

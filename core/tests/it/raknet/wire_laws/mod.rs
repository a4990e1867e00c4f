//! The laws of the wire format, checked with generated values.
//!
//! - A written packet is read back as an equal packet, which is written as the same bytes.
//! - A truncated packet is refused, unless its last field is optional or extends to the end.
//! - Arbitrary bytes never cause a panic. A packet read from them has the same fields after it was written and read
//!   again, apart from padding and hints.

mod application;
mod arbitrary;
mod connection;
mod datagrams;
mod laws;
mod offline;
mod values;

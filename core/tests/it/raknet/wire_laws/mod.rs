//! The laws of the wire format, on generated values.
//!
//! For every packet: a written packet is read back equal, and a packet that was read is written as the same bytes. A
//! truncated packet is refused, except where the format has an optional or open end, as each test documents.
//! Arbitrary bytes never cause a panic. A packet that is read, written and read again has the same fields, apart from
//! padding and hints.

mod application;
mod arbitrary;
mod connection;
mod datagrams;
mod laws;
mod offline;
mod values;

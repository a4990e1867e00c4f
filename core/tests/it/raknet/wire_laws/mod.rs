//! The laws of the wire, on generated values.
//!
//! For every packet: what was written reads back equal; what was read writes the same bytes; a packet that is cut off is
//! refused, except where the format leaves its end open (each test says where). And for arbitrary bytes: nothing
//! panics, and what reads, writes and reads again has the same fields, but for padding and hints.

mod application;
mod arbitrary;
mod connection;
mod datagrams;
mod laws;
mod offline;
mod values;

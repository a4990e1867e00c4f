//! The kinds of bytes that `rakwire decode` takes apart.

use clap::ValueEnum;

/// What bytes may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A UDP payload
    Datagram,
    /// A message inside a connection, without its capsule
    Message,
    /// An event that the original tells its own application, never on the wire
    Event,
    /// An address
    Address,
}

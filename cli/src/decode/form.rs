//! The kinds of bytes that `rakwire decode` can decode.

use clap::ValueEnum;

/// The kind of bytes to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A UDP payload
    Datagram,
    /// A message inside a connection, without its capsule
    Message,
    /// A local event of C++ RakNet, which it reports to its application and never sends
    Event,
    /// An address
    Address,
}

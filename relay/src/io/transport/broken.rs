//! The error of all transports.

/// The connection cannot be written to any more; reading tells why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

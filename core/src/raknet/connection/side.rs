//! Who opened a connection.

/// Who opened a connection.
///
/// ```
/// assert_ne!(rakwire::raknet::Side::Client, rakwire::raknet::Side::Server);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// This peer.
    #[default]
    Client,
    /// The other peer.
    Server,
}

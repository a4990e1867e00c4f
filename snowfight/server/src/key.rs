//! The keys of connections.

/// The key of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Peer(u64),
    Bot(u16),
}

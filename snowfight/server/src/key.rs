//! The names of connections.

/// Who is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Peer(u64),
    Bot(u16),
}

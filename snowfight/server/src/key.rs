//! The server's keys for its connections and bots.

/// The server's key for a connection or a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Peer(u64),
    Bot(u16),
}

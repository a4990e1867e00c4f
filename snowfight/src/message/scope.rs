use rakwire::codec::rabbit::Reader;

use super::trailer;

/// The kind of snapshots that a client requests.
///
/// The Game Protocol defines only whole snapshots. A client of this crate requests another scope with two bytes after
/// its `Init`. The server confirms the scope with the same two bytes after its `Connect`. The original game treats
/// these bytes as padding (docs/rabbit.md#padding). With an original client or server, every snapshot is therefore
/// whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All entities, every tick.
    #[default]
    Whole,
    /// Deltas, every other tick: the entities that changed within the last half second, and some of the unchanged
    /// entities, in rotation.
    Changes,
    /// No snapshots: the world is replicated by a plugin of the connection (docs/game.md#replication).
    Replicated,
}

impl Scope {
    const CHANGES: [u8; 2] = [0xC4, 0xA6];
    const REPLICATED: [u8; 2] = [0xC4, 0xA8];
    /// The number of ticks within which the delta snapshots contain every entity once, changed or not. A client
    /// receives every other snapshot. The number is odd, so the client receives every entity within twice as many
    /// ticks.
    pub(crate) const REFRESH_TICKS: u32 = 61;
    /// The number of ticks without an update after which a client removes an entity. A living entity would have been
    /// updated four times, so the message about its death must have been lost.
    pub(crate) const EXPIRY_TICKS: u32 = 8 * Self::REFRESH_TICKS;

    /// Appends the two marker bytes of this scope to a message of `length` bytes; returns the total length.
    pub(crate) fn write(self, buffer: &mut [u8], length: usize) -> usize {
        match self {
            Self::Changes => trailer::write(buffer, length, &Self::CHANGES),
            Self::Replicated => trailer::write(buffer, length, &Self::REPLICATED),
            Self::Whole => length,
        }
    }

    /// Reads the marker bytes after a message; a message without them has the scope `Whole`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        match trailer::read(reader) {
            Some(Self::CHANGES) => Self::Changes,
            Some(Self::REPLICATED) => Self::Replicated,
            Some(_) | None => Self::Whole,
        }
    }
}

use rakwire::codec::rabbit::Reader;

use super::trailer;

/// The content of the snapshots for a client.
///
/// The specification defines only whole snapshots. A client of this crate requests anything else by two bytes after its
/// `Init`, and the server confirms it by the same two bytes after its `Connect`. The original game treats these bytes
/// as padding (docs/rabbit.md#padding). A client of this crate therefore gets whole snapshots from an original server,
/// and an original client gets them from this server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All entities, every tick.
    #[default]
    Whole,
    /// Every other tick, the entities that changed in the last half second, and all others in turn.
    Changes,
    /// No snapshots: the world is replicated by messages outside the game (docs/game.md#replication).
    Replicated,
}

impl Scope {
    const CHANGES: [u8; 2] = [0xC4, 0xA6];
    const REPLICATED: [u8; 2] = [0xC4, 0xA8];
    /// The number of ticks within which snapshots of changes contain every entity once, changed or not. A client gets
    /// every other snapshot; because the number is odd, it gets every entity within twice as many ticks.
    pub(crate) const REFRESH_TICKS: u32 = 61;
    /// The number of ticks without an update after which an entity must have died and the message about it was lost. A
    /// living one would have been updated four times.
    pub(crate) const EXPIRY_TICKS: u32 = 8 * Self::REFRESH_TICKS;

    /// Appends the marker for this scope to a message of `length` bytes; returns the total length.
    pub(crate) fn write(self, buffer: &mut [u8], length: usize) -> usize {
        match self {
            Self::Changes => trailer::write(buffer, length, &Self::CHANGES),
            Self::Replicated => trailer::write(buffer, length, &Self::REPLICATED),
            Self::Whole => length,
        }
    }

    /// Reads the marker after a message.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        match trailer::read(reader) {
            Some(Self::CHANGES) => Self::Changes,
            Some(Self::REPLICATED) => Self::Replicated,
            Some(_) | None => Self::Whole,
        }
    }
}

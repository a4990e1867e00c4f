//! The wire format of the mesh message (docs/plugins/mesh.md).

use heapless::Vec;
use rakwire::raknet::Guid;
use rakwire::wire::{Reader, Source, WireError, Writer};

use super::membership::{Epoch, Rank};

/// The id of the message.
pub const MEMBER_ID: u8 = 132;

/// The maximum number of other members in a mesh.
pub const MAX_PEERS: usize = 64;

/// The maximum length of the message, in bytes.
pub const MAX_LENGTH: usize = 1 + 8 + 8 + 8 + 1 + MAX_PEERS * 16;

/// A member's announcement of itself and its neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement<const PEERS: usize> {
    /// The epoch, and the sender's join time in it; `None` if the sender has not joined an epoch.
    pub joined: Option<(Epoch, i64)>,
    /// The connected members of the same epoch.
    pub neighbours: Vec<Rank, PEERS>,
}

impl<const PEERS: usize> Announcement<PEERS> {
    /// Encodes the message.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is shorter than the message; [`MAX_LENGTH`] bytes are always
    /// enough.
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let mut writer = Writer::new(buffer);
        let none = (Epoch { founder: Guid::UNASSIGNED, now: 0 }, 0);
        let (epoch, joined) = self.joined.unwrap_or(none);
        writer.u8(MEMBER_ID)?;
        writer.u64(epoch.founder.0)?;
        writer.u64(epoch.now.cast_unsigned())?;
        writer.u64(joined.cast_unsigned())?;
        writer.u8(u8::try_from(self.neighbours.len()).map_err(|_| WireError::BadLength)?)?;
        for neighbour in &self.neighbours {
            writer.u64(neighbour.guid.0)?;
            writer.u64(neighbour.joined.cast_unsigned())?;
        }
        Ok(writer.finish())
    }

    /// Converts the announcement to another epoch. All times in that epoch are later by `by` milliseconds.
    pub(super) fn move_to(&mut self, epoch: Epoch, by: i64) {
        let Some((_, joined)) = self.joined else { return };
        self.joined = Some((epoch, joined.saturating_add(by)));
        for neighbour in &mut self.neighbours {
            neighbour.joined = neighbour.joined.saturating_add(by);
        }
    }

    /// Decodes the message and ignores trailing bytes.
    ///
    /// # Errors
    /// A [`WireError`] if the message is malformed; [`WireError::NoRoom`] if it lists more than `PEERS`
    /// members.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        if reader.u8("id")? != MEMBER_ID {
            return Err(WireError::UnknownId);
        }
        let founder = Guid(reader.u64("founder")?);
        let epoch = Epoch { founder, now: reader.u64("now")?.cast_signed() };
        let joined = reader.u64("joined")?.cast_signed();
        let mut neighbours = Vec::new();
        for _ in 0..reader.u8("count")? {
            let guid = Guid(reader.u64("guid")?);
            let rank = Rank { joined: reader.u64("joined")?.cast_signed(), guid };
            neighbours.push(rank).map_err(|_| WireError::NoRoom)?;
        }
        Ok(Self { joined: (founder != Guid::UNASSIGNED).then_some((epoch, joined)), neighbours })
    }
}

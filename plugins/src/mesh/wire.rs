//! The message of the mesh (docs/plugins/mesh.md).

use heapless::Vec;
use rakwire::raknet::Guid;
use rakwire::wire::{Reader, Source, WireError, Writer};

use super::standing::{Epoch, Rank};

/// The id of the message.
pub const MEMBER_ID: u8 = 132;

/// The most members that a mesh may have beside this peer.
pub const MAX_PEERS: usize = 64;

/// Bytes of the longest message.
pub const MAX_LENGTH: usize = 1 + 8 + 8 + 8 + 1 + MAX_PEERS * 16;

/// What a member says of itself, and of those with whom it is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement<const PEERS: usize> {
    /// The epoch and since when the sender has been connected in it; nothing before it has joined one.
    pub joined: Option<(Epoch, i64)>,
    /// The members of the same epoch with whom it is connected.
    pub neighbours: Vec<Rank, PEERS>,
}

impl<const PEERS: usize> Announcement<PEERS> {
    /// Writes the message.
    ///
    /// # Errors
    /// [`WireError::NoRoom`] if the buffer is shorter than the message; [`MAX_LENGTH`] bytes are enough.
    pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], WireError> {
        let mut writer = Writer::new(buffer);
        let nobody = (Epoch { founder: Guid::UNASSIGNED, now: 0 }, 0);
        let (epoch, joined) = self.joined.unwrap_or(nobody);
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

    /// Says the same in another epoch, whose times are by so much later.
    pub(super) fn move_to(&mut self, epoch: Epoch, by: i64) {
        let Some((_, joined)) = self.joined else { return };
        self.joined = Some((epoch, joined.saturating_add(by)));
        for neighbour in &mut self.neighbours {
            neighbour.joined = neighbour.joined.saturating_add(by);
        }
    }

    /// Reads the message. What is behind it is ignored.
    ///
    /// # Errors
    /// What is wrong with it; [`WireError::NoRoom`] if it tells of more than `PEERS` members.
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

use rakwire::codec::rabbit::Reader;

use super::trailer;

/// The acknowledgement of a snapshot and of all earlier ones.
///
/// The Game Protocol does not acknowledge snapshots. A client of this crate appends the tick of the newest applied
/// snapshot to its actions. A server of this crate uses the tick to send fewer snapshots to a slow client
/// (docs/game.md#pacing). The original game treats these bytes as padding (docs/rabbit.md#padding), and its clients
/// append none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotAck {
    /// The tick of the acknowledged snapshot.
    pub time: u32,
}

impl SnapshotAck {
    const MARKER: [u8; 2] = [0xC4, 0xA7];
    /// The length of the marker and the tick, in bytes.
    const LENGTH: usize = Self::MARKER.len() + size_of::<u32>();

    /// Appends the acknowledgement to a message of `length` bytes if it fits; returns the total length.
    ///
    /// ```
    /// use rakwire::codec::rabbit::{Reader, Unpack, pack};
    /// use snowfight::message::{Action, ActionKind, ClientMessage, Move, SnapshotAck};
    ///
    /// let message = ClientMessage::Action(Action { kind: ActionKind::Move(Move::default()) });
    /// let mut buffer = [0; 16];
    /// let length = pack(&message, &mut buffer)?.len();
    /// let length = SnapshotAck { time: 7 }.write(&mut buffer, length);
    ///
    /// let mut reader = Reader::new(&buffer[..length]);
    /// assert_eq!(ClientMessage::unpack(&mut reader)?, message);
    /// assert_eq!(SnapshotAck::read(&mut reader), Some(SnapshotAck { time: 7 }));
    /// # Ok::<(), rakwire::codec::rabbit::Error>(())
    /// ```
    #[must_use]
    pub fn write(self, buffer: &mut [u8], length: usize) -> usize {
        let mut bytes = [0; Self::LENGTH];
        let (marker, time) = bytes.split_at_mut(Self::MARKER.len());
        marker.copy_from_slice(&Self::MARKER);
        time.copy_from_slice(&self.time.to_le_bytes());
        trailer::write(buffer, length, &bytes)
    }

    /// Reads the acknowledgement after a message; returns `None` if there is none.
    #[must_use]
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let [first, second, time @ ..]: [u8; Self::LENGTH] = trailer::read(reader)?;
        ([first, second] == Self::MARKER).then(|| Self { time: u32::from_le_bytes(time) })
    }
}

use rakwire::codec::rabbit::Reader;

/// What the snapshots of a client tell.
///
/// The document knows whole snapshots alone. A client of this crate asks for less with two bytes behind its `Init`, and
/// the server agrees with the same two bytes behind its `Connect`: both are read as padding by those who do not know
/// them (docs/rabbit.md#padding), so that such a client gets whole snapshots from an original server, and an original
/// client from this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything in the world, each tick.
    #[default]
    Whole,
    /// Every other tick, what has changed in the last half second, and the rest little by little.
    Changes,
}

impl Scope {
    const MARK: [u8; 2] = [0xC4, 0xA6];
    /// In how many ticks a snapshot of changes tells everything once, changed or not. Each client gets every other
    /// snapshot; an odd count brings each entity to all of them, in twice as many ticks.
    pub(crate) const ROUND: u32 = 61;
    /// After so many ticks what was not told is gone: its end was lost, and all that lives was told four times.
    pub(crate) const FORGOTTEN: u32 = 8 * Self::ROUND;

    /// Puts what asks for this, or agrees to it, behind a message of `length` bytes; returns the length of both.
    pub(crate) fn write(self, buffer: &mut [u8], length: usize) -> usize {
        let end = length + Self::MARK.len();
        match (self, buffer.get_mut(length..end)) {
            (Self::Changes, Some(room)) => {
                room.copy_from_slice(&Self::MARK);
                end
            }
            (Self::Whole, _) | (Self::Changes, None) => length,
        }
    }

    /// What stands behind a message that was read.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Self {
        let padding = (8 - reader.position() % 8) % 8;
        let mut mark = [0; Self::MARK.len()];
        let read = reader.bits(padding as u32).and_then(|_| reader.bytes(&mut mark));
        if read.is_ok() && mark == Self::MARK { Self::Changes } else { Self::Whole }
    }
}

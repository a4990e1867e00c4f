//! What arrived and is lent to its reader.

use rakwire::game_protocol::{Message, Reliability};

use super::protocol::Game;
use crate::loan::Loan;
use crate::shared::Shared;

/// A message that arrived. It stays where it lies until this is dropped, and while it is kept, no task of the same peer
/// gets another one: read it, drop it, then wait for something else.
///
/// ```
/// use rakwire::codec::rabbit::{Reader, Unpack};
/// use rakwire_embassy::game::Received;
///
/// /// A number, read where it lies, in however many pieces.
/// fn number(message: &Received<'_>) -> Option<u32> {
///     message.read(|bytes| u32::unpack(&mut Reader::over(&bytes)).ok())
/// }
/// ```
#[derive(Debug)]
#[must_use = "it is gone when this is dropped"]
pub struct Received<'d> {
    loan: Loan<'d, Game>,
    reliability: Reliability,
}

impl<'d> Received<'d> {
    pub(crate) const fn new(shared: &'d Shared<'d, Game>, reliability: Reliability) -> Self {
        Self { loan: Loan::new(shared), reliability }
    }

    /// How it travelled.
    #[must_use]
    pub const fn reliability(&self) -> Reliability {
        self.reliability
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|message| message.len())
    }

    /// Whether there are no bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the bytes where they lie, in one piece or several.
    ///
    /// # Panics
    /// If `read` itself asks something of the same peer: take what you need out of it first.
    pub fn read<R>(&self, read: impl FnOnce(Message<'_>) -> R) -> R {
        self.loan.look(|peer| read(peer.lent()))
    }

    /// Copies the bytes to the front of `buffer` and returns them there; nothing when they do not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.loan.look(|peer| peer.lent().copy_to(buffer))
    }
}

//! What arrived and is lent to its reader.

use core::net::SocketAddr;
use core::time::Duration;

use rakwire::raknet::{Delivery, Guid, Message};

use super::protocol::{PongNews, RakNet};
use crate::loan::Loan;
use crate::shared::Shared;

/// A message that arrived. It stays where it lies until this is dropped, and while it is kept, no task of the same peer
/// gets another one: read it, drop it, then wait for something else.
///
/// ```
/// use rakwire_embassy::raknet::Received;
///
/// fn first_byte(message: &Received<'_>) -> Option<u8> {
///     message.read(|bytes| bytes.chunks().flatten().next().copied())
/// }
/// ```
#[derive(Debug)]
#[must_use = "it is gone when this is dropped"]
pub struct Received<'d> {
    loan: Loan<'d, RakNet>,
    delivery: Delivery,
}

impl<'d> Received<'d> {
    pub(crate) const fn new(shared: &'d Shared<'d, RakNet>, delivery: Delivery) -> Self {
        Self { loan: Loan::new(shared), delivery }
    }

    /// How it travelled. The priority is not on the wire and reads as the default.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read(|message| message.len())
    }

    /// Whether there are no bytes at all, which no message is.
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

/// What a server says of itself. As a [`Received`], it is to be dropped soon.
///
/// ```
/// use core::net::SocketAddr;
/// use rakwire_embassy::raknet::Pong;
///
/// /// The address of a server of our game.
/// fn ours(pong: &Pong<'_>) -> Option<SocketAddr> {
///     let mut buffer = [0; 64];
///     pong.copy_to(&mut buffer)?.starts_with(b"our game").then_some(pong.from())
/// }
/// ```
#[derive(Debug)]
#[must_use = "it is gone when this is dropped"]
pub struct Pong<'d> {
    loan: Loan<'d, RakNet>,
    news: PongNews,
}

impl<'d> Pong<'d> {
    pub(crate) const fn new(shared: &'d Shared<'d, RakNet>, news: PongNews) -> Self {
        Self { loan: Loan::new(shared), news }
    }

    /// Where the server is.
    #[must_use]
    pub const fn from(&self) -> SocketAddr {
        self.news.from
    }

    /// Who the server is.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.news.guid
    }

    /// From the ping to the pong.
    #[must_use]
    pub const fn latency(&self) -> Duration {
        self.news.latency
    }

    /// Copies what the server says, 0 to 399 bytes, to the front of `buffer`; nothing when it does not fit.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.loan.look(|peer| peer.lent().copy_to(buffer))
    }
}

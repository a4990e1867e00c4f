//! Messages from and to peers without a connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rakwire::raknet::{self, Guid};

use crate::endpoint::Endpoint;
use crate::error::OutOfBandError;
use crate::socket::canonical;
use crate::state::{Door, State};

/// Messages of strangers that wait for the application.
const WAITING: usize = 256;

/// What kind of message a stranger sent.
///
/// ```
/// assert_ne!(rakwire_native::Said::OutOfBand, rakwire_native::Said::Advertisement);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// A message of its application.
    OutOfBand,
    /// It makes itself known.
    Advertisement,
}

/// A message from a peer without a connection. Its sender and its contents may be forged.
///
/// ```
/// use rakwire_native::{Said, Stranger};
///
/// fn is_invitation(stranger: &Stranger) -> bool {
///     stranger.said == Said::Advertisement && stranger.data.starts_with(b"come and play")
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stranger {
    /// Where it came from.
    pub from: SocketAddr,
    /// Who sent it.
    pub guid: Guid,
    /// What kind of message it is.
    pub said: Said,
    /// What it says, at most 399 bytes.
    pub data: Vec<u8>,
}

/// Messages of strangers, between the driver and the application. Further ones are dropped and counted.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    waiting: VecDeque<Stranger>,
    dropped: u64,
}

impl Strangers {
    pub(crate) fn push(&mut self, stranger: Stranger) {
        if self.waiting.len() < WAITING {
            self.waiting.push_back(stranger);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Endpoint {
    /// Sends `data`, 1 to 399 bytes, once to a peer without a connection, which is told only if it accepts such
    /// messages. Waits while too many others wait to be sent.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing was sent then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Options, OutOfBand};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut options = Options::server(8)?;
    /// options.config.out_of_band = OutOfBand::Accept;
    /// let server = Endpoint::bind("127.0.0.1:0", options).await?;
    /// let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// client.send_out_of_band(server.local_addr(), b"\x86 is a place free?").await?;
    /// let stranger = server.recv_stranger().await.ok_or("the server is closed")?;
    /// assert_eq!((stranger.from, stranger.guid), (client.local_addr(), client.guid()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send_out_of_band(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.say(to, |state, now, to| state.hooked.peer.send_out_of_band(now, to, data)).await
    }

    /// Makes this endpoint known to a peer without a connection, with `data`, 0 to 398 bytes, of the application.
    ///
    /// # Errors
    /// An [`OutOfBandError`]; nothing was sent then.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, OutOfBandError};
    ///
    /// async fn invite(server: &Endpoint, player: std::net::SocketAddr) -> Result<(), OutOfBandError> {
    ///     server.advertise(player, b"come and play").await
    /// }
    /// ```
    pub async fn advertise(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.say(to, |state, now, to| state.hooked.peer.advertise(now, to, data)).await
    }

    async fn say(
        &self,
        to: SocketAddr,
        say: impl Fn(&mut State, rakwire::Instant, SocketAddr) -> Result<(), raknet::OutOfBandError>,
    ) -> Result<(), OutOfBandError> {
        let to = canonical(to);
        if !self.reaches(to) {
            return Err(OutOfBandError::AddressFamily);
        }
        loop {
            let mut room = std::pin::pin!(self.shared.room.notified());
            // From here on no room is missed.
            room.as_mut().enable();
            let said = self.shared.act(|state, now| {
                if state.tables.door == Door::Shut {
                    return Err(OutOfBandError::EndpointClosed);
                }
                say(state, now, to).map(|()| true).or_else(|error| match error {
                    raknet::OutOfBandError::TooMany => Ok(false),
                    // Whatever else the core may report one day is about the message, too.
                    raknet::OutOfBandError::BadLength | _ => Err(OutOfBandError::BadLength),
                })
            })?;
            if said {
                return Ok(());
            }
            room.await;
        }
    }

    /// The next message of a peer without a connection; waits until there is one. None come unless the configuration
    /// [accepts](rakwire::raknet::OutOfBand::Accept) them. Nothing once the endpoint was closed. When the future is
    /// dropped before, no message was taken.
    ///
    /// ```
    /// use rakwire_native::{Endpoint, Said};
    ///
    /// async fn first_invitation(endpoint: &Endpoint) -> Option<std::net::SocketAddr> {
    ///     loop {
    ///         let stranger = endpoint.recv_stranger().await?;
    ///         if stranger.said == Said::Advertisement {
    ///             return Some(stranger.from);
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn recv_stranger(&self) -> Option<Stranger> {
        loop {
            let mut heard = std::pin::pin!(self.shared.heard.notified());
            // From here on nothing is missed.
            heard.as_mut().enable();
            {
                let mut state = self.shared.lock();
                let stranger = state.tables.strangers.waiting.pop_front();
                if stranger.is_some() || state.tables.door == Door::Shut {
                    return stranger;
                }
            }
            heard.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let mut strangers = Strangers::default();
        for number in 0..300_u64 {
            let from = ([127, 0, 0, 1], 1).into();
            strangers.push(Stranger { from, guid: Guid(number), said: Said::OutOfBand, data: vec![1] });
        }
        assert_eq!((strangers.waiting.len(), strangers.dropped()), (WAITING, 44));
        assert_eq!(strangers.waiting.pop_front().map(|stranger| stranger.guid), Some(Guid(0)));
    }
}

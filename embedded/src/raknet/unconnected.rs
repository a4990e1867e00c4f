//! Messages from and to peers without a connection (feature `unconnected`).

use core::future::poll_fn;
use core::net::SocketAddr;
use core::task::Poll;

use rakwire::Instant;
use rakwire::endpoint::Hooked;
use rakwire::raknet::{Event, Guid, Hook, OutOfBandError, RakNet, UnconnectedEvents};

use crate::handle::Handle;
use crate::read_guard::ReadGuard;
use crate::shared::Inner;

/// The kind of a message from a peer without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum UnconnectedKind {
    /// An out-of-band message of 1 to 399 bytes.
    OutOfBand,
    /// An advertisement of 0 to 398 bytes.
    Advertisement,
}

/// A message without its bytes, which remain in the peer's memory.
#[derive(Clone, Copy, Debug)]
struct MessageInfo {
    from: SocketAddr,
    guid: Guid,
    kind: UnconnectedKind,
}

/// A message from a peer without a connection. Drop it soon, like a [`Received`](super::Received).
#[derive(Debug)]
#[must_use = "the message is lost when this value is dropped"]
pub struct Unconnected<'d, H: Hook<RakNet> = ()> {
    bytes: ReadGuard<'d, RakNet, H>,
    info: MessageInfo,
}

impl<H: Hook<RakNet>> Unconnected<'_, H> {
    /// Returns the source address, which may be forged.
    #[must_use]
    pub const fn from(&self) -> SocketAddr {
        self.info.from
    }

    /// Returns the GUID of the sender, which may be forged.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.info.guid
    }

    /// Returns the kind of the message.
    #[must_use]
    pub const fn kind(&self) -> UnconnectedKind {
        self.info.kind
    }

    /// Copies the bytes to the start of `buffer`, and returns that part. Returns `None` if `buffer` is too short.
    #[must_use]
    pub fn copy_to<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.bytes.read(|message| message.copy_to(buffer))
    }
}

impl<'d, H: Hook<RakNet>> Handle<'d, RakNet, H> {
    /// Sends `data`, 1 to 399 bytes, once to a peer without a connection. The peer ignores it unless it
    /// [accepts](rakwire::raknet::OutOfBand::Accept) such messages. Waits while eight such messages are queued.
    ///
    /// # Errors
    /// [`OutOfBandError::BadLength`] if `data` is empty or too long.
    ///
    /// ```
    /// use rakwire::raknet::{Config, OutOfBand, RakNet};
    /// use rakwire_embassy::raknet::{State, UnconnectedKind, new};
    /// use static_cell::ConstStaticCell;
    ///
    /// static MEMORY: ConstStaticCell<State<'static, 1, 24, 64, 2>> = ConstStaticCell::new(State::new());
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/loopback.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> { loopback::run(async |stack| {
    /// # let (sender, _) = loopback::peers::<RakNet>(stack);
    /// let mut config = Config::new(rakwire_embassy::entropy(&mut loopback::Rng));
    /// config.out_of_band = OutOfBand::Accept;
    /// let (receiver, mut runner) = new(MEMORY.take(), stack, 19_133, config);
    /// # tokio::task::spawn_local(async move { runner.run().await });
    /// # let to = (loopback::SERVER.ip(), 19_133).into();
    /// let hello = async {
    ///     let message = receiver.recv_unconnected().await;
    ///     assert_eq!(message.kind(), UnconnectedKind::OutOfBand);
    ///     assert_eq!(message.copy_to(&mut [0; 399]), Some(&b"hello"[..]));
    /// };
    /// let (sent, ()) = embassy_futures::join::join(sender.send_out_of_band(to, b"hello"), hello).await;
    /// sent?;
    /// # Ok(()) }) }
    /// ```
    pub async fn send_out_of_band(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(|hooked, now| hooked.peer.send_out_of_band(now, to, data)).await
    }

    /// Advertises this peer once to a peer without a connection, with `data` of 0 to 398 bytes, under the same
    /// conditions as [`send_out_of_band`](Self::send_out_of_band).
    ///
    /// # Errors
    /// [`OutOfBandError::BadLength`] if `data` is too long.
    pub async fn advertise(&self, to: SocketAddr, data: &[u8]) -> Result<(), OutOfBandError> {
        self.send_unconnected(|hooked, now| hooked.peer.advertise(now, to, data)).await
    }

    async fn send_unconnected(
        &self,
        mut send: impl FnMut(&mut Hooked<'d, RakNet, H>, Instant) -> Result<(), OutOfBandError>,
    ) -> Result<(), OutOfBandError> {
        poll_fn(|cx| {
            self.shared.poll(cx, |inner, now| match send(&mut inner.hooked, now) {
                Err(OutOfBandError::TooMany) => Poll::Pending,
                result => Poll::Ready(result),
            })
        })
        .await
    }

    /// Waits for the next message from a peer without a connection. None arrives unless the configuration
    /// [accepts](rakwire::raknet::OutOfBand::Accept) such messages.
    ///
    /// Messages that arrive before the first call are dropped. Between two calls, at most eight messages and unread
    /// pongs are kept; further messages and pongs are dropped.
    pub async fn recv_unconnected(&self) -> Unconnected<'d, H> {
        let message = poll_fn(|cx| self.shared.poll(cx, |inner, _| inner.poll_message()));
        let info = message.await;
        Unconnected { bytes: ReadGuard::new(self.shared), info }
    }
}

impl<H: Hook<RakNet>> Inner<'_, RakNet, H> {
    /// Returns the next message from a peer without a connection, if one has arrived. From then on, arriving messages
    /// are kept.
    fn poll_message(&mut self) -> Poll<MessageInfo> {
        self.keeps_messages = true;
        if self.is_lending {
            return Poll::Pending;
        }
        let (from, guid, kind) = match self.hooked.poll_unconnected(UnconnectedEvents::Messages) {
            Some(Event::OutOfBand { from, identity, .. }) => (from, identity, UnconnectedKind::OutOfBand),
            Some(Event::Advertisement { from, identity, .. }) => {
                (from, identity, UnconnectedKind::Advertisement)
            }
            _ => return Poll::Pending,
        };
        self.is_lending = true;
        Poll::Ready(MessageInfo { from, guid, kind })
    }
}

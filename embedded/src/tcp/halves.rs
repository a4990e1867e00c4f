//! The two directions of a connection.

use core::cell::Cell;

use embassy_net::tcp::{TcpReader, TcpWriter};
use rakwire::codec::frames::{FrameReader, header};
use rakwire::endpoint::SendError;
use rakwire::raknet::{Delivery, Receipt};

use super::error::DisconnectReason;

/// Sends the messages of a connection. [`Connection::split`](super::Connection::split) has an example.
#[derive(Debug)]
pub struct Sender<'s> {
    pub(super) writer: Writer<'s>,
    pub(super) closed: &'s Cell<Option<DisconnectReason>>,
    /// Set while a message is partly written, so that no other message may begin.
    pub(super) is_within_message: &'s Cell<bool>,
}

impl Sender<'_> {
    /// Sends a message, and waits until the send buffer has accepted all of it. TCP delivers everything in order, so
    /// `_delivery` has no effect. The result is `None`, since there are no receipts.
    ///
    /// If the future is dropped early, part of the message may have been sent. The connection can then send no more
    /// messages, because the receiver could not distinguish them from the rest of that message.
    ///
    /// # Errors
    /// - [`SendError::NotConnected`] once the connection is closed, or after a `send` that was dropped within a message
    /// - [`SendError::Empty`] for a message without bytes
    /// - [`SendError::NeverFits`] for a message of more than 4,294,967,295 bytes
    pub async fn send(&mut self, message: &[u8], _delivery: Delivery) -> Result<Option<Receipt>, SendError> {
        if message.is_empty() {
            return Err(SendError::Empty);
        }
        let len = u32::try_from(message.len()).map_err(|_| SendError::NeverFits)?;
        if self.closed.get().is_some() || self.is_within_message.get() {
            return Err(SendError::NotConnected);
        }
        self.is_within_message.set(true);
        self.write_all(&header(len)).await?;
        self.write_all(message).await?;
        self.is_within_message.set(false);
        Ok(None)
    }

    async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), SendError> {
        while !bytes.is_empty() {
            // This fails only once the connection is closed; the receiving half reports the reason.
            let written = self.writer.0.write(bytes).await.map_err(|_| SendError::NotConnected)?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Receives the messages of a connection. [`Connection::split`](super::Connection::split) has an example.
#[derive(Debug)]
pub struct Receiver<'s, 'd> {
    pub(super) reader: Reader<'s>,
    pub(super) frames: &'s mut FrameReader<'d>,
    pub(super) closed: &'s Cell<Option<DisconnectReason>>,
    /// Set if the message in `frames` has been returned.
    pub(super) is_read: &'s mut bool,
}

impl Receiver<'_, '_> {
    /// Waits for the next message. Returns `None` once the connection is closed and all messages have been received. If
    /// the future is dropped earlier, no message is lost.
    pub async fn recv(&mut self) -> Option<&[u8]> {
        if self.closed.get().is_some() {
            return None;
        }
        if core::mem::take(self.is_read) {
            self.frames.next();
        }
        while self.frames.message().is_none() {
            let ended = match self.reader.0.read(self.frames.unfilled()).await {
                Ok(0) if !self.frames.is_within_frame() => Some(DisconnectReason::Remote),
                Ok(0) | Err(_) => Some(DisconnectReason::Lost),
                Ok(read) => self.frames.advance(read).err().map(|_| DisconnectReason::MessageTooLong),
            };
            if let Some(reason) = ended {
                self.closed.set(Some(reason));
                return None;
            }
        }
        *self.is_read = true;
        self.frames.message()
    }
}

/// Embassy-net's writer, which lacks `Debug`.
pub(super) struct Writer<'s>(pub(super) TcpWriter<'s>);

/// Embassy-net's reader, which lacks `Debug`.
pub(super) struct Reader<'s>(pub(super) TcpReader<'s>);

impl core::fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl core::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

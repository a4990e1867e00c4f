//! A connection as a stream of what arrives, and as a sink of what is sent.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use rakwire::endpoint::{Protocol, SendError};

use super::connection::{Bytes, Connection};
use super::inbox::Message;
use super::wakes::{WaitId, WakerId};

/// The messages of a connection as a [`Stream`]; [`Connection::messages`] makes it. It ends with the connection.
#[derive(Debug)]
pub struct Messages<P: Protocol> {
    connection: Connection<P>,
    waker: Option<WakerId>,
}

/// Sends messages on a connection as a [`Sink`]; [`Connection::message_sink`] makes it.
///
/// An item is the bytes of a message and its delivery. A message for which there is no room waits in the sink; flushing
/// waits until it was taken over by the endpoint, not until it was delivered. Closing ends the connection like
/// [`Connection::disconnect`], and waits for that.
pub struct MessageSink<P: Protocol, B> {
    connection: Connection<P>,
    /// The message for which there was no room.
    unsent: Option<(B, P::Delivery)>,
    wait: Option<WaitId>,
    waker: Option<WakerId>,
    is_closing: bool,
}

impl<P: Protocol> Connection<P> {
    /// The messages of this connection as a [`Stream`], which is another handle of it.
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use std::pin::Pin;
    ///
    /// use futures_core::Stream;
    /// use futures_sink::Sink;
    /// use rakwire_native::{Delivery, Endpoint, Options};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = Endpoint::bind("127.0.0.1:0", Options::server(1)?).await?;
    /// # let client = Endpoint::bind("127.0.0.1:0", Options::client()?).await?;
    /// let connection = client.connect(server.local_addr()).await?;
    /// let mut sink = connection.message_sink();
    /// poll_fn(|cx| Pin::new(&mut sink).poll_ready(cx)).await?;
    /// Pin::new(&mut sink).start_send((b"\x90state", Delivery::RELIABLE))?;
    /// poll_fn(|cx| Pin::new(&mut sink).poll_close(cx)).await?;
    ///
    /// let mut messages = server.accept().await.ok_or("the server is closed")?.messages();
    /// let message = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await;
    /// assert_eq!(message.map(|message| message.bytes), Some(b"\x90state".to_vec()));
    /// assert_eq!(poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await, None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn messages(&self) -> Messages<P> {
        Messages { connection: self.clone(), waker: None }
    }

    /// A [`Sink`] of messages for this connection, which is another handle of it. [`messages`](Self::messages) has an
    /// example.
    #[must_use]
    pub fn message_sink<B: AsRef<[u8]>>(&self) -> MessageSink<P, B> {
        MessageSink { connection: self.clone(), unsent: None, wait: None, waker: None, is_closing: false }
    }
}

impl<P: Protocol> Unpin for Messages<P> {}

impl<P: Protocol> Stream for Messages<P> {
    type Item = Message<P::Delivery>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { connection, waker } = &mut *self;
        connection.reference.inbox.poll_recv(cx, waker)
    }
}

impl<P: Protocol> Drop for Messages<P> {
    fn drop(&mut self) {
        self.connection.reference.inbox.forget(&mut self.waker);
    }
}

impl<P: Protocol, B> Unpin for MessageSink<P, B> {}

impl<P: Protocol, B: AsRef<[u8]>> Sink<(B, P::Delivery)> for MessageSink<P, B> {
    type Error = SendError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        let Self { connection, unsent, wait, .. } = &mut *self;
        let Some((message, delivery)) = unsent else { return Poll::Ready(Ok(())) };
        let sent =
            ready!(connection.reference.poll_send(cx, wait, &mut Bytes::Lent(message.as_ref()), *delivery));
        *unsent = None;
        Poll::Ready(sent.map(drop))
    }

    fn start_send(mut self: Pin<&mut Self>, item: (B, P::Delivery)) -> Result<(), SendError> {
        let (message, delivery) = item;
        match self.connection.try_send(message.as_ref(), delivery) {
            Err(SendError::QuotaExceeded | SendError::PoolExhausted) => {
                self.unsent = Some((message, delivery));
                Ok(())
            }
            result => result.map(drop),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        self.poll_ready(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        ready!(self.as_mut().poll_ready(cx))?;
        let Self { connection, waker, is_closing, .. } = &mut *self;
        let reference = &connection.reference;
        if !*is_closing {
            *is_closing = true;
            reference.shared.act(|state, now| state.disconnect(now, reference.id));
        }
        reference.inbox.poll_ended(cx, waker).map(Ok)
    }
}

impl<P: Protocol, B> Drop for MessageSink<P, B> {
    fn drop(&mut self) {
        let Self { connection, wait, waker, .. } = self;
        connection.reference.stop_waiting(wait);
        connection.reference.inbox.forget(waker);
    }
}

impl<P: Protocol, B> fmt::Debug for MessageSink<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_waiting = self.unsent.is_some();
        f.debug_struct("MessageSink").field("is_waiting", &is_waiting).finish_non_exhaustive()
    }
}
